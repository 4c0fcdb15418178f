//! The program itself, with the native sandbox and real programs, killed and resumed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::leftovers::{control_groups, files, mounts, processes, wait_for_none};
use crate::cli::fixture::{Outcome, Place, finish};

const TASK: &str = "diabetes-progression";

struct Bench {
    place: Place,
    scratch: PathBuf,
    python: PathBuf,
}

impl Bench {
    fn new() -> Self {
        let python = std::env::var_os("CLADE_PYTHON")
            .expect("set CLADE_PYTHON to a Python interpreter with numpy, pandas and scikit-learn");
        let place = Place::with_store();
        let scratch = place.path().join("scratch");
        std::fs::create_dir(&scratch).unwrap();
        let bench = Self {
            place,
            scratch,
            python: PathBuf::from(python),
        };
        let tasks = bench.place.path().join("tasks");
        let built = Command::new(&bench.python)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/tasks/build.py"))
            .arg(&tasks)
            .status()
            .unwrap();
        assert!(built.success());
        bench.run(&["task", "add", &tasks.join(TASK).to_string_lossy()]).ok();
        bench
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.command(arguments);
        command.env("CLADE_PYTHON", &self.python).env("TMPDIR", &self.scratch);
        command
    }

    fn run(&self, arguments: &[&str]) -> Outcome {
        finish(&mut self.command(arguments), "")
    }

    fn number(&self, sql: &str) -> i64 {
        let text = self.run(&["sql", "-c", sql, "--format", "json"]).ok();
        let rows: serde_json::Value = serde_json::from_str(&text).unwrap();
        rows[0]["n"].as_i64().unwrap_or_else(|| panic!("{sql}: {text}"))
    }
}

#[test]
fn a_killed_program_leaves_nothing_and_its_run_goes_on() {
    let bench = Bench::new();
    let place = bench.place.path();
    let mut pids = Vec::new();
    let mut seen = 0;
    for kill in 0..3 {
        let arguments: &[&str] = match kill {
            0 => &[
                "evolve",
                TASK,
                "--steps",
                "12",
                "--workers",
                "2",
                "--seed",
                "3",
                "--id",
                "r",
            ],
            _ => &["runs", "resume", "r"],
        };
        let mut child = bench
            .command(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        pids.push(child.id());
        // Killed when it is at work: something was committed since the last kill, and a job is likely to run.
        let end = std::time::Instant::now() + Duration::from_secs(90);
        while child.try_wait().unwrap().is_none()
            && bench.number("SELECT count(*) AS n FROM evo.nodes") <= seen
            && std::time::Instant::now() < end
        {
            std::thread::sleep(Duration::from_millis(100));
        }
        std::thread::sleep(Duration::from_millis(70 * kill));
        assert!(
            child.try_wait().unwrap().is_none(),
            "it ended before it could be killed"
        );
        child.kill().unwrap();
        child.wait().unwrap();
        wait_for_none("processes", || processes(place));
        let now = bench.number("SELECT count(*) AS n FROM evo.nodes");
        assert!(now > seen, "{seen} nodes became {now}");
        seen = now;
    }
    bench.run(&["runs", "resume", "r"]).ok();
    for (count, sql) in [
        (12, "SELECT count(*) AS n FROM evo.nodes"),
        (12, "SELECT count(DISTINCT step) AS n FROM evo.nodes"),
        (
            1,
            "SELECT count(*) AS n FROM evo.runs WHERE status = 'finished' AND stop_reason = 'steps'",
        ),
        (1, "SELECT count(*) AS n FROM bench.grades WHERE valid"),
        (0, "SELECT count(*) AS n FROM sandbox.leases"),
        (0, "SELECT count(*) AS n FROM system.budgets WHERE reserved <> 0"),
        (0, "SELECT count(*) AS n FROM evo.attempts WHERE status <> 'done'"),
        (0, "SELECT count(*) AS n FROM system.problems"),
    ] {
        assert_eq!(bench.number(sql), count, "{sql}");
    }
    wait_for_none("processes", || processes(place));
    assert!(mounts(place).is_empty(), "{:?}", mounts(place));
    wait_for_none("control groups", || control_groups(&pids));
    wait_for_none("work files", || files(&place.join("clade-store/work")));
    // The folder of this user's sandboxes stays; what was in it does not.
    wait_for_none("scratch files", || {
        files(&bench.scratch)
            .into_iter()
            .filter(|path| path.parent() != Some(bench.scratch.as_path()))
            .collect()
    });
}
