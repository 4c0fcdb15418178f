//! What is asked of the engine.

use clade_lm_api::messages::Sampling;

use crate::error::{LmError, Result};

/// One prompt and how it is to be continued.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Tokens of the prompt. They are not repeated in the answer.
    pub prompt: Vec<i64>,
    /// Number of answers. The prompt is computed once for all of them.
    pub samples: usize,
    /// Most tokens of an answer, the stop token included.
    pub max_tokens: usize,
    /// How tokens are drawn; what is left out has no effect.
    pub sampling: Sampling,
    /// Tokens that end an answer. The token is told, its text is not.
    pub stop_tokens: Vec<i64>,
    /// Texts that end an answer. They are found across tokens, and cut from the text.
    pub stop_strings: Vec<String>,
    /// Whether log-probabilities are told, and for how many of the most likely tokens beside the drawn one.
    pub logprobs: Option<usize>,
    /// Requests of a higher priority begin sooner; of equal ones, the one that came first.
    pub priority: i32,
}

impl Request {
    /// One sample of the model's own distribution, without stops.
    pub fn new(prompt: Vec<i64>, max_tokens: usize) -> Self {
        Self {
            prompt,
            samples: 1,
            max_tokens,
            sampling: Sampling::default(),
            stop_tokens: Vec::new(),
            stop_strings: Vec::new(),
            logprobs: None,
            priority: 0,
        }
    }

    /// Most tokens of one sample that are ever in the cache: the last token of an answer is not read again.
    pub(super) fn longest(&self) -> usize {
        self.prompt.len() + self.max_tokens.saturating_sub(1)
    }

    /// Refuses what no engine of a vocabulary could do.
    pub(super) fn check(&self, vocab_size: i64) -> Result<()> {
        let refused = |problem: String| Err(LmError::Request(problem));
        if self.prompt.is_empty() {
            return refused("the prompt has no tokens".to_owned());
        }
        let strange = self
            .prompt
            .iter()
            .chain(&self.stop_tokens)
            .find(|id| !(0..vocab_size).contains(*id));
        if let Some(id) = strange {
            return refused(format!(
                "the token {id} is not in the vocabulary, which has {vocab_size} tokens"
            ));
        }
        if self.samples == 0 || self.max_tokens == 0 {
            return refused(format!(
                "{} samples of at most {} tokens were asked for, both must be at least 1",
                self.samples, self.max_tokens
            ));
        }
        if u32::try_from(self.samples).is_err() {
            return refused(format!("{} samples are too many for one request", self.samples));
        }
        if self.stop_strings.iter().any(String::is_empty) {
            return refused("a stop string is empty".to_owned());
        }
        if let Some(count) = self.logprobs
            && i64::try_from(count).is_ok_and(|count| count > vocab_size)
        {
            return refused(format!(
                "logprobs is {count}, but the vocabulary has {vocab_size} tokens"
            ));
        }
        let sampling = self.sampling.check();
        sampling.map_err(|wrong| LmError::Request(wrong.to_string()))
    }
}
