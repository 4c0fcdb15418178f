//! What the scheduler works with: the store, queries on it, generators, sandboxes, tasks, prompts, time.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use clade_catalog::{Clock, Store};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::error::{Result, SchedulerError};
use super::summaries::SummariesInWork;
use crate::gym::Task;
use crate::memory::MemoryPrompts;
use crate::model::ModelRegistry;
use crate::operators::{Interpreter, Prompts};
use crate::sandbox::{Evaluator, Executor, Limits};
use crate::scheduler::generation::overview::Overviews;
use crate::session::Queries;

/// A back end that runs candidates and evaluates their submissions.
#[derive(Debug, Clone)]
pub struct Sandbox {
    /// Runs programs.
    pub executor: Arc<dyn Executor>,
    /// Scores submissions.
    pub evaluator: Arc<dyn Evaluator>,
}

/// Back ends by name.
pub type Sandboxes = std::collections::BTreeMap<String, Sandbox>;

/// Everything a pipeline needs; shared by all of them.
#[derive(Debug)]
pub struct Services {
    /// The store.
    pub store: Store,
    /// Internal queries.
    pub queries: Arc<Queries>,
    /// Generators.
    pub models: ModelRegistry,
    /// Sandboxes.
    pub sandboxes: Sandboxes,
    /// Prompt templates and skills.
    pub prompts: Prompts,
    /// Prompt templates of the memory model.
    pub memory_prompts: MemoryPrompts,
    /// Summaries that this process is asking for.
    pub summaries: SummariesInWork,
    /// The interpreter of candidates, whose packages prompts name.
    pub interpreter: Interpreter,
    /// Limits of a candidate; the wall limit comes from the attempt.
    pub candidate_limits: Limits,
    /// Limits of an evaluation.
    pub evaluation_limits: Limits,
    /// Jobs that may run at once; waiting for one is no part of any budget.
    pub job_slots: Semaphore,
    /// Where jobs leave what was collected, until it is recorded.
    pub work_dir: PathBuf,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Identity of this process in leases.
    pub owner: String,
    /// Tasks that were loaded, by id.
    pub tasks: Mutex<HashMap<String, Arc<Task>>>,
    /// Overviews of their files.
    pub overviews: Overviews,
}

impl Services {
    /// Microseconds since the Unix epoch.
    pub fn now(&self) -> i64 {
        self.clock.now_micros()
    }

    /// The sandbox of a name.
    ///
    /// # Errors
    /// When there is none; the message lists the known ones.
    pub fn sandbox(&self, name: &str) -> Result<&Sandbox> {
        self.sandboxes.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.sandboxes.keys().map(String::as_str).collect();
            SchedulerError::Request(format!(
                "unknown sandbox '{name}': the sandboxes are {}",
                known.join(", ")
            ))
        })
    }
}
