//! The back end without isolation: for machines that have no other, and only when it is asked for by name. It keeps the
//! wall time, the process group and the size of the logs in bounds, and nothing else.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::SandboxError;
use super::collect::collect;
use super::collect_folder::collect_folder;
use super::evaluation::{self, RunnerInputs, named_like};
use super::executor::{Evaluator, Executor};
use super::job::{DATA_VARIABLES, EvaluationSpec, JobSpec, Limits, OUTPUT_DIR, PROGRAM_NAME, thread_environment};
use super::logs::{CapturedLog, LogBuffer};
use super::observe::{LogObserver, LogStream};
use super::outcome::{Evaluation, JobEnd, JobOutcome, ResultState};
use super::probe::{Probe, ask};
use super::report::{Capability, CapabilityReport, IsolationReport, Layer};
use super::scratch::{Family, InstanceDir};
use super::wait::{Waited, wait4};

const BACKEND: &str = "process";
/// Time that the output of a dead program may still take: something outside its group may hold it open for ever.
const OUTPUT_LIMIT: Duration = Duration::from_millis(500);

/// Options of the back end without isolation.
#[derive(Debug, Clone)]
pub struct ProcessOptions {
    /// Python interpreter of candidates and metrics.
    pub python: PathBuf,
    /// Directory below which job directories are made.
    pub scratch_root: PathBuf,
    /// Time between SIGTERM and SIGKILL.
    pub grace: Duration,
}

impl ProcessOptions {
    /// The defaults for an interpreter.
    pub fn new(python: impl Into<PathBuf>) -> Self {
        Self {
            python: python.into(),
            scratch_root: std::env::temp_dir(),
            grace: Duration::from_secs(5),
        }
    }
}

/// Runs jobs and evaluations as plain processes.
#[derive(Debug)]
pub struct ProcessExecutor {
    options: ProcessOptions,
    instance: InstanceDir,
}

struct Ran {
    end: JobEnd,
    waited: Waited,
    stdout: CapturedLog,
    stderr: CapturedLog,
    started_at: DateTime<Utc>,
    wall_seconds: f64,
}

impl ProcessExecutor {
    /// Makes the directory of its jobs.
    pub fn new(options: ProcessOptions) -> Result<Self, SandboxError> {
        let instance = InstanceDir::create(Family::Processes, &options.scratch_root)?;
        Ok(Self { options, instance })
    }

    async fn execute(
        &self,
        arguments: &[&str],
        directory: &Path,
        env: BTreeMap<String, String>,
        limits: &Limits,
        observer: Option<&LogObserver>,
        cancel: &CancellationToken,
    ) -> Result<Ran, SandboxError> {
        let begin = Instant::now();
        let started_at = Utc::now();
        let mut child = Command::new(&self.options.python)
            .args(arguments)
            .current_dir(directory)
            .env_clear()
            .envs(env)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(SandboxError::io("start", &self.options.python))?;
        let pid = child.id() as i32;
        let buffer = |stream| LogBuffer::new(limits.log_bytes).observed(observer, stream);
        let stdout = drain(child.stdout.take().map(OwnedFd::from), buffer(LogStream::Stdout))?;
        let stderr = drain(child.stderr.take().map(OwnedFd::from), buffer(LogStream::Stderr))?;
        let group = Group(Pid::from_raw(pid));
        // The leader stays a zombie until the group is killed, so its number cannot go to somebody else.
        let mut ended = tokio::task::spawn_blocking(move || {
            Pid::from_raw(pid).map(|pid| waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT))
        });
        let mut end = None;
        tokio::select! {
            _ = &mut ended => {}
            () = tokio::time::sleep(limits.wall) => end = Some(JobEnd::WallLimit),
            () = cancel.cancelled() => end = Some(JobEnd::Cancelled),
        }
        if end.is_some() {
            group.signal(Signal::TERM);
            if tokio::time::timeout(self.options.grace, &mut ended).await.is_err() {
                group.signal(Signal::KILL);
                let _ = ended.await;
            }
        }
        group.signal(Signal::KILL);
        let wall_seconds = begin.elapsed().as_secs_f64();
        let waited = tokio::task::spawn_blocking(move || wait4(pid))
            .await
            .map_err(|e| SandboxError::Helper(e.to_string()))?
            .map_err(SandboxError::io("wait for", &self.options.python))?;
        std::mem::forget(group);
        let (stdout, stderr) = (finish(stdout).await?, finish(stderr).await?);
        let end = end.unwrap_or(match waited.status {
            status if libc::WIFSIGNALED(status) => JobEnd::Signaled {
                signal: libc::WTERMSIG(status),
            },
            status => JobEnd::Exited {
                code: libc::WEXITSTATUS(status),
            },
        });
        Ok(Ran {
            end,
            waited,
            stdout,
            stderr,
            started_at,
            wall_seconds,
        })
    }
}

