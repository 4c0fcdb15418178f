//! `[models.NAME]`: models beyond the built-in ones.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One model; the same options as `CREATE MODEL name OPTIONS (…)`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// What kind of generator it is.
    pub provider: Provider,
    /// Base URL of the service (`openai`).
    pub endpoint: Option<String>,
    /// Name of the model at the service (`openai`).
    pub model: Option<String>,
    /// Variable that holds the API key; the key is never stored or printed.
    pub api_key_env: Option<String>,
    /// Price of a million prompt tokens in US dollars; unknown when left out.
    pub usd_per_million_prompt_tokens: Option<f64>,
    /// Price of a million completion tokens in US dollars; unknown when left out.
    pub usd_per_million_completion_tokens: Option<f64>,
    /// Requests that run at once.
    pub concurrency: Option<u32>,
    /// Time limit of one request, in seconds.
    pub timeout_seconds: Option<u64>,
}

/// Kind of generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// An OpenAI-compatible service.
    Openai,
    /// The built-in grammar of scikit-learn programs.
    Evolver,
    /// Recorded answers.
    Replay,
}

impl ModelConfig {
    /// Keys of a model's section.
    pub(super) const KEYS: [&str; 8] = [
        "provider",
        "endpoint",
        "model",
        "api_key_env",
        "usd_per_million_prompt_tokens",
        "usd_per_million_completion_tokens",
        "concurrency",
        "timeout_seconds",
    ];
}

impl Provider {
    /// Name as written in files and in SQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Evolver => "evolver",
            Self::Replay => "replay",
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
