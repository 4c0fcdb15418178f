//! What the tests of the sandbox share.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use clade::sandbox::{
    CandidateJob, CandidateResult, DockerExecutor, DockerOptions, Evaluator, Executor, JobEnd, JobOutcome, JobSpec,
    Limits, NativeExecutor, NativeOptions, ProcessExecutor, ProcessOptions, Scoring, run_candidate,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Interpreter of the tests.
pub fn python() -> PathBuf {
    let python = std::env::var_os("CLADE_PYTHON")
        .expect("set CLADE_PYTHON to a Python interpreter with numpy, pandas and scikit-learn");
    PathBuf::from(python)
}

/// The helper: the binary of this package.
pub fn helper() -> PathBuf {
    std::env::var_os("CLADE_TEST_HELPER").map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_clade")), PathBuf::from)
}

/// Runs programs and scores what they leave.
pub trait Backend: Executor + Evaluator {}

impl<T: Executor + Evaluator> Backend for T {}

/// Directories of one test; dropping it checks that nothing is left in the scratch root.
pub struct Bench {
    pub root: TempDir,
    pub data: PathBuf,
    pub out: PathBuf,
}

impl Bench {
    pub fn new() -> Self {
        let root = tempfile::Builder::new().prefix("clade tést ").tempdir().unwrap();
        let (data, out) = (root.path().join("päblic data"), root.path().join("out"));
        std::fs::create_dir(&data).unwrap();
        std::fs::create_dir(&out).unwrap();
        std::fs::create_dir(root.path().join("scratch")).unwrap();
        std::fs::write(data.join("train.csv"), "id,y\n1,2\n").unwrap();
        Self { root, data, out }
    }

    pub fn scratch_root(&self) -> PathBuf {
        self.root.path().join("scratch")
    }

    pub fn options(&self) -> NativeOptions {
        let mut options = NativeOptions::new(python());
        options.helper = Some(helper());
        options.scratch_root = self.scratch_root();
        options.grace = Duration::from_secs(2);
        options
    }

    pub fn native(&self) -> NativeExecutor {
        NativeExecutor::new(self.options()).unwrap()
    }

    pub fn docker_options(&self) -> DockerOptions {
        let mut options = DockerOptions::new("clade-sandbox");
        options.scratch_root = self.scratch_root();
        options.grace = Duration::from_secs(2);
        options
    }

    /// `None` where the tests are told to go without an engine.
    pub fn docker(&self) -> Option<DockerExecutor> {
        has_docker().then(|| DockerExecutor::new(self.docker_options()))
    }

    /// Every back end that must hold: jails with and without control groups, and containers.
    pub fn isolating(&self) -> Vec<Arc<dyn Backend>> {
        let with = |cgroups| {
            let mut options = self.options();
            options.cgroups = cgroups;
            Arc::new(NativeExecutor::new(options).unwrap()) as Arc<dyn Backend>
        };
        let docker = self.docker().map(|docker| Arc::new(docker) as Arc<dyn Backend>);
        [with(true), with(false)].into_iter().chain(docker).collect()
    }

    /// Those, and first the one that holds nothing.
    pub fn every(&self) -> Vec<Arc<dyn Backend>> {
        let process = Arc::new(self.process()) as Arc<dyn Backend>;
        [process].into_iter().chain(self.isolating()).collect()
    }

    pub fn process(&self) -> ProcessExecutor {
        let mut options = ProcessOptions::new(python());
        options.scratch_root = self.scratch_root();
        options.grace = Duration::from_secs(2);
        ProcessExecutor::new(options).unwrap()
    }

    pub fn job(&self, code: &str, limits: Limits) -> JobSpec {
        JobSpec {
            job_id: "test".to_owned(),
            code: code.to_owned(),
            data_dir: self.data.clone(),
            env: BTreeMap::from([("CLADE_TEST_MARK".to_owned(), self.root.path().display().to_string())]),
            limits,
            output_name: "submission.csv".to_owned(),
            output_is_folder: false,
            output_dir: self.out.clone(),
            warm: false,
            observer: None,
        }
    }

