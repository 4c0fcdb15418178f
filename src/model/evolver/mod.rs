//! The `evolver`: a generator without a language model. It knows a grammar of scikit-learn programs and searches in it:
//! drafts are drawn from what usually works for a task of this kind, improvements change one or two parts, repairs follow the
//! error, and crossovers join two programs. It needs no network, no weights and no money, keeps nothing between calls, and
//! gives the same answer to the same request on every machine.
//!
//! A program carries its genome as the literal `CONFIG`, so a parent is read back from its text. Programs that others wrote
//! are met half-way: the nearest genome to the estimators they use is where the search goes on.

mod chance;
mod cost;
mod cross;
mod draw;
mod foreign;
mod genome;
mod literal;
mod metric;
mod mutate;
mod plan;
mod profile;
mod render;
mod repair;
mod search;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use self::profile::TaskProfile;
use super::error::ModelError;
use super::generator::{Generator, ModelInfo};
use super::request::{GenerateRequest, Sample, TaskContext, UsageDetails};

/// What decides a profile.
type ProfileKey = (String, PathBuf, String, bool);

/// Most task profiles kept in memory.
const MOST_PROFILES: usize = 64;

/// The built-in generator. It is free: samples count no tokens and cost nothing.
#[derive(Debug, Default)]
pub struct Evolver {
    /// Task profiles, read once: public files of a task do not change.
    profiles: Mutex<HashMap<ProfileKey, Arc<TaskProfile>>>,
}

impl Evolver {
    /// Name under which it is registered.
    pub const NAME: &str = "evolver";

    /// A new evolver.
    pub fn new() -> Self {
        Self::default()
    }

    async fn profile(&self, task: &Arc<TaskContext>) -> Result<Arc<TaskProfile>, ModelError> {
        let key = profile::cache_key(task);
        let known = self.profiles.lock().get(&key).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let task = Arc::clone(task);
        let reading = tokio::task::spawn_blocking(move || TaskProfile::read(&task));
        let read = reading.await.map_err(|error| ModelError::Provider {
            model: Self::NAME.to_owned(),
            message: format!("reading the task's files stopped: {error}"),
        })??;
        let mut profiles = self.profiles.lock();
        if profiles.len() >= MOST_PROFILES {
            profiles.clear();
        }
        Ok(Arc::clone(profiles.entry(key).or_insert(Arc::new(read))))
    }
}

#[async_trait]
impl Generator for Evolver {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn describe(&self) -> ModelInfo {
        ModelInfo::free(Self::NAME)
    }

    async fn generate(&self, request: &GenerateRequest, cancel: &CancellationToken) -> Result<Sample, ModelError> {
        if cancel.is_cancelled() {
            return Err(ModelError::Cancelled);
        }
        let start = Instant::now();
        let profile = self.profile(&request.task).await?;
        let program = search::program(request, &profile)?;
        Ok(Sample {
            text: format!("{}\n\n```python\n{}```\n", program.plan, program.code),
            reasoning: None,
            finish_reason: "stop".to_owned(),
            tokens_prompt: Some(0),
            tokens_completion: Some(0),
            usage: UsageDetails::default(),
            cost_usd: Some(0.0),
            cached: false,
            latency: start.elapsed(),
        })
    }
}
