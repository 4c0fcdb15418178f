//! Runs many requests through one model at once.
//!
//! An [`Engine`] owns a [`CausalLm`](crate::CausalLm) and a cache of blocks on a thread of its own. Each step computes one token of every
//! running sample and a part of the prompts that begin (continuous batching, chunked prefill). Samples of one prompt share its blocks and
//! copy the last one when they go apart; later prompts begin with the blocks of earlier ones. What a sample draws depends on its request,
//! its seed and its number alone, never on what runs beside it.

mod blocks;
mod event;
mod generation;
mod handle;
mod options;
mod replacement;
mod reply;
mod request;
mod sampler;
mod scheduler;
mod shared;
mod stats;
mod text;
mod worker;

pub use clade_lm_api::messages::Sampling;

pub use self::event::{End, EndReason, Event, Token, TokenLogprob, TokenLogprobs, Usage};
pub use self::generation::{Canceller, Completion, Generation};
pub use self::handle::Engine;
pub use self::options::{CacheMemory, EngineOptions};
pub use self::reply::Reply;
pub use self::request::Request;
pub use self::stats::{Counters, Places, Stats};
pub use self::text::{Detokenizer, TextDecoder};
