//! Group A: files. What a program can read, change and leave, and the list of all that it sees.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::attempts::{attempt, run};
use super::rows::{Column, HELD, NOT_TRIED, Rows, WORKS};
use crate::sandbox::support::{Bench, KillOnDrop, python, small_limits};

#[tokio::test(flavor = "multi_thread")]
async fn a1_secrets_cannot_be_read() {
    let bench = Bench::new();
    let secret = bench.root.path().join("hidden answers.csv");
    std::fs::write(&secret, "the-secret-of-this-test").unwrap();
    // Stands for another job: its scratch directory lies beside this job's.
    let neighbour = bench.root.path().join("another job/candidate.py");
    std::fs::create_dir_all(neighbour.parent().unwrap()).unwrap();
    std::fs::write(&neighbour, "the-secret-of-this-test").unwrap();
    let holder = Command::new("sleep")
        .arg0("the-secret-of-this-test")
        .arg("120")
        .env("HELD", "the-secret-of-this-test")
        .current_dir(bench.root.path())
        .stdin(File::open(&secret).unwrap())
        .spawn()
        .unwrap();
    let _holder = KillOnDrop(holder);
    let (secret, neighbour) = (secret.display().to_string(), neighbour.display().to_string());
    let env = [("SECRET", secret.as_str()), ("NEIGHBOUR", neighbour.as_str())];
    let mut rows = Rows::default();
    attempt(&bench, "read_secrets.py", &env, &mut rows).await;
    rows.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn a2_a3_nothing_outside_can_be_changed() {
    let bench = Bench::new();
    let outside = bench.root.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let outside = outside.display().to_string();
    let mut rows = Rows::default();
    attempt(&bench, "outside.py", &[("OUTSIDE", &outside)], &mut rows).await;
    let data = std::fs::read_to_string(bench.data.join("train.csv")).unwrap();
    assert_eq!(data, "id,y\n1,2\n");
    rows.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn a4_a5_a6_own_programs_run_without_privileges_and_devices() {
    let mut rows = Rows::default();
    attempt(&Bench::new(), "privileges.py", &[], &mut rows).await;
    rows.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn a7_only_the_listed_things_are_visible() {
    let bench = Bench::new();
    let mut rows = Rows::default();
    attempt(&bench, "masked.py", &[], &mut rows).await;
    let process = bench.process();
    let outcome = run(&process, &bench, "visible.py", &[], small_limits()).await;
    look(Column::Without, &outcome.stdout.text(), &bench, &mut rows);
    drop(process);
    for backend in bench.isolating() {
        let outcome = run(&*backend, &bench, "visible.py", &[], small_limits()).await;
        let text = outcome.stdout.text();
        assert!(!text.is_empty(), "{}", outcome.stderr.text());
        look(Column::of(backend.name()), &text, &bench, &mut rows);
        bench.finish(backend);
    }
    rows.check();
}

/// What programs of a back end may see, and nothing else.
struct Allowed {
    root: Vec<String>,
    dev: &'static [&'static str],
    etc: Option<&'static [&'static str]>,
    processes: &'static [&'static str],
    host: &'static str,
    id: u32,
}

const USUAL_ROOT: [&str; 10] = [
    "bin",
    "candidate",
    "dev",
    "etc",
    "lib",
    "lib32",
    "lib64",
    "proc",
    "sbin",
    "usr",
];
/// Mounts in which a program can make files.
const WRITABLE: [&str; 3] = ["/candidate/scratch", "/dev/shm", "/tmp"];

fn of_jails() -> Allowed {
    let python = python();
    let visible = [python.canonicalize().unwrap(), python];
    let top = |path: &std::path::PathBuf| {
        path.components()
            .nth(1)
            .unwrap()
            .as_os_str()
            .to_str()
            .unwrap()
            .to_owned()
    };
    let mut root: Vec<String> = visible.iter().map(top).collect();
    root.push("tmp".to_owned());
    Allowed {
        root,
        dev: &[
            "fd", "full", "null", "random", "shm", "stderr", "stdin", "stdout", "urandom", "zero",
        ],
        etc: Some(&["alternatives", "group", "ld.so.cache", "localtime", "passwd"]),
        processes: &[],
        host: "sandbox",
        id: 1000,
    }
}

