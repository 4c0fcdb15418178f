//! A store with a small task and a generator that says what it is told, so that a test decides what each step of a search meets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use clade::engine::{Engine, OpenMode};
use clade::model::{GenerateRequest, Generator, ModelError, ModelInfo, Sample, UsageDetails};
use clade::sandbox::{Evaluator, Executor, NativeExecutor};
use clade::scheduler::Sandbox;
use tempfile::TempDir;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::engine::fixture::{add_task, instant, open_store};
use crate::engine::instant::{Instant, program};
use crate::sandbox::support::Bench;

/// What the generator says.
#[derive(Debug, Clone)]
pub enum Reply {
    /// This program.
    Program(String),
    /// This text, whatever it is.
    Text(String),
    /// A program that depends on nothing but the seed.
    Seeded,
    /// The provider cannot be reached.
    Fault,
    /// Nothing until the test lets go or the run is killed; then a program of the seed.
    Hold,
}

/// A program of the instant sandbox with a score. The number keeps programs of one score apart.
pub fn scored(number: usize, score: f64) -> Reply {
    Reply::Program(format!("# {number}\nscore = {score:?}\n"))
}

/// A program of the instant sandbox that fails.
pub fn failing(number: usize) -> Reply {
    Reply::Program(format!("# {number}\nfail = 'error'\n"))
}

/// A real program that submits a score and does something more.
pub fn submits(score: f64, more: &str) -> Reply {
    Reply::Program(format!(
        "import os\nopen('submission.csv', 'w').write('{score:?}')\n{more}\n"
    ))
}

/// Gives one reply a call; the last one again and again.
#[derive(Debug)]
pub struct Given {
    replies: Vec<Reply>,
    pub calls: AtomicUsize,
    reached: Notify,
    release: Notify,
}

impl Given {
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self {
            replies: replies.into_iter().collect(),
            calls: AtomicUsize::default(),
            reached: Notify::new(),
            release: Notify::new(),
        }
    }

    /// Waits until the generator holds.
    pub async fn holds(&self) {
        self.reached.notified().await;
    }

    /// Lets go.
    pub fn let_go(&self) {
        self.release.notify_one();
    }
}

#[async_trait]
impl Generator for Given {
    fn name(&self) -> &str {
        "scripted"
    }

    fn describe(&self) -> ModelInfo {
        ModelInfo::free("test")
    }

    async fn generate(&self, request: &GenerateRequest, cancel: &CancellationToken) -> Result<Sample, ModelError> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst).min(self.replies.len() - 1);
        let seeded = || program(request.seed, request.operator.as_str());
        let in_words = |code: String| format!("A plan.\n\n```python\n{code}```\n");
        let text = match &self.replies[call] {
            Reply::Program(code) => in_words(code.clone()),
            Reply::Text(text) => text.clone(),
            Reply::Seeded => in_words(seeded()),
            Reply::Fault => {
                return Err(ModelError::Unreachable {
                    model: "scripted".into(),
                    message: "no route to host".into(),
                });
            }
            Reply::Hold => {
                self.reached.notify_one();
                tokio::select! {
                    () = cancel.cancelled() => return Err(ModelError::Cancelled),
                    () = self.release.notified() => in_words(seeded()),
                }
            }
        };
        Ok(Sample {
            text,
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

/// A store with the task `toy`, its generator and its sandbox.
pub struct Bed {
    folder: TempDir,
    pub model: Arc<Given>,
    sandbox: Sandbox,
    settings: Vec<&'static str>,
}

impl Bed {
    /// Programs whose outcome is read from their text.
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::with(replies, instant(Arc::new(Instant::default())))
    }

    pub fn with(replies: impl IntoIterator<Item = Reply>, sandbox: Sandbox) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            model: Arc::new(Given::new(replies)),
            sandbox,
            settings: Vec::new(),
        }
    }

    /// The same with a setting, written `key=value`.
    pub fn set(mut self, setting: &'static str) -> Self {
        self.settings.push(setting);
        self
    }

    /// The engine on a new store.
    pub async fn create(&self) -> Arc<Engine> {
        let engine = self.open(OpenMode::Create).await;
        add_task(&engine, "toy").await;
        engine
    }

    /// The engine on the store that was made before.
    pub async fn open(&self, mode: OpenMode) -> Arc<Engine> {
        let store = self.folder.path().join("store");
        let models = vec![Arc::clone(&self.model) as _];
        open_store(&store, &self.settings, models, self.sandbox.clone(), mode)
            .await
            .unwrap()
    }
}

/// Real programs in the native sandbox. The submission is the score as text, so that no metric has to be started.
pub struct NativeBed {
    pub bench: Bench,
    native: Arc<NativeExecutor>,
    pub bed: Bed,
}

impl NativeBed {
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let bench = Bench::new();
        let native = Arc::new(bench.native());
        let sandbox = Sandbox {
            executor: Arc::clone(&native) as Arc<dyn Executor>,
            evaluator: Arc::new(Instant::default()) as Arc<dyn Evaluator>,
        };
        let bed = Bed::with(replies, sandbox).set("sandbox.warm=false");
        Self { bench, native, bed }
    }

    pub fn set(self, setting: &'static str) -> Self {
        Self {
            bed: self.bed.set(setting),
            ..self
        }
    }

    /// Ends all of it and checks that no process, mount or folder is left.
    pub async fn finish(self, engine: Arc<Engine>) {
        engine.close().await;
        drop((engine, self.bed));
        self.bench.finish(self.native);
    }
}
