//! A model as the engine sees it: ragged steps over a cache of blocks.

use tch::{Device, Kind, Tensor};

use crate::error::Result;
use crate::weights::Weights;

/// What the engine must know of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSpec {
    /// Architecture, as `model_type` of the configuration says.
    pub model_type: String,
    /// Number format of weights and activations.
    pub kind: Kind,
    /// Device of weights and cache.
    pub device: Device,
    /// Size of the vocabulary, which is the width of logits.
    pub vocab_size: i64,
    /// Positions that the model was made for.
    pub max_positions: usize,
    /// Number of parameters.
    pub parameters: u64,
    /// Bytes of weights in memory.
    pub weight_bytes: u64,
    /// Bytes of keys and values for one token, all layers together.
    pub kv_bytes_per_token: u64,
    /// Bytes of recurrent state for one sequence, all layers together; 0 for pure attention.
    pub state_bytes_per_sequence: u64,
}

/// Size of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheSize {
    /// Tokens in a block.
    pub block_tokens: usize,
    /// Blocks.
    pub blocks: usize,
    /// Slots for recurrent state; unused by pure attention.
    pub states: usize,
}

/// Which tokens of a sequence give a row of logits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogitRows {
    /// None: a part of a prompt.
    None,
    /// The last token.
    Last,
    /// Every token of the step.
    All,
}

/// The part of one sequence in a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepSequence {
    /// Tokens of it that are in the cache: the position of the first new one.
    pub start: usize,
    /// New tokens.
    pub len: usize,
    /// Blocks that hold positions `0..start + len`, in order. The new tokens are written into the last ones, which no other
    /// sequence of the step shares. Sequences that share a prefix have the same blocks at their beginning.
    pub blocks: Vec<u32>,
    /// Slot of the recurrent state, which is that after `start` tokens (and is reset where `start` is 0).
    pub state: u32,
    /// Rows of logits that are wanted.
    pub logits: LogitRows,
}

/// One pass through the model: the new tokens of some sequences, one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
    /// Tokens of all sequences, as many for each as its `len`.
    pub tokens: Vec<i64>,
    /// The sequences.
    pub sequences: Vec<StepSequence>,
}

/// Keys, values and recurrent states of sequences. Who owns which block is the engine's affair.
pub trait Cache: Send + std::fmt::Debug {
    /// Its size.
    fn size(&self) -> CacheSize;

    /// Copies a block, in all layers.
    ///
    /// # Errors
    /// When libtorch fails.
    fn copy_block(&mut self, from: u32, to: u32) -> Result<()>;

    /// Copies a recurrent state, in all layers.
    ///
    /// # Errors
    /// When libtorch fails.
    fn copy_state(&mut self, from: u32, to: u32) -> Result<()>;

    /// The cache as its model knows it.
    fn as_any_mut(&mut self) -> &mut dyn std::any::Any;
}

/// A causal language model.
pub trait CausalLm: Send + std::fmt::Debug {
    /// What is to be known of it.
    fn spec(&self) -> &ModelSpec;

    /// An empty cache.
    ///
    /// # Errors
    /// When there is too little memory.
    fn new_cache(&self, size: CacheSize) -> Result<Box<dyn Cache>>;

    /// Runs a step, writes its keys, values and states into the cache, and gives the wanted logits, float32, as rows in the order of
    /// the sequences: `[rows, vocab_size]`, on the model's device.
    ///
    /// # Errors
    /// When the cache is another model's, a sequence does not fit its blocks, or libtorch fails.
    fn forward(&self, step: &Step, cache: &mut dyn Cache) -> Result<Tensor>;

    /// Replaces all weights in place. The shapes must be the same.
    ///
    /// # Errors
    /// When a tensor is missing or has another shape; the old weights are then still there. When one cannot be read; those that were read
    /// before it are then replaced.
    fn replace_weights(&mut self, weights: &dyn Weights) -> Result<()>;
}