/// A process group that dies with the future that watches it.
struct Group(Option<Pid>);

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.0 {
            // A group that is empty already is no fault.
            let _ = kill_process_group(pid, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Output that is being read.
struct Drain {
    task: JoinHandle<()>,
    buffer: std::sync::Arc<parking_lot::Mutex<LogBuffer>>,
}

fn drain(pipe: Option<OwnedFd>, buffer: LogBuffer) -> Result<Drain, SandboxError> {
    let buffer = std::sync::Arc::new(parking_lot::Mutex::new(buffer));
    let pipe = pipe.ok_or_else(|| SandboxError::Helper("the program has no output pipe".to_owned()))?;
    let mut pipe = pipe::Receiver::from_owned_fd(pipe).map_err(|e| SandboxError::Helper(e.to_string()))?;
    let shared = buffer.clone();
    let task = tokio::spawn(async move {
        let mut chunk = vec![0; 64 << 10];
        while let Ok(n @ 1..) = pipe.read(&mut chunk).await {
            shared.lock().push(&chunk[..n]);
        }
    });
    Ok(Drain { task, buffer })
}

async fn finish(mut drain: Drain) -> Result<CapturedLog, SandboxError> {
    if tokio::time::timeout(OUTPUT_LIMIT, &mut drain.task).await.is_err() {
        drain.task.abort();
    }
    Ok(std::mem::replace(&mut *drain.buffer.lock(), LogBuffer::new(0)).finish())
}

fn environment(directory: &Path, cpus: u32) -> BTreeMap<String, String> {
    let home = directory.to_string_lossy().into_owned();
    let mut env = BTreeMap::from([
        (
            "PATH".to_owned(),
            std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned()),
        ),
        ("HOME".to_owned(), home),
        ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ("MPLBACKEND".to_owned(), "Agg".to_owned()),
        ("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned()),
        ("PYTHONHASHSEED".to_owned(), "0".to_owned()),
        ("PYTHONUNBUFFERED".to_owned(), "1".to_owned()),
    ]);
    env.extend(thread_environment(cpus));
    env
}

fn absolute(path: &Path) -> Result<String, SandboxError> {
    let absolute = path.canonicalize().map_err(SandboxError::io("find", path))?;
    absolute
        .into_os_string()
        .into_string()
        .map_err(|path| SandboxError::Config(format!("the path {} is not valid UTF-8", path.to_string_lossy())))
}

#[async_trait]
impl Executor for ProcessExecutor {
    fn name(&self) -> &str {
        BACKEND
    }

    async fn run(&self, job: JobSpec, cancel: &CancellationToken) -> Result<JobOutcome, SandboxError> {
        job.check()?;
        let queued_at = Utc::now();
        let directory = self.instance.job_dir()?;
        let program = directory.path().join(PROGRAM_NAME);
        fs::write(&program, &job.code).map_err(SandboxError::io("write", &program))?;
        let mut env = environment(directory.path(), job.limits.cpus);
        let data = absolute(&job.data_dir)?;
        env.extend(DATA_VARIABLES.map(|name| (name.to_owned(), data.clone())));
        if job.output_is_folder {
            let output = directory.path().join(&job.output_name);
            env.insert(OUTPUT_DIR.to_owned(), output.to_string_lossy().into_owned());
        }
        env.extend(job.env.clone());
        let ran = self
            .execute(
                &[PROGRAM_NAME],
                directory.path(),
                env,
                &job.limits,
                job.observer.as_ref(),
                cancel,
            )
            .await?;
        if ran.end == JobEnd::Cancelled {
            return Err(SandboxError::Cancelled);
        }
        let (state, detail, submission) = match ran.end.verdict() {
            Some((state, detail)) => (Some(state), Some(detail), None),
            None => {
                let dir = File::open(directory.path()).map_err(SandboxError::io("open", directory.path()))?;
                let (limit, target) = (job.limits.submission_bytes, job.output_path());
                let collected = match job.output_is_folder {
                    true => collect_folder(&dir, &job.output_name, limit, &target),
                    false => collect(&dir, &job.output_name, limit, &target),
                };
                match collected {
                    Ok(collected) => (None, None, Some(collected)),
                    Err(reason) => (Some(ResultState::SubmissionMissing), Some(reason), None),
                }
            }
        };
        let status = ran.waited.status;
        Ok(JobOutcome {
            cause: ran.end.cause(),
            end: ran.end,
            state,
            detail,
            exit_code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
            signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
            oom: false,
            cpu_seconds: Some(ran.waited.cpu_seconds),
            wall_seconds: Some(ran.wall_seconds),
            peak_memory_bytes: Some(ran.waited.max_rss_bytes),
            stdout: ran.stdout,
            stderr: ran.stderr,
            submission,
            isolation: IsolationReport::unsandboxed(BACKEND),
            warm: false,
            queued_at,
            started_at: Some(ran.started_at),
            finished_at: Utc::now(),
        })
    }

    async fn capabilities(&self) -> Result<CapabilityReport, SandboxError> {
        let none = |layer: Layer| {
            let advice = Some("use the back end `native` or `docker`".to_owned());
            (
                layer,
                Capability {
                    available: false,
                    version: None,
                    enforced_by: "nothing".to_owned(),
                    advice,
                },
            )
        };
        let layers = Layer::REQUIRED.into_iter().map(none).collect();
        Ok(CapabilityReport {
            backend: BACKEND.to_owned(),
            usable: true,
            summary: None,
            layers,
        })
    }

    async fn isolation(&self) -> Result<IsolationReport, SandboxError> {
        Ok(IsolationReport::unsandboxed(BACKEND))
    }

    async fn probe(&self, code: &str, modules: &[String]) -> Result<Probe, SandboxError> {
        ask(&self.options.python, code, modules).await
    }

    async fn sweep(&self) -> Result<usize, SandboxError> {
        let base = self.options.scratch_root.clone();
        tokio::task::spawn_blocking(move || Family::Processes.sweep(&base))
            .await
            .map_err(|e| SandboxError::Helper(e.to_string()))
    }
}

#[async_trait]
impl Evaluator for ProcessExecutor {
    async fn evaluate(&self, spec: EvaluationSpec, cancel: &CancellationToken) -> Result<Evaluation, SandboxError> {
        spec.limits.check()?;
        if let Some(missing) = evaluation::missing_input(&spec) {
            return Ok(missing);
        }
        let begin = Instant::now();
        let directory = self.instance.job_dir()?;
        let runner = directory.path().join("evaluate.py");
        fs::write(&runner, evaluation::RUNNER).map_err(SandboxError::io("write", &runner))?;
        // The loader goes by the suffix, so the files get the names that they have in a jail.
        let link = |path: &Path, name: String| -> Result<String, SandboxError> {
            let place = directory.path().join(name);
            std::os::unix::fs::symlink(absolute(path)?, &place).map_err(SandboxError::io("make", &place))?;
            Ok(place.to_string_lossy().into_owned())
        };
        let answers = spec.answers.iter().enumerate();
        let inputs = RunnerInputs {
            metric: absolute(&spec.metric_py)?,
            submission: link(&spec.submission, named_like("submission", &spec.submission))?,
            answers: answers
                .map(|(index, path)| link(path, named_like(&format!("answers-{index}"), path)))
                .collect::<Result<_, _>>()?,
        };
        let argument = inputs.to_argument();
        let env = environment(directory.path(), spec.limits.cpus);
        let ran = self
            .execute(
                &["-I", "-B", "evaluate.py", &argument],
                directory.path(),
                env,
                &spec.limits,
                None,
                cancel,
            )
            .await?;
        if ran.end == JobEnd::Cancelled {
            return Err(SandboxError::Cancelled);
        }
        Ok(evaluation::interpret(
            &ran.end,
            &ran.stdout.kept,
            begin.elapsed().as_secs_f64(),
        ))
    }
}
