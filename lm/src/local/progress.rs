//! How far loading is.

use std::sync::atomic::{AtomicU64, Ordering};

use clade_lm_api::messages::Progress;
use tch::{Kind, Tensor};

use crate::load::memory;
use crate::weights::Weights;

/// Makes of what is read how much of all is there.
pub(super) fn progress<'a>(
    weights: &dyn Weights,
    kind: Kind,
    tell: &'a (dyn Fn(Progress) + Sync),
) -> impl Fn(&Tensor) + Sync + 'a {
    let all = memory::needed(&weights.tensors(), kind);
    let done = AtomicU64::new(0);
    move |tensor| {
        let bytes = tensor.numel() as u64 * kind.elt_size_in_bytes() as u64;
        let done = done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        tell(Progress {
            done: done.min(all),
            all,
        });
    }
}
