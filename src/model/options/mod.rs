//! Options of a model: the keys of `[models.NAME]` and of `CREATE MODEL name OPTIONS (…)`, with one check for both.

mod openai;
mod provider;
mod text;
mod torch;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

pub use self::provider::Provider;
use self::text::{headers, json_object};
use crate::config::ByteSize;
use crate::dialect::OptionValue;

/// Options of a model. What is left out is the profile's, or the default that the field names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelOptions {
    /// What kind of generator it is.
    pub provider: Provider,
    /// Peculiarities of the service: a profile of `configs/models`. Default `compatible`.
    pub profile: Option<String>,
    /// Base URL of the service.
    pub endpoint: Option<String>,
    /// Name of the model at the service.
    pub model: Option<String>,
    /// Variable that holds the API key; the key is read when a request is sent and never stored or printed.
    pub api_key_env: Option<String>,
    /// Allow plain http to another machine than this one.
    pub allow_http: Option<bool>,
    /// File with certificates (PEM) of a private authority, trusted beside those of the system.
    pub ca_file: Option<PathBuf>,
    /// Temperature where a statement does not say.
    pub temperature: Option<f64>,
    /// Nucleus share where a statement does not say.
    pub top_p: Option<f64>,
    /// Longest answer in tokens, reasoning included, in the place of search.max_output_tokens.
    pub max_output_tokens: Option<u32>,
    /// Let answers come as a stream.
    pub stream: Option<bool>,
    /// More fields of the request's body: a table, or JSON text.
    #[serde(default, deserialize_with = "json_object")]
    pub extra_body: Option<Map<String, Json>>,
    /// More headers of the request: a table, or JSON text. They are no place for keys.
    #[serde(default, deserialize_with = "headers")]
    pub extra_headers: Option<BTreeMap<String, String>>,
    /// Price of a million prompt tokens in US dollars; unknown when left out.
    pub usd_per_million_prompt_tokens: Option<f64>,
    /// Price of a million cached prompt tokens; as the others when left out.
    pub usd_per_million_cached_prompt_tokens: Option<f64>,
    /// Price of a million completion tokens in US dollars; unknown when left out.
    pub usd_per_million_completion_tokens: Option<f64>,
    /// Price of a million reasoning tokens; as the other completion tokens when left out.
    pub usd_per_million_reasoning_tokens: Option<f64>,
    /// File with the model's tokenizer (`tokenizer.json`), which estimates token counts; a token every 4 bytes without one.
    pub tokenizer: Option<PathBuf>,
    /// Requests that one process sends at once. Default 16.
    pub concurrency: Option<u32>,
    /// Seconds until a connection stands. Default 10.
    pub connect_timeout_seconds: Option<f64>,
    /// Seconds until the first byte of an answer. Default 600.
    pub first_byte_timeout_seconds: Option<f64>,
    /// Seconds between two pieces of an answer. Default 120.
    pub idle_timeout_seconds: Option<f64>,
    /// Seconds of a whole request. Default 1800.
    pub timeout_seconds: Option<f64>,
    /// Longest wait in seconds before the provider is asked again, whatever it asked for. Default 900.
    pub max_retry_after_seconds: Option<f64>,
    /// Seconds of rate limits without one answer after which an attempt fails. Default 86400.
    pub give_up_after_seconds: Option<f64>,
    /// Failures in a row that open the circuit breaker. Default 5.
    pub breaker_failures: Option<u32>,
    /// First pause in seconds of an open circuit breaker; it doubles each time. Default 30.
    pub breaker_pause_seconds: Option<f64>,
    /// Folder or file of the weights.
    pub path: Option<PathBuf>,
    /// Where it runs: `auto` (a GPU where there is one), `cpu`, `cuda` or `cuda:1`. Default `auto`.
    pub device: Option<String>,
    /// Number format of weights and activations: `auto`, `float32`, `bfloat16` or `float16`. Default `auto`.
    pub dtype: Option<String>,
    /// The so many likeliest tokens are drawn from; all when left out.
    pub top_k: Option<u32>,
    /// Tokens with less than this share of the likeliest one's probability are not drawn.
    pub min_p: Option<f64>,
    /// Divides what was said already in likelihood; 1 changes nothing.
    pub repetition_penalty: Option<f64>,
    /// Longest prompt and answer together, in tokens. Default: what the model was made for.
    pub context_tokens: Option<u32>,
    /// Memory for keys and values of running requests, such as `4GiB`. Default: a third of what is free after loading.
    pub cache_memory: Option<ByteSize>,
    /// Threads of a model on the CPU. Default: all cores.
    pub threads: Option<u32>,
}

