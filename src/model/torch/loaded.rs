//! A model in memory. Who asks for the same weights with the same options gets the same one; the last who drops it frees it.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};

use clade_lm_api::messages::{Activity, Begun, Cancel, Event, Generate, Load, Loaded, Progress, Unload, Watch};
use clade_lm_api::{ApiError, Library};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tracing::warn;

use super::library::{NoLibrary, library};

/// Where a model is, or will be: the lock is held while it loads.
type Place = Arc<tokio::sync::Mutex<Weak<LoadedModel>>>;

/// Models in memory, and those that are on their way.
static MODELS: LazyLock<Mutex<HashMap<Load, Place>>> = LazyLock::new(Mutex::default);

/// Why a model is not in memory.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There is no libtorch.
    #[error(transparent)]
    Library(#[from] NoLibrary),
    /// The model cannot be loaded.
    #[error(transparent)]
    Model(#[from] ApiError),
    /// The task that loads it failed.
    #[error("loading was broken off: {0}")]
    Task(#[from] tokio::task::JoinError),
}

/// A model in memory.
#[derive(Debug)]
pub struct LoadedModel {
    host: Arc<Library>,
    facts: Loaded,
}

/// Gives a model, which is loaded unless it is there. `progress` is told how far loading is.
///
/// # Errors
/// When there is no libtorch, or the model cannot be loaded.
pub async fn load(request: &Load, progress: impl Fn(Progress) + Send + 'static) -> Result<Arc<LoadedModel>, LoadError> {
    let place = Arc::clone(MODELS.lock().entry(request.clone()).or_default());
    let mut place = place.lock_owned().await;
    if let Some(model) = place.upgrade() {
        return Ok(model);
    }
    let request = request.clone();
    // The place is held until the model is there, also when who asked for it has gone.
    let loaded = spawn_blocking(move || -> Result<Arc<LoadedModel>, LoadError> {
        let host = library()?;
        let facts = host.stream(&request, move |event| match serde_json::from_slice(event) {
            Ok(event) => progress(event),
            Err(error) => warn!(%error, "what the model library says of its progress makes no sense"),
        })?;
        let model = Arc::new(LoadedModel { host, facts });
        *place = Arc::downgrade(&model);
        Ok(model)
    });
    loaded.await?
}

impl LoadedModel {
    /// What is known of it.
    pub fn facts(&self) -> &Loaded {
        &self.facts
    }

    /// Its handle.
    pub fn handle(&self) -> u64 {
        self.facts.model
    }

    /// Begins a request.
    ///
    /// # Errors
    /// When it cannot be served.
    pub fn generate(self: &Arc<Self>, request: &Generate) -> Result<Answers, ApiError> {
        let (sender, events) = mpsc::unbounded_channel();
        let begun = self.host.stream(request, move |event| {
            match serde_json::from_slice(event) {
                // Nobody listens any more: the request is cancelled already.
                Ok(event) => drop(sender.send(event)),
                Err(error) => warn!(%error, "an event of the model library makes no sense"),
            }
        })?;
        Ok(Answers {
            model: Arc::clone(self),
            begun,
            events,
        })
    }

    /// What it is doing.
    ///
    /// # Errors
    /// When the library does not say.
    pub fn activity(&self) -> Result<Activity, ApiError> {
        self.host.call(&Watch { model: self.handle() })
    }
}

impl Drop for LoadedModel {
    fn drop(&mut self) {
        if let Err(error) = self.host.call(&Unload { model: self.handle() }) {
            warn!(%error, "a model was not given back");
        }
    }
}

/// The answers to a request, on their way. Dropping it cancels the request.
#[derive(Debug)]
pub struct Answers {
    model: Arc<LoadedModel>,
    begun: Begun,
    events: mpsc::UnboundedReceiver<Event>,
}

impl Answers {
    /// What was begun.
    pub fn begun(&self) -> Begun {
        self.begun
    }

    /// The next event; none after the last one.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        let cancel = Cancel {
            generation: self.begun.generation,
        };
        if let Err(error) = self.model.host.call(&cancel) {
            warn!(%error, "a request was not cancelled");
        }
    }
}
