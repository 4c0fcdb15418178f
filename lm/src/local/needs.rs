//! What a model would take of memory.

use clade_lm_api::messages::{Load, Needs};

use super::CACHE_SHARE;
use super::place::place_of;
use crate::error::Result;
use crate::load::{self, memory};
use crate::weights::Weights;

/// Memory of a model that is loaded so, by what its files say of their tensors; no weight is read.
///
/// # Errors
/// When an option or a file is wrong, or how much is free is not known.
pub fn needs(request: &Load) -> Result<Needs> {
    let checkpoint = load::open(&request.path)?;
    let (device, kind) = place_of(request, checkpoint.weights().as_ref())?;
    let weight_bytes = memory::needed(&checkpoint.weights().tensors(), kind);
    let free_bytes = memory::available(device)?;
    Ok(Needs {
        weight_bytes,
        cache_bytes: cache_bytes(request.cache_bytes, weight_bytes, free_bytes),
        free_bytes,
    })
}

/// Bytes of the cache: as many as are asked for, else the usual share of what the weights leave.
fn cache_bytes(asked: Option<u64>, weights: u64, free: u64) -> Option<u64> {
    asked.or_else(|| Some((free.checked_sub(weights)? as f64 * CACHE_SHARE) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_what_is_asked_for_or_a_third_of_the_rest() {
        assert_eq!(cache_bytes(Some(7), 100, 50), Some(7));
        assert_eq!(cache_bytes(None, 100, 400), Some(100));
        assert_eq!(cache_bytes(None, 100, 99), None, "not even the weights fit");
    }
}
