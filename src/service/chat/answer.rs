//! What is answered: a whole completion, or its pieces.

use clade_lm_api::messages::{Likely, Usage as LmUsage};
use serde::Serialize;

/// A whole completion.
#[derive(Debug, Serialize)]
pub(super) struct Completion {
    pub id: String,
    pub object: &'static str,
    pub created: i64,
    pub model: String,
    pub choices: Vec<Choice>,
    pub usage: Usage,
}

/// One answer.
#[derive(Debug, Serialize)]
pub(super) struct Choice {
    pub index: usize,
    pub message: AnswerMessage,
    pub logprobs: Option<Logprobs>,
    pub finish_reason: String,
}

/// The text of an answer.
#[derive(Debug, Default, Serialize)]
pub(super) struct AnswerMessage {
    pub role: &'static str,
    pub content: String,
}

/// Log-probabilities of the tokens of an answer.
#[derive(Debug, Default, Serialize)]
pub(super) struct Logprobs {
    pub content: Vec<TokenLogprob>,
}

/// Log-probability of a token.
#[derive(Debug, Serialize)]
pub(super) struct TokenLogprob {
    token: String,
    logprob: f32,
    bytes: Vec<u8>,
    top_logprobs: Vec<TopLogprob>,
}

/// Log-probability of a token that might have come.
#[derive(Debug, Serialize)]
struct TopLogprob {
    token: String,
    logprob: f32,
    bytes: Vec<u8>,
}

/// What a request used.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub(super) struct Usage {
    prompt_tokens: usize,
    completion_tokens: usize,
    total_tokens: usize,
    prompt_tokens_details: PromptTokens,
    #[serde(skip)]
    answers: usize,
}

#[derive(Debug, Default, Clone, Copy, Serialize)]
struct PromptTokens {
    cached_tokens: usize,
}

/// A piece of a completion.
#[derive(Debug, Serialize)]
pub(super) struct Chunk<'a> {
    pub id: &'a str,
    pub object: &'static str,
    pub created: i64,
    pub model: &'a str,
    pub choices: Vec<ChunkChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// A piece of one answer.
#[derive(Debug, Serialize)]
pub(super) struct ChunkChoice {
    pub index: usize,
    pub delta: Delta,
    pub logprobs: Option<Logprobs>,
    pub finish_reason: Option<String>,
}

/// What is new.
#[derive(Debug, Default, Serialize)]
pub(super) struct Delta {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

impl TokenLogprob {
    pub(super) fn new(token: String, logprob: f32, top: Vec<Likely>) -> Self {
        Self {
            bytes: token.clone().into_bytes(),
            token,
            logprob,
            top_logprobs: top
                .into_iter()
                .map(|likely| TopLogprob {
                    bytes: likely.text.clone().into_bytes(),
                    token: likely.text,
                    logprob: likely.logprob,
                })
                .collect(),
        }
    }
}

impl Usage {
    /// Adds an answer; the prompt is that of all answers and counts once.
    pub(super) fn add(&mut self, used: LmUsage) {
        self.prompt_tokens = used.prompt_tokens;
        self.completion_tokens += used.completion_tokens;
        self.total_tokens = self.prompt_tokens + self.completion_tokens;
        // The answer that began first found what earlier requests had left, the others found its whole prompt.
        let cached = &mut self.prompt_tokens_details.cached_tokens;
        *cached = if self.answers == 0 {
            used.cached_tokens
        } else {
            used.cached_tokens.min(*cached)
        };
        self.answers += 1;
    }
}