fn of_containers() -> Allowed {
    let names = [
        ".dockerenv",
        "boot",
        "clade",
        "home",
        "libx32",
        "media",
        "mnt",
        "opt",
        "root",
        "run",
        "srv",
        "sys",
        "tmp",
        "var",
    ];
    let root = rustix::process::geteuid().is_root();
    Allowed {
        root: names.map(str::to_owned).into(),
        dev: &[
            "core", "fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty",
            "urandom", "zero",
        ],
        // The image's own.
        etc: None,
        // The engine's.
        processes: &["1"],
        host: "sandbox",
        id: if root {
            65_534
        } else {
            rustix::process::geteuid().as_raw()
        },
    }
}

#[derive(serde::Deserialize)]
struct Seen {
    root: Vec<String>,
    dev: Vec<String>,
    etc: Vec<String>,
    data: Vec<String>,
    work: Vec<String>,
    writable: Vec<String>,
    mountinfo: String,
    processes: Vec<String>,
    descriptors: Vec<String>,
    environment: Vec<String>,
    host: String,
    ids: [u32; 4],
}

#[track_caller]
fn look(column: Column, text: &str, bench: &Bench, rows: &mut Rows) {
    let seen: Seen = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let allowed = if column == Column::Docker {
        of_containers()
    } else {
        of_jails()
    };
    let known_root = |name: &&String| USUAL_ROOT.contains(&name.as_str()) || allowed.root.contains(name);
    let known_etc = |name: &&String| allowed.etc.is_none_or(|etc| etc.contains(&name.as_str()));
    let known_process = |pid: &&String| allowed.processes.contains(&pid.as_str());
    // Engines mount the message queues of the container, which have a small limit of their own.
    let known_place =
        |place: &&String| WRITABLE.contains(&place.as_str()) || (column == Column::Docker && *place == "/dev/mqueue");
    let mut note = |attack: &str, strange: Vec<&String>| {
        let word = if strange.is_empty() { HELD } else { WORKS };
        assert!(
            column == Column::Without || strange.is_empty(),
            "{attack} in {column:?}: {strange:?}"
        );
        rows.see(column, "A7", attack, word);
    };
    note(
        "other folders in /",
        seen.root.iter().filter(|name| !known_root(name)).collect(),
    );
    note(
        "other files in /etc",
        seen.etc.iter().filter(|name| !known_etc(name)).collect(),
    );
    note(
        "other devices",
        seen.dev
            .iter()
            .filter(|name| !allowed.dev.contains(&name.as_str()))
            .collect(),
    );
    note(
        "other processes",
        seen.processes.iter().filter(|pid| !known_process(pid)).collect(),
    );
    note(
        "other places to write",
        seen.writable.iter().filter(|place| !known_place(place)).collect(),
    );
    let strange_names = seen.environment.iter().filter(|name| !is_known_variable(name));
    note("variables of the host", strange_names.collect());
    // The kernel tells where a mount comes from, to whoever is shown it.
    let tells = seen.mountinfo.contains(
        &*bench
            .root
            .path()
            .file_name()
            .unwrap()
            .to_string_lossy()
            .replace(' ', "\\040"),
    );
    let word = if tells { "paths are told" } else { HELD };
    if column != Column::Without {
        assert_eq!(seen.data, ["train.csv"]);
        assert_eq!(seen.work, ["candidate.py"]);
        assert_eq!(seen.descriptors, ["0", "1", "2", "3"], "3 is the listing itself");
        rows.see(column, "A7", "where the data lies on the host", word);
        assert_eq!(seen.host, allowed.host);
        assert_eq!(seen.ids, [allowed.id; 4]);
    } else {
        rows.see(column, "A7", "where the data lies on the host", NOT_TRIED);
    }
}

fn is_known_variable(name: &str) -> bool {
    const OURS: [&str; 15] = [
        "BACKEND",
        "CLADE_TEST_MARK",
        "DATA_DIR",
        "SANDBOX_DATA_DIR",
        "HOME",
        "JAILED",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "LOKY_MAX_CPU_COUNT",
        "MPLBACKEND",
        "MPLCONFIGDIR",
        "NUMEXPR_MAX_THREADS",
        "PATH",
        "TMPDIR",
    ];
    OURS.contains(&name) || name.ends_with("_THREADS") || name.starts_with("PYTHON")
}
