//! The library of models, loaded once a process.

use std::sync::Arc;

use clade_lm_api::{ApiError, Library};
use parking_lot::Mutex;

static LIBRARY: Mutex<Option<Arc<Library>>> = Mutex::new(None);

/// Why there is no library.
#[derive(Debug, thiserror::Error)]
#[error("models with provider torch need libtorch: {0}")]
pub struct NoLibrary(#[from] ApiError);

/// The library. It blocks for the third of a second that loading takes; one that could not be loaded is looked for again.
///
/// # Errors
/// When there is none, with how to get it.
pub fn library() -> Result<Arc<Library>, NoLibrary> {
    let mut known = LIBRARY.lock();
    if let Some(library) = &*known {
        return Ok(Arc::clone(library));
    }
    let library = Arc::new(Library::load(&Library::usual_path())?);
    tracing::info!(path = %library.path().display(), "the model library is loaded");
    *known = Some(Arc::clone(&library));
    Ok(library)
}
