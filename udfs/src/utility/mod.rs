//! Utilities of candidate parents: normalised scores and gains, novelty, the softmax that turns them into probabilities,
//! and the decay of its temperature.

mod decay;
mod delta;
mod normalize;
mod novelty;
mod softmax;
pub mod udf;

pub use decay::linear_decay;
pub use delta::{DeltaMode, UnknownDeltaMode, positive_delta_norm};
pub use normalize::{DEFAULT_HYBRID_WEIGHT, hybrid_norm, minmax_norm, rank_norm};
pub use novelty::novelty;
pub use softmax::softmax;