/// An option that cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("option {option} {problem}")]
pub struct WrongOption {
    /// Option.
    pub option: &'static str,
    /// What is wrong and what would be right; never the value of a text, which may be a key in the wrong place.
    pub problem: String,
}

/// Options that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// There is no option of this name.
    #[error("unknown option {name}: the options of a model are {}", ModelOptions::KEYS.join(", "))]
    Unknown {
        /// Name.
        name: String,
    },
    /// What the store keeps is no JSON.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// A value has the wrong type.
    #[error("option {name} must be {wanted}")]
    Type {
        /// Name.
        name: String,
        /// What would be right.
        wanted: String,
    },
    /// A value is not allowed.
    #[error(transparent)]
    Wrong(#[from] WrongOption),
}

impl ModelOptions {
    /// All options.
    pub const KEYS: [&str; 36] = [
        "provider",
        "profile",
        "endpoint",
        "model",
        "api_key_env",
        "allow_http",
        "ca_file",
        "temperature",
        "top_p",
        "max_output_tokens",
        "stream",
        "extra_body",
        "extra_headers",
        "usd_per_million_prompt_tokens",
        "usd_per_million_cached_prompt_tokens",
        "usd_per_million_completion_tokens",
        "usd_per_million_reasoning_tokens",
        "tokenizer",
        "concurrency",
        "connect_timeout_seconds",
        "first_byte_timeout_seconds",
        "idle_timeout_seconds",
        "timeout_seconds",
        "max_retry_after_seconds",
        "give_up_after_seconds",
        "breaker_failures",
        "breaker_pause_seconds",
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

    /// Options of a statement, checked.
    ///
    /// # Errors
    /// An unknown name, a wrong type, or what [`ModelOptions::check`] refuses.
    pub fn from_statement(given: &[(String, OptionValue)]) -> Result<Self, OptionsError> {
        let mut object = Map::new();
        for (name, value) in given {
            let value = match value {
                OptionValue::Number(text) => serde_json::from_str(text).map_err(|_| wrong_type(name))?,
                OptionValue::Text(text) => Json::String(text.clone()),
                OptionValue::Bool(value) => Json::Bool(*value),
            };
            object.insert(name.clone(), value);
        }
        Self::of_object(object)
    }

    /// Options as the store keeps them, checked.
    ///
    /// # Errors
    /// As [`ModelOptions::from_statement`].
    pub fn from_json(text: &str) -> Result<Self, OptionsError> {
        Self::of_object(serde_json::from_str(text)?)
    }

    fn of_object(object: Map<String, Json>) -> Result<Self, OptionsError> {
        if let Some(name) = object.keys().find(|name| !Self::KEYS.contains(&name.as_str())) {
            return Err(OptionsError::Unknown { name: name.clone() });
        }
        if !object.contains_key("provider") {
            return Err(WrongOption {
                option: "provider",
                problem: "is needed: provider 'openai' is any OpenAI-compatible service, provider 'torch' runs weights in this process"
                    .to_owned(),
            }
            .into());
        }
        if let Some(name) = object
            .iter()
            .find_map(|(name, value)| (!fits(name, value)).then_some(name))
        {
            return Err(wrong_type(name));
        }
        let options: Self = serde_json::from_value(Json::Object(object))?;
        options.check()?;
        Ok(options)
    }

    /// The options that are given, as JSON.
    pub fn to_json(&self) -> String {
        Json::Object(self.given()).to_string()
    }

    fn given(&self) -> Map<String, Json> {
        match serde_json::to_value(self) {
            Ok(Json::Object(mut fields)) => {
                fields.retain(|_, value| !value.is_null());
                fields
            }
            _ => Map::new(),
        }
    }

    /// Checks every value.
    ///
    /// # Errors
    /// The first option that cannot be taken, with what would be right.
    pub fn check(&self) -> Result<(), WrongOption> {
        let given = self.given();
        let foreign = |key: &&&str| given.contains_key(**key) && !self.provider.takes(key);
        if let Some(option) = Self::KEYS.iter().find(foreign) {
            return Err(WrongOption {
                option,
                problem: format!(
                    "is none of the provider {}, which takes {}",
                    self.provider,
                    self.provider.keys().join(", ")
                ),
            });
        }
        if let Some((option, _, problem)) = self.ranges().into_iter().find(|(_, valid, _)| !valid) {
            return Err(WrongOption {
                option,
                problem: problem.to_owned(),
            });
        }
        match self.provider {
            Provider::Openai => self.check_openai(),
            Provider::Torch => self.check_torch(),
        }
    }

    /// Each range: the option, whether it holds, and what it says.
    fn ranges(&self) -> [(&'static str, bool, &'static str); 18] {
        const SECONDS: &str = "must be seconds: above 0, at most 1000000";
        const PRICE: &str = "must be finite and not negative";
        const AT_LEAST_ONE: &str = "must be at least 1";
        let seconds = |value: Option<f64>| value.is_none_or(|value| value > 0.0 && value <= 1e6);
        let price = |value: Option<f64>| value.is_none_or(|value| value.is_finite() && value >= 0.0);
        [
            (
                "temperature",
                self.temperature.is_none_or(|value| (0.0..=2.0).contains(&value)),
                "must be from 0 to 2",
            ),
            (
                "top_p",
                self.top_p.is_none_or(|value| value > 0.0 && value <= 1.0),
                "must be above 0 and at most 1",
            ),
            ("max_output_tokens", self.max_output_tokens != Some(0), AT_LEAST_ONE),
            (
                "usd_per_million_prompt_tokens",
                price(self.usd_per_million_prompt_tokens),
                PRICE,
            ),
            (
                "usd_per_million_cached_prompt_tokens",
                price(self.usd_per_million_cached_prompt_tokens),
                PRICE,
            ),
            (
                "usd_per_million_completion_tokens",
                price(self.usd_per_million_completion_tokens),
                PRICE,
            ),
            (
                "usd_per_million_reasoning_tokens",
                price(self.usd_per_million_reasoning_tokens),
                PRICE,
            ),
            (
                "concurrency",
                self.concurrency.is_none_or(|value| (1..=1024).contains(&value)),
                "must be from 1 to 1024",
            ),
            (
                "connect_timeout_seconds",
                seconds(self.connect_timeout_seconds),
                SECONDS,
            ),
            (
                "first_byte_timeout_seconds",
                seconds(self.first_byte_timeout_seconds),
                SECONDS,
            ),
            ("idle_timeout_seconds", seconds(self.idle_timeout_seconds), SECONDS),
            ("timeout_seconds", seconds(self.timeout_seconds), SECONDS),
            (
                "max_retry_after_seconds",
                seconds(self.max_retry_after_seconds),
                SECONDS,
            ),
            ("give_up_after_seconds", seconds(self.give_up_after_seconds), SECONDS),
            ("breaker_failures", self.breaker_failures != Some(0), AT_LEAST_ONE),
            ("breaker_pause_seconds", seconds(self.breaker_pause_seconds), SECONDS),
            ("context_tokens", self.context_tokens != Some(0), AT_LEAST_ONE),
            (
                "threads",
                self.threads.is_none_or(|value| (1..=1024).contains(&value)),
                "must be from 1 to 1024",
            ),
        ]
    }
}

/// Whether an option takes a value, whatever the others are.
fn fits(name: &str, value: &Json) -> bool {
    let mut alone = Map::new();
    alone.insert("provider".to_owned(), Json::from(Provider::Openai.as_str()));
    alone.insert(name.to_owned(), value.clone());
    serde_json::from_value::<ModelOptions>(Json::Object(alone)).is_ok()
}

/// An option with a value of the wrong type, and the type that it takes. The value is not repeated: it may be a key.
fn wrong_type(name: &str) -> OptionsError {
    let samples = [
        (Json::from(0.5), "a number"),
        (Json::from(1), "a whole number of 0 or more, at most 4294967295"),
        (Json::from(true), "true or false"),
        (Json::from("x"), "a text"),
        (Json::from("{}"), "a text with a JSON object"),
    ];
    let wanted = samples.iter().find(|(sample, _)| fits(name, sample));
    let wanted = match (name, wanted) {
        ("provider", _) => format!("'{}' or '{}'", Provider::Openai, Provider::Torch),
        ("cache_memory", _) => "a size, such as '4GiB'".to_owned(),
        ("extra_headers", _) => "a text with a JSON object of texts".to_owned(),
        (_, Some((_, wanted))) => (*wanted).to_owned(),
        (_, None) => "of another type".to_owned(),
    };
    OptionsError::Type {
        name: name.to_owned(),
        wanted,
    }
}
