//! Kinds of generators that take options.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Kind of generator that takes options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// Chat completions of an OpenAI-compatible service.
    Openai,
    /// Weights that run in this process, on libtorch.
    Torch,
}

/// Options of every provider.
const COMMON: [&str; 4] = ["provider", "temperature", "top_p", "max_output_tokens"];

/// Options of weights in this process.
const TORCH: [&str; 9] = [
    "path",
    "device",
    "dtype",
    "top_k",
    "min_p",
    "repetition_penalty",
    "context_tokens",
    "cache_memory",
    "threads",
];

impl Provider {
    /// Name as written in files and in SQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Torch => "torch",
        }
    }

    /// Whether it takes an option.
    pub fn takes(self, key: &str) -> bool {
        COMMON.contains(&key) || (self == Self::Torch) == TORCH.contains(&key)
    }

    /// The options that it takes.
    pub fn keys(self) -> Vec<&'static str> {
        let keys = super::ModelOptions::KEYS.into_iter();
        keys.filter(|key| self.takes(key)).collect()
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
