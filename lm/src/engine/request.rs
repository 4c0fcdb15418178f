//! What is asked of the engine.

use crate::error::{LmError, Result};

/// Lowest temperature other than 0; a lower one is the same as 0 in single precision.
const LOWEST_TEMPERATURE: f64 = 1e-4;

/// How tokens are drawn. The steps are taken in this order: penalties, temperature, top-k, top-p, min-p.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// Divisor of the logits; 0 takes the most likely token, and of equal ones that with the lowest id.
    pub temperature: f64,
    /// Number of most likely tokens to draw from; `None` = all.
    pub top_k: Option<usize>,
    /// Share of the probability that the most likely tokens to draw from must reach; 1 = all tokens.
    pub top_p: f64,
    /// Lowest probability of a token, as a share of that of the most likely one; 0 = all tokens.
    pub min_p: f64,
    /// Divisor of positive and factor of negative logits of tokens that are in the prompt or the answer; 1 = none.
    pub repetition_penalty: f64,
    /// Taken off the logits of tokens that are in the answer; 0 = none.
    pub presence_penalty: f64,
    /// Taken off the logit of a token for each time it is in the answer; 0 = none.
    pub frequency_penalty: f64,
    /// Seed of the request. What sample `i` draws depends on the seed and `i` alone. `None` = a random one, which the
    /// [`Generation`](super::Generation) tells.
    pub seed: Option<u64>,
}

impl Default for Sampling {
    /// The model's own distribution.
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_k: None,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            seed: None,
        }
    }
}

impl Sampling {
    /// The most likely token each time.
    pub fn greedy() -> Self {
        Self {
            temperature: 0.0,
            ..Self::default()
        }
    }

    /// Whether logits are changed by what was said before.
    pub(super) fn has_penalties(&self) -> bool {
        self.repetition_penalty != 1.0 || self.presence_penalty != 0.0 || self.frequency_penalty != 0.0
    }

    fn check(&self) -> Result<()> {
        let wrong =
            |name: &str, value: f64, must: &str| Err(LmError::Request(format!("{name} is {value}, it must be {must}")));
        let temperature = self.temperature;
        if temperature != 0.0 && !(temperature >= LOWEST_TEMPERATURE && temperature.is_finite()) {
            return wrong("temperature", temperature, "0, or a number from 0.0001");
        }
        if self.top_k == Some(0) {
            return wrong("top_k", 0.0, "at least 1 (or not given, for all tokens)");
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            return wrong("top_p", self.top_p, "above 0 and at most 1");
        }
        if !(0.0..=1.0).contains(&self.min_p) {
            return wrong("min_p", self.min_p, "from 0 to 1");
        }
        if !(self.repetition_penalty > 0.0 && self.repetition_penalty.is_finite()) {
            return wrong("repetition_penalty", self.repetition_penalty, "a number above 0");
        }
        for (name, value) in [
            ("presence_penalty", self.presence_penalty),
            ("frequency_penalty", self.frequency_penalty),
        ] {
            if !value.is_finite() {
                return wrong(name, value, "a finite number");
            }
        }
        Ok(())
    }
}

/// One prompt and how it is to be continued.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Tokens of the prompt. They are not repeated in the answer.
    pub prompt: Vec<i64>,
    /// Number of answers. The prompt is computed once for all of them.
    pub samples: usize,
    /// Most tokens of an answer, the stop token included.
    pub max_tokens: usize,
    /// How tokens are drawn.
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
        self.sampling.check()
    }
}
