//! Causal language models in process, on libtorch.
//!
//! A checkpoint ([`Weights`]) and its configuration make a [`CausalLm`]; the engine runs many requests through it at once.

mod abi;
mod arch;
mod cache;
mod engine;
mod error;
pub mod load;
pub mod local;
mod model;
mod nn;
pub mod text;
mod weights;

pub use self::arch::{build, model_types};
pub use self::engine::{
    CacheMemory, Canceller, Completion, Counters, Detokenizer, End, EndReason, Engine, EngineOptions, Event,
    Generation, Places, Reply, Request, Sampling, Stats, TextDecoder, Token, TokenLogprob, TokenLogprobs, Usage,
};
pub use self::error::{LmError, Result};
pub use self::model::{Cache, CacheSize, CausalLm, LogitRows, ModelSpec, Step, StepSequence};
pub use self::weights::{Dtype, TensorInfo, Weights};

#[cfg(test)]
mod tests {
    use tch::{Kind, Tensor};

    #[test]
    fn libtorch_computes() {
        let sum = Tensor::arange(4, (Kind::Float, tch::Device::Cpu)).sum(Kind::Float);
        assert_eq!(sum.double_value(&[]), 6.0);
    }
}
