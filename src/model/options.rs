//! Options of a model: the keys of `[models.NAME]` and of `CREATE MODEL name OPTIONS (…)`, with one check for both.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use reqwest::header::{HeaderName, HeaderValue};
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::openai::{Endpoint, Profile, is_secret_name};
use crate::dialect::OptionValue;

/// Kind of generator that takes options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// Chat completions of an OpenAI-compatible service.
    Openai,
}

impl Provider {
    /// Name as written in files and in SQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Openai => "openai",
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

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
    pub const KEYS: [&str; 27] = [
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
                problem: "is needed: provider 'openai' is any OpenAI-compatible service".to_owned(),
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
        let mut object = serde_json::to_value(self).unwrap_or_default();
        if let Json::Object(fields) = &mut object {
            fields.retain(|_, value| !value.is_null());
        }
        object.to_string()
    }

    /// The profile.
    ///
    /// # Errors
    /// When there is none of its name.
    pub fn profile(&self) -> Result<&'static Profile, WrongOption> {
        let name = self.profile.as_deref().unwrap_or(Profile::DEFAULT);
        Profile::named(name).ok_or_else(|| WrongOption {
            option: "profile",
            problem: format!("is not known: the profiles are {}", Profile::names().join(", ")),
        })
    }

    /// Base URL of the service.
    ///
    /// # Errors
    /// When there is none, or it is no address that requests may be sent to.
    pub fn endpoint(&self) -> Result<Endpoint, WrongOption> {
        let profile = self.profile()?;
        let wrong = |problem: String| WrongOption {
            option: "endpoint",
            problem,
        };
        let given = self.endpoint.as_deref().filter(|text| !text.is_empty());
        let address = given
            .or(profile.endpoint.as_deref())
            .ok_or_else(|| wrong("is needed by the openai provider".to_owned()))?;
        Endpoint::parse(address, self.allow_http.unwrap_or(false)).map_err(wrong)
    }

    /// Variable of the API key. The usual one of a profile belongs to the usual address: it is not sent to another one unless
    /// the options say so.
    pub fn key_variable(&self) -> Option<&str> {
        let usual = || {
            let profile = self.profile().ok()?;
            profile.api_key_env.as_deref().filter(|_| self.endpoint.is_none())
        };
        self.api_key_env.as_deref().or_else(usual)
    }

    /// Checks every value.
    ///
    /// # Errors
    /// The first option that cannot be taken, with what would be right.
    pub fn check(&self) -> Result<(), WrongOption> {
        self.endpoint()?;
        let wrong = |option, problem: &str| {
            Err(WrongOption {
                option,
                problem: problem.to_owned(),
            })
        };
        if self.model.as_deref().is_none_or(str::is_empty) {
            return wrong("model", "is needed by the openai provider");
        }
        if let Some(name) = &self.api_key_env
            && !is_variable_name(name)
        {
            return wrong(
                "api_key_env",
                "must be the name of an environment variable in capitals, such as OPENAI_API_KEY, and never the key itself",
            );
        }
        for (option, valid, problem) in self.ranges() {
            if !valid {
                return wrong(option, problem);
            }
        }
        if self.usd_per_million_prompt_tokens.is_some() != self.usd_per_million_completion_tokens.is_some() {
            return wrong(
                "usd_per_million_prompt_tokens",
                "and usd_per_million_completion_tokens go together: a cost is known when both are",
            );
        }
        self.check_extras()
    }

    fn check_extras(&self) -> Result<(), WrongOption> {
        if let Some(body) = &self.extra_body {
            const OURS: [&str; 5] = ["model", "messages", "stream", "stream_options", "n"];
            let ours = |name: &String| OURS.contains(&name.as_str()) || *name == self.max_tokens_field();
            if let Some(name) = body.keys().find(|name| ours(name)) {
                return Err(WrongOption {
                    option: "extra_body",
                    problem: format!("cannot set {name}, which each request sets itself"),
                });
            }
            if has_secret_name(&Json::Object(body.clone())) {
                return Err(WrongOption {
                    option: "extra_body",
                    problem: "holds a field that looks like a key; keys are read from the variable of api_key_env"
                        .to_owned(),
                });
            }
        }
        for (name, value) in self.extra_headers.iter().flatten() {
            let problem = if is_secret_name(name) {
                format!("cannot set {name}: keys are read from the variable of api_key_env")
            } else if HeaderName::from_bytes(name.as_bytes()).is_err() {
                format!("cannot set '{}': that is no name of a header", name.escape_debug())
            } else if HeaderValue::from_str(value).is_err() {
                format!("cannot set {name} to a text with line breaks or control characters")
            } else {
                continue;
            };
            return Err(WrongOption {
                option: "extra_headers",
                problem,
            });
        }
        Ok(())
    }

    fn max_tokens_field(&self) -> &str {
        self.profile().map_or("max_tokens", |profile| &profile.max_tokens_field)
    }

    /// Each range: the option, whether it holds, and what it says.
    fn ranges(&self) -> [(&'static str, bool, &'static str); 16] {
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
        ("provider", _) => format!("'{}'", Provider::Openai),
        ("extra_headers", _) => "a text with a JSON object of texts".to_owned(),
        (_, Some((_, wanted))) => (*wanted).to_owned(),
        (_, None) => "of another type".to_owned(),
    };
    OptionsError::Type {
        name: name.to_owned(),
        wanted,
    }
}

/// The name of a variable in capitals, as variables for keys are written. Keys themselves have small letters.
fn is_variable_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase() || first == '_')
        && name
            .chars()
            .all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_')
}

fn has_secret_name(value: &Json) -> bool {
    match value {
        Json::Object(fields) => fields
            .iter()
            .any(|(name, value)| is_secret_name(name) || has_secret_name(value)),
        Json::Array(values) => values.iter().any(has_secret_name),
        _ => false,
    }
}

/// Reads an object that is written as a table, or as JSON text where only texts can be written.
fn json_object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Map<String, Json>>, D::Error> {
    struct Object;

    impl<'de> Visitor<'de> for Object {
        type Value = Option<Map<String, Json>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a table, or a text with a JSON object")
        }

        fn visit_none<E: de::Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
            deserializer.deserialize_any(self)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
            serde_json::from_str(text)
                .map(Some)
                .map_err(|error| E::custom(format!("the text is no JSON object: {error}")))
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            Map::deserialize(de::value::MapAccessDeserializer::new(map)).map(Some)
        }
    }

    deserializer.deserialize_any(Object)
}

fn headers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<BTreeMap<String, String>>, D::Error> {
    let Some(object) = json_object(deserializer)? else {
        return Ok(None);
    };
    let headers = object.into_iter().map(|(name, value)| match value {
        Json::String(value) => Ok((name, value)),
        _ => Err(de::Error::custom(format!("the header {name} must be a text"))),
    });
    headers.collect::<Result<_, _>>().map(Some)
}