    /// Ends a back end and checks that nothing of its jobs is left: directories, groups, mounts, processes.
    pub fn finish<T>(&self, backend: T) {
        let instances: Vec<String> = std::fs::read_dir(self.scratch_root())
            .unwrap()
            .flatten()
            .flat_map(|family| std::fs::read_dir(family.path()).into_iter().flatten().flatten())
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        drop(backend);
        let left = files_below(&self.scratch_root());
        assert!(left.is_empty(), "left in the scratch root: {left:?}");
        for instance in instances {
            // Dropping the back end has waited for its launcher, which removes them.
            let groups = groups_named(Path::new("/sys/fs/cgroup"), 4, &|name| {
                name == format!("clade-{instance}")
            });
            assert!(groups.is_empty(), "control groups are left: {groups:?}");
        }
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        assert!(
            !mounts.contains(&*self.root.path().file_name().unwrap().to_string_lossy()),
            "mounts are left"
        );
        let left = processes_with(&self.mark());
        assert!(left.is_empty(), "processes are left: {left:?}");
        let left = containers_below(&self.scratch_root());
        assert!(left.is_empty(), "containers are left: {left:?}");
    }

    /// Text in the environment of every job of this bench.
    pub fn mark(&self) -> String {
        format!("CLADE_TEST_MARK={}", self.root.path().display())
    }
}

/// Whether the tests use the container engine: always, unless they are told not to.
pub fn has_docker() -> bool {
    std::env::var_os("CLADE_SKIP_DOCKER").is_none_or(|skip| skip != "1")
}

/// Containers, running or not, that executors with this scratch directory have made.
pub fn containers_below(scratch_root: &Path) -> Vec<String> {
    let is_used = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with(FAMILIES[1]);
    if !std::fs::read_dir(scratch_root).unwrap().flatten().any(is_used) {
        return Vec::new();
    }
    let output = Command::new("docker")
        .args(["ps", "--all", "--quiet", "--filter"])
        .arg(format!("label=org.clade.scratch={}", scratch_root.display()))
        .output()
        .expect("the docker command; CLADE_SKIP_DOCKER=1 goes without");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

/// Sends a signal to a process that may be gone.
pub fn signal(pid: i32, signal: rustix::process::Signal) {
    let _ = rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal);
}

/// Kills a process that may be gone.
pub fn kill(pid: i32) {
    signal(pid, rustix::process::Signal::KILL);
}

/// A process of a test that must not outlive it.
pub struct KillOnDrop(pub std::process::Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Processes that carry a text in their environment or arguments.
pub fn processes_with(mark: &str) -> Vec<String> {
    let found = |pid: &String| {
        let read = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let text = [read("environ"), read("cmdline")].concat();
        text.windows(mark.len()).any(|window| window == mark.as_bytes()) && *pid != std::process::id().to_string()
    };
    let names = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter(|name| name.bytes().all(|b| b.is_ascii_digit()))
        .filter(found)
        .collect()
}

/// Control groups below a folder whose name is a wanted one.
pub fn groups_named(path: &Path, depth: usize, is_wanted: &dyn Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if is_wanted(&entry.file_name().to_string_lossy()) {
                found.push(entry.path());
            } else if depth > 0 {
                found.extend(groups_named(&entry.path(), depth - 1, is_wanted));
            }
        }
    }
    found
}

/// Source of a hostile or honest program of `tests/abuse`.
pub fn program(name: &str) -> String {
    PROGRAMS
        .iter()
        .find(|(file, _)| *file == name)
        .unwrap_or_else(|| panic!("no program {name}"))
        .1
        .to_owned()
}

/// Folders that back ends leave, empty, for the next of their kind.
const FAMILIES: [&str; 2] = ["clade-sandbox-", "clade-containers-"];

