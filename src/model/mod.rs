//! Generators: what turns a prompt into a program.
//!
//! A [`Generator`] answers one [`GenerateRequest`] with one [`Sample`], whose text is a short plan in words and then one
//! fenced Python program, whatever stands behind it: a language model, a recording, or a search over a grammar.

mod access;
mod error;
mod evolver;
mod fault;
mod gate;
mod generator;
mod memory_needs;
mod openai;
mod options;
mod registry;
mod replay;
mod request;
mod tokenizer;
pub mod torch;

pub use access::ModelAccess;
pub use error::ModelError;
pub use evolver::Evolver;
pub use fault::ReplyFault;
pub use gate::Pause;
pub use generator::{Generator, ModelInfo, SamplingDefaults, TokenPrice};
pub use memory_needs::MemoryNeeds;
pub use openai::{OpenAi, Profile, prompt_token_bound};
pub use options::{ModelOptions, OptionsError, Provider, WrongOption};
pub use registry::{ModelEntry, ModelRegistry, Origin, StoredModel, StoredModels};
pub use replay::{RecordedGenerations, Replay};
pub use request::{
    GenerateRequest, Message, NodeContext, Role, Sample, SamplingParams, TaskContext, TextRequest, UsageDetails,
};
pub use tokenizer::{TokenCounter, Tokenizer, TokenizerError};

#[cfg(test)]
mod tests;
