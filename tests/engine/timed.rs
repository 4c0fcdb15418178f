//! A clock that a test moves, and a generator and a sandbox whose work takes its time: hours pass in moments, second by second for
//! everybody who waits for the clock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use clade::model::{GenerateRequest, Generator, ModelError, ModelInfo, ReplyFault, Sample, TokenPrice, UsageDetails};
use clade::sandbox::{
    CapabilityReport, Cause, Evaluation, EvaluationSpec, Evaluator, Executor, IsolationReport, JobEnd, JobOutcome,
    JobSpec, ResultState, SandboxError,
};
use clade_catalog::Clock;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use super::instant::Instant;

/// Longest real time that a moved clock waits for those it woke to wait again; some never do.
const SETTLE: Duration = Duration::from_millis(200);

#[derive(Debug, Default)]
struct Times {
    now: i64,
    asleep: BTreeMap<(i64, u64), oneshot::Sender<()>>,
    count: u64,
}

/// A clock that stands still until it is moved.
#[derive(Debug, Default)]
pub struct MovedClock {
    times: Mutex<Times>,
    asleep: Notify,
}

impl MovedClock {
    fn sleepers(&self) -> usize {
        let mut times = self.times.lock();
        times.asleep.retain(|_, waker| !waker.is_closed());
        times.asleep.len()
    }

    /// Lets time pass, waking everybody in their order; false when the work was cancelled before its end.
    pub async fn pass(&self, time: Duration, cancel: &CancellationToken) -> bool {
        let end = self.now_micros() + i64::try_from(time.as_micros()).unwrap();
        while !cancel.is_cancelled() {
            let sleepers = self.sleepers();
            let waker = {
                let mut times = self.times.lock();
                match times.asleep.first_key_value() {
                    Some((&(until, id), _)) if until <= end => {
                        times.now = times.now.max(until);
                        times.asleep.remove(&(until, id))
                    }
                    _ => {
                        times.now = end;
                        return true;
                    }
                }
            };
            let _ = waker.unwrap().send(());
            let settled = async {
                while self.sleepers() < sleepers && !cancel.is_cancelled() {
                    tokio::select! {
                        () = self.asleep.notified() => {}
                        () = cancel.cancelled() => {}
                    }
                }
            };
            let _ = tokio::time::timeout(SETTLE, settled).await;
        }
        false
    }
}

impl Clock for MovedClock {
    fn now_micros(&self) -> i64 {
        self.times.lock().now
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        let (waker, woken) = oneshot::channel();
        {
            let mut times = self.times.lock();
            times.count += 1;
            let until = times.now + i64::try_from(time.as_micros()).unwrap();
            let id = times.count;
            times.asleep.insert((until, id), waker);
        }
        self.asleep.notify_one();
        woken.map(|_| ()).boxed()
    }
}

/// What moves the clock while something takes its time; without one only the durations count.
pub type Moves = Option<Arc<MovedClock>>;

async fn take(clock: &Moves, time: Duration, cancel: &CancellationToken) -> bool {
    match clock {
        Some(clock) => clock.pass(time, cancel).await,
        None => !cancel.is_cancelled(),
    }
}

/// Writes programs that take a while, and takes a while itself: seconds that depend on nothing but the seed.
#[derive(Debug)]
pub struct Slow {
    pub clock: Moves,
    /// Shortest and longest answer, seconds.
    pub answers: (u64, u64),
    /// Shortest and longest program, seconds.
    pub programs: (u64, u64),
}

fn within((least, most): (u64, u64), number: u64) -> u64 {
    least + number % (most - least + 1)
}

#[async_trait]
impl Generator for Slow {
    fn name(&self) -> &str {
        "scripted"
    }

    fn describe(&self) -> ModelInfo {
        ModelInfo::metered("test", Some(TokenPrice::flat(1.0, 2.0)))
    }

    async fn generate(&self, request: &GenerateRequest, cancel: &CancellationToken) -> Result<Sample, ModelError> {
        let wanted = Duration::from_secs(within(self.answers, request.seed));
        let latency = request.time_limit.map_or(wanted, |limit| limit.min(wanted));
        if !take(&self.clock, latency, cancel).await {
            return Err(ModelError::Cancelled);
        }
        let seconds = within(self.programs, request.seed / 7);
        let score = (request.seed % 9973) as f64 / 9973.0;
        let sample = Sample {
            text: format!("A plan.\n\n```python\nscore = {score}\nseconds = {seconds}\n```\n"),
            reasoning: None,
            finish_reason: "stop".into(),
            tokens_prompt: Some(7),
            tokens_completion: Some(5),
            usage: UsageDetails::default(),
            cost_usd: Some(17.0 / 1e6),
            cached: false,
            latency,
        };
        if latency == wanted {
            return Ok(sample);
        }
        let fault = ReplyFault::Stalled {
            setting: "what is left of max_model_sandbox",
            seconds: latency.as_secs_f64(),
            bytes: 0,
        };
        Err(ModelError::Reply {
            model: "scripted".into(),
            fault,
            sample: Box::new(Sample {
                text: String::new(),
                ..sample
            }),
        })
    }
}

/// Runs programs for as long as they say, up to their limit.
#[derive(Debug, Default)]
pub struct SlowSandbox {
    pub clock: Moves,
    /// Jobs, counted from 0, that run until they are cancelled.
    pub hold: Vec<usize>,
    pub held: Notify,
    pub jobs: AtomicUsize,
    pub inner: Instant,
}

#[async_trait]
impl Executor for SlowSandbox {
    fn name(&self) -> &str {
        "instant"
    }

    async fn run(&self, job: JobSpec, cancel: &CancellationToken) -> Result<JobOutcome, SandboxError> {
        let number = self.jobs.fetch_add(1, Ordering::SeqCst);
        if self.hold.contains(&number) {
            self.held.notify_one();
            cancel.cancelled().await;
            return Err(SandboxError::Cancelled);
        }
        let wanted = job.code.lines().find_map(|line| line.strip_prefix("seconds = "));
        let wanted = Duration::from_secs(wanted.unwrap().parse().unwrap());
        let limit = job.limits.wall;
        let taken = wanted.min(limit);
        if !take(&self.clock, taken, cancel).await {
            return Err(SandboxError::Cancelled);
        }
        let outcome = self.inner.run(job, cancel).await?;
        let wall_seconds = Some(taken.as_secs_f64());
        if taken == wanted {
            return Ok(JobOutcome {
                wall_seconds,
                ..outcome
            });
        }
        Ok(JobOutcome {
            end: JobEnd::WallLimit,
            cause: Cause::WallLimit,
            state: Some(ResultState::Timeout),
            exit_code: None,
            submission: None,
            wall_seconds,
            ..outcome
        })
    }

    async fn capabilities(&self) -> Result<CapabilityReport, SandboxError> {
        self.inner.capabilities().await
    }

    async fn isolation(&self) -> Result<IsolationReport, SandboxError> {
        self.inner.isolation().await
    }

    async fn sweep(&self) -> Result<usize, SandboxError> {
        Ok(0)
    }
}

#[async_trait]
impl Evaluator for SlowSandbox {
    async fn evaluate(&self, spec: EvaluationSpec, cancel: &CancellationToken) -> Result<Evaluation, SandboxError> {
        let evaluation = self.inner.evaluate(spec, cancel).await?;
        Ok(Evaluation {
            wall_seconds: 2.0,
            ..evaluation
        })
    }
}
