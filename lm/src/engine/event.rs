//! What a request gets back, piece by piece.

use std::sync::Arc;

use crate::error::LmError;

/// Log-probability of a token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenLogprob {
    /// The token.
    pub id: i64,
    /// Natural logarithm of its probability under the model.
    pub logprob: f32,
}

/// Log-probabilities of a drawn token.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenLogprobs {
    /// Under the model: the softmax of its logits, at temperature 1 and before penalties and filters.
    pub model: f32,
    /// Under the distribution that the token was drawn from: after penalties, temperature, top-k, top-p and min-p. At temperature 0 it is
    /// 0, because no other token could come.
    pub sampling: f32,
    /// The most likely tokens under the model, as many as the request asks for, the most likely one first.
    pub top: Vec<TokenLogprob>,
}

/// A token of a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    /// Number of the sample, from 0.
    pub sample: usize,
    /// The token.
    pub id: i64,
    /// Text that is certain with it. It may be empty or belong to tokens before: half a character waits for its other half, and what may
    /// be the beginning of a stop string waits until it is known not to be one.
    pub text: String,
    /// Log-probabilities, where the request asks for them.
    pub logprobs: Option<TokenLogprobs>,
}

/// Why a sample ended.
#[derive(Debug, Clone)]
pub enum EndReason {
    /// It drew a stop token.
    StopToken(i64),
    /// Its text came to a stop string: its number in the request.
    StopString(usize),
    /// It has as many tokens as the request allows.
    Length,
    /// The request was cancelled.
    Cancelled,
    /// It could not go on.
    Error(Arc<LmError>),
}

impl EndReason {
    /// One word: `stop`, `length`, `cancelled` or `error`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::StopToken(_) | Self::StopString(_) => "stop",
            Self::Length => "length",
            Self::Cancelled => "cancelled",
            Self::Error(_) => "error",
        }
    }
}

/// What a sample used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Of these, tokens that were in the cache when the sample began: from earlier requests, or from the first sample of its request.
    pub cached_tokens: usize,
    /// Tokens of the answer.
    pub completion_tokens: usize,
    /// How often the sample lost its blocks, to older samples or because a step failed, and was computed again.
    pub preemptions: usize,
}

/// The end of a sample.
#[derive(Debug, Clone)]
pub struct End {
    /// Number of the sample, from 0.
    pub sample: usize,
    /// Why it ended.
    pub reason: EndReason,
    /// Text that waited, and is certain now.
    pub text: String,
    /// What it used.
    pub usage: Usage,
}

/// Something that happened to a sample.
#[derive(Debug, Clone)]
pub enum Event {
    /// It has a token more.
    Token(Token),
    /// It ended. Nothing follows for this sample.
    End(End),
}

impl Event {
    /// Number of the sample that it is about.
    pub fn sample(&self) -> usize {
        match self {
            Self::Token(token) => token.sample,
            Self::End(end) => end.sample,
        }
    }
}
