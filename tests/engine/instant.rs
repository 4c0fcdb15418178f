//! A generator and a sandbox that answer at once, for tests and benchmarks of what lies between them. A program is text like
//! `score = 0.5` or `fail = timeout`; it is a valid Python program, so that everything read from programs is real.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chrono::Utc;
use clade::model::{GenerateRequest, Generator, ModelError, ModelInfo, Sample, UsageDetails};
use clade::sandbox::{
    CapabilityReport, CapturedLog, Collected, Evaluation, EvaluationSpec, Evaluator, Executor, IsolationReport, JobEnd,
    JobOutcome, JobSpec, ResultState, SandboxError,
};
use tokio_util::sync::CancellationToken;

/// Writes programs whose outcome depends on nothing but the seed.
#[derive(Debug, Default)]
pub struct Scripted {
    pub calls: AtomicUsize,
    pub faults_before_success: usize,
}

pub fn program(seed: u64, operator: &str) -> String {
    let family = [
        "sklearn.linear_model",
        "sklearn.ensemble",
        "lightgbm",
        "sklearn.neighbors",
    ][(seed % 4) as usize];
    let outcome = match seed % 10 {
        0 => "fail = 'error'".to_owned(),
        1 => "fail = 'timeout'".to_owned(),
        _ => format!("score = {}", (seed % 9973) as f64 / 9973.0),
    };
    format!("import {family}\n# {operator} {seed}\n{outcome}\n")
}

#[async_trait]
impl Generator for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn describe(&self) -> ModelInfo {
        ModelInfo::free("test")
    }

    async fn generate(&self, request: &GenerateRequest, _: &CancellationToken) -> Result<Sample, ModelError> {
        if self.calls.fetch_add(1, Ordering::SeqCst) < self.faults_before_success {
            return Err(ModelError::Unreachable {
                model: "scripted".into(),
                message: "not yet".into(),
            });
        }
        let program = program(request.seed, request.operator.as_str());
        Ok(Sample {
            text: format!("A plan for seed {}.\n\n```python\n{program}```\n", request.seed),
            reasoning: None,
            finish_reason: "stop".into(),
            tokens_prompt: Some(0),
            tokens_completion: Some(0),
            usage: UsageDetails::default(),
            cost_usd: Some(0.0),
            cached: false,
            latency: Duration::from_millis(1),
        })
    }
}

/// Reads the outcome from the program's text.
#[derive(Debug, Default)]
pub struct Instant {
    pub runs: AtomicUsize,
    /// Jobs that the back end loses before one comes through.
    pub faults_before_success: usize,
    /// Jobs that cannot be confirmed before one comes through.
    pub unconfirmed_before_success: usize,
    /// Longer jobs for earlier seeds, so that jobs end in another order than they began.
    pub shuffle: bool,
    /// What every program prints, to both streams.
    pub says: String,
    /// Programs print a score of themselves: 1 less the one they get.
    pub reports_opposite: bool,
    /// Jobs on the final data that come through, when there is such a number.
    pub final_jobs: Option<usize>,
    pub final_runs: AtomicUsize,
}

impl Instant {
    fn report(&self, code: &str) -> String {
        let score = assigned(code, "score").and_then(|score| score.parse::<f64>().ok());
        match score.filter(|_| self.reports_opposite) {
            Some(score) => format!("Final Validation Score: {}\n", 1.0 - score),
            None => String::new(),
        }
    }
}

fn assigned<'a>(code: &'a str, name: &str) -> Option<&'a str> {
    code.lines()
        .find_map(|line| line.strip_prefix(name)?.trim().strip_prefix('=').map(str::trim))
}

fn log(text: &str) -> CapturedLog {
    CapturedLog {
        head: text.into(),
        tail: String::new(),
        bytes: text.len() as u64,
        kept: text.as_bytes().to_vec(),
        truncated: false,
    }
}

#[async_trait]
impl Executor for Instant {
    fn name(&self) -> &str {
        "instant"
    }

