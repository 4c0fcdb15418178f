//! How tokens are drawn: the parameters, what each is where it is left out, and which values there can be.

use serde::{Deserialize, Serialize};

/// Lowest temperature other than 0; a lower one is the same as 0 in single precision.
const LOWEST_TEMPERATURE: f64 = 1e-4;

/// How tokens are drawn. The steps are taken in this order: penalties, temperature, top-k, top-p, min-p. What is left out of a request
/// is the model's own advice (`generation_config.json`), else has no effect.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// Divisor of the logits; 0 takes the most likely token, and of equal ones that with the lowest id.
    pub temperature: Option<f64>,
    /// Number of most likely tokens to draw from.
    pub top_k: Option<usize>,
    /// Share of the probability that the most likely tokens to draw from must reach.
    pub top_p: Option<f64>,
    /// Lowest probability of a token, as a share of that of the most likely one.
    pub min_p: Option<f64>,
    /// Divisor of positive and factor of negative logits of tokens that are in the prompt or the answer.
    pub repetition_penalty: Option<f64>,
    /// Taken off the logits of tokens that are in the answer.
    pub presence_penalty: Option<f64>,
    /// Taken off the logit of a token for each time that it is in the answer.
    pub frequency_penalty: Option<f64>,
    /// Seed of the request; a random one when left out. What sample `i` draws depends on the seed and `i` alone.
    pub seed: Option<u64>,
}

/// A value that a parameter cannot have.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{name} is {value}, it must be {must}")]
pub struct WrongSampling {
    /// The parameter.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// What it must be.
    pub must: &'static str,
}

impl Sampling {
    /// The most likely token each time.
    pub fn greedy() -> Self {
        Self {
            temperature: Some(0.0),
            ..Self::default()
        }
    }

    /// What is left out is taken from another one.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            temperature: self.temperature.or(other.temperature),
            top_k: self.top_k.or(other.top_k),
            top_p: self.top_p.or(other.top_p),
            min_p: self.min_p.or(other.min_p),
            repetition_penalty: self.repetition_penalty.or(other.repetition_penalty),
            presence_penalty: self.presence_penalty.or(other.presence_penalty),
            frequency_penalty: self.frequency_penalty.or(other.frequency_penalty),
            seed: self.seed.or(other.seed),
        }
    }

    /// The temperature; 1 is the model's own distribution.
    pub fn temperature(&self) -> f64 {
        self.temperature.unwrap_or(1.0)
    }

    /// The share of the probability to draw from; 1 is all tokens.
    pub fn top_p(&self) -> f64 {
        self.top_p.unwrap_or(1.0)
    }

    /// The lowest share of the highest probability; 0 is all tokens.
    pub fn min_p(&self) -> f64 {
        self.min_p.unwrap_or(0.0)
    }

    /// The penalty for tokens of prompt and answer; 1 is none.
    pub fn repetition_penalty(&self) -> f64 {
        self.repetition_penalty.unwrap_or(1.0)
    }

    /// The penalty for tokens of the answer; 0 is none.
    pub fn presence_penalty(&self) -> f64 {
        self.presence_penalty.unwrap_or(0.0)
    }

    /// The penalty for each time in the answer; 0 is none.
    pub fn frequency_penalty(&self) -> f64 {
        self.frequency_penalty.unwrap_or(0.0)
    }

    /// Whether logits are changed by what was said before.
    pub fn has_penalties(&self) -> bool {
        self.repetition_penalty() != 1.0 || self.presence_penalty() != 0.0 || self.frequency_penalty() != 0.0
    }

    /// Checks every value.
    ///
    /// # Errors
    /// The first one that cannot be, with what it must be.
    pub fn check(&self) -> Result<(), WrongSampling> {
        let wrong = |name, value, must| Err(WrongSampling { name, value, must });
        let temperature = self.temperature();
        if temperature != 0.0 && !(temperature >= LOWEST_TEMPERATURE && temperature.is_finite()) {
            return wrong("temperature", temperature, "0, or a number from 0.0001");
        }
        if self.top_k == Some(0) {
            return wrong("top_k", 0.0, "at least 1 (or not given, for all tokens)");
        }
        if !(self.top_p() > 0.0 && self.top_p() <= 1.0) {
            return wrong("top_p", self.top_p(), "above 0 and at most 1");
        }
        if !(0.0..=1.0).contains(&self.min_p()) {
            return wrong("min_p", self.min_p(), "from 0 to 1");
        }
        if !(self.repetition_penalty() > 0.0 && self.repetition_penalty().is_finite()) {
            return wrong("repetition_penalty", self.repetition_penalty(), "a number above 0");
        }
        for (name, value) in [
            ("presence_penalty", self.presence_penalty()),
            ("frequency_penalty", self.frequency_penalty()),
        ] {
            if !value.is_finite() {
                return wrong(name, value, "a finite number");
            }
        }
        Ok(())
    }
}
