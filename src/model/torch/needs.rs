//! Memory that a model would take.

use clade_lm_api::messages::{Load, Memory};
use tokio::task::spawn_blocking;

use super::library::library;
use super::loaded::LoadError;
use crate::model::MemoryNeeds;

/// What a model takes that is loaded so, by its files; nothing is loaded.
///
/// # Errors
/// When there is no libtorch, or a file or an option is wrong.
pub async fn needs(load: &Load) -> Result<MemoryNeeds, LoadError> {
    let load = load.clone();
    let told = spawn_blocking(move || -> Result<_, LoadError> { Ok(library()?.call(&Memory { load })?) });
    let told = told.await??;
    Ok(MemoryNeeds {
        weight_bytes: told.weight_bytes,
        cache_bytes: told.cache_bytes,
        free_bytes: Some(told.free_bytes),
    })
}