    async fn run(&self, job: JobSpec, cancel: &CancellationToken) -> Result<JobOutcome, SandboxError> {
        let run = self.runs.fetch_add(1, Ordering::SeqCst);
        if run < self.faults_before_success {
            return Err(SandboxError::Helper("lost".into()));
        }
        let is_final = !job.data_dir.to_string_lossy().contains("validation");
        if is_final
            && self
                .final_jobs
                .is_some_and(|most| self.final_runs.fetch_add(1, Ordering::SeqCst) >= most)
        {
            return Err(SandboxError::Helper("lost".into()));
        }
        if self.shuffle {
            let pause = Duration::from_millis(if run.is_multiple_of(3) { 8 } else { 1 });
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = cancel.cancelled() => return Err(SandboxError::Cancelled),
            }
        }
        let is_unconfirmed = run < self.unconfirmed_before_success;
        let (end, state, submission, stderr) = match assigned(&job.code, "score") {
            _ if is_unconfirmed => (
                JobEnd::Setup("no user namespace".into()),
                Some(ResultState::SandboxUnconfirmed),
                None,
                "",
            ),
            Some(score) => {
                let path = job.output_dir.join(&job.output_name);
                std::fs::write(&path, score).map_err(|source| SandboxError::Io {
                    action: "write",
                    path: path.clone(),
                    source,
                })?;
                let collected = Collected {
                    path,
                    bytes: score.len() as u64,
                    sha256: clade::scheduler::sha256_hex(score.as_bytes()),
                };
                (JobEnd::Exited { code: 0 }, None, Some(collected), "")
            }
            None if job.code.contains("timeout") => (JobEnd::WallLimit, Some(ResultState::Timeout), None, ""),
            None => (
                JobEnd::Exited { code: 1 },
                Some(ResultState::CodeExecutionError),
                None,
                "Traceback (most recent call last):\n  File \"candidate.py\", line 3, in <module>\nValueError: made to fail\n",
            ),
        };
        Ok(JobOutcome {
            cause: end.cause(),
            exit_code: match end {
                JobEnd::Exited { code } => Some(code),
                _ => None,
            },
            end,
            state,
            detail: is_unconfirmed.then(|| "no user namespace".to_owned()),
            signal: None,
            oom: false,
            cpu_seconds: Some(0.0),
            wall_seconds: Some(0.001),
            peak_memory_bytes: Some(1),
            stdout: log(&format!("{}{}", self.says, self.report(&job.code))),
            stderr: log(&format!("{}{stderr}", self.says)),
            submission,
            isolation: IsolationReport::unsandboxed("instant"),
            warm: job.warm,
            queued_at: Utc::now(),
            started_at: Some(Utc::now()),
            finished_at: Utc::now(),
        })
    }

    async fn capabilities(&self) -> Result<CapabilityReport, SandboxError> {
        Err(SandboxError::Config("a test sandbox has no layers".into()))
    }

    async fn isolation(&self) -> Result<IsolationReport, SandboxError> {
        Ok(IsolationReport::unsandboxed("instant"))
    }

    async fn sweep(&self) -> Result<usize, SandboxError> {
        Ok(0)
    }
}

#[async_trait]
impl Evaluator for Instant {
    async fn evaluate(&self, spec: EvaluationSpec, _: &CancellationToken) -> Result<Evaluation, SandboxError> {
        let score = std::fs::read_to_string(&spec.submission)
            .ok()
            .and_then(|text| text.trim().parse().ok());
        Ok(Evaluation {
            score,
            valid: score.is_some(),
            higher_is_better: Some(true),
            metric_class: Some("TestMetrics".into()),
            instances: std::collections::BTreeMap::new(),
            state: if score.is_some() {
                ResultState::Success
            } else {
                ResultState::ScoringFailed
            },
            detail: None,
            wall_seconds: 0.001,
        })
    }
}

#[test]
fn the_class_of_an_unreachable_model_is_retryable() {
    let error = ModelError::Unreachable {
        model: "scripted".into(),
        message: String::new(),
    };
    assert_eq!(error.class(), clade::error::ErrorClass::Infra);
    assert_eq!(clade::sandbox::Cause::Exit.as_str(), "exit");
}
