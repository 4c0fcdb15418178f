//! Generators: what turns a prompt into a program.
//!
//! A [`Generator`] answers one [`GenerateRequest`] with one [`Sample`], whose text is a short plan in words and then one
//! fenced Python program, whatever stands behind it: a language model, a recording, or a search over a grammar.

mod error;
mod evolver;
mod generator;
mod registry;
mod replay;
mod request;

pub use error::ModelError;
pub use evolver::Evolver;
pub use generator::{Generator, ModelInfo, TokenPrice};
pub use registry::ModelRegistry;
pub use replay::{RecordedGenerations, Replay};
pub use request::{GenerateRequest, Message, NodeContext, Role, Sample, SamplingParams, TaskContext};

#[cfg(test)]
mod tests;