fn files_below(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let is_family = FAMILIES.iter().any(|family| name.to_string_lossy().starts_with(family));
        if !is_family {
            found.push(path.clone());
        }
        found.extend(files_below(&path));
    }
    found
}

/// Limits that let small tests fail fast.
pub fn small_limits() -> Limits {
    Limits {
        wall: Duration::from_secs(30),
        memory_bytes: 1 << 30,
        processes: 64,
        file_bytes: 64 << 20,
        scratch_bytes: 128 << 20,
        scratch_files: 2000,
        log_bytes: 64 << 10,
        submission_bytes: 1 << 20,
        ..Limits::default()
    }
}

/// A shared task with a program.
pub fn candidate(task: &Path, code: String, out: &Path, wall: Duration) -> CandidateJob {
    CandidateJob {
        job_id: "test".to_owned(),
        code,
        data_dir: task.join("data/public"),
        scoring: Scoring::Metric {
            metric_py: task.join("utils/metric.py"),
            answers: vec![task.join("data/private/test_answer.csv")],
        },
        env: BTreeMap::new(),
        limits: Limits {
            wall,
            memory_bytes: 4 << 30,
            ..Limits::default()
        },
        evaluation_limits: Limits::for_evaluation(),
        output_name: "submission.csv".to_owned(),
        output_is_folder: false,
        output_dir: out.to_owned(),
        warm: false,
        warm_evaluation: false,
        self_reported: last_score,
        observer: None,
    }
}

fn last_score(log: &str) -> Option<f64> {
    log.lines()
        .rev()
        .find_map(|line| line.strip_prefix("Final Validation Score: ")?.trim().parse().ok())
}

pub async fn run<T: Executor + Evaluator>(backend: &T, job: CandidateJob) -> CandidateResult {
    run_candidate(backend, backend, job, &CancellationToken::new())
        .await
        .unwrap()
}

/// The program has ended by itself, as it should.
#[track_caller]
pub fn expect_success(name: &str, outcome: &JobOutcome) {
    let (out, error) = (outcome.stdout.text(), outcome.stderr.text());
    assert_eq!(outcome.end, JobEnd::Exited { code: 0 }, "{name}: {out}{error}");
}

/// A token that nobody cancels.
pub fn token() -> CancellationToken {
    CancellationToken::new()
}

/// The programs of `tests/abuse`, embedded so that another user can run the tests too.
const PROGRAMS: &[(&str, &str)] = &[
    ("cpu_burn.py", include_str!("../abuse/cpu_burn.py")),
    ("cpu_forever.py", include_str!("../abuse/cpu_forever.py")),
    ("descriptors.py", include_str!("../abuse/descriptors.py")),
    ("disk.py", include_str!("../abuse/disk.py")),
    ("fork_bomb.py", include_str!("../abuse/fork_bomb.py")),
    ("kernel.py", include_str!("../abuse/kernel.py")),
    ("life.py", include_str!("../abuse/life.py")),
    ("log_flood.py", include_str!("../abuse/log_flood.py")),
    ("masked.py", include_str!("../abuse/masked.py")),
    ("meeting.py", include_str!("../abuse/meeting.py")),
    ("memory_children.py", include_str!("../abuse/memory_children.py")),
    ("memory_files.py", include_str!("../abuse/memory_files.py")),
    ("memory_one.py", include_str!("../abuse/memory_one.py")),
    ("network.py", include_str!("../abuse/network.py")),
    ("outside.py", include_str!("../abuse/outside.py")),
    ("positive.py", include_str!("../abuse/positive.py")),
    ("privileges.py", include_str!("../abuse/privileges.py")),
    ("processes.py", include_str!("../abuse/processes.py")),
    ("read_secrets.py", include_str!("../abuse/read_secrets.py")),
    ("submissions.py", include_str!("../abuse/submissions.py")),
    ("visible.py", include_str!("../abuse/visible.py")),
    ("warm.py", include_str!("../abuse/warm.py")),
];
