//! Options of a service: where it is, which key it gets, what is added to requests.

use reqwest::header::{HeaderName, HeaderValue};
use serde_json::Value as Json;

use super::{ModelOptions, WrongOption};
use crate::model::openai::{Endpoint, Profile, is_secret_name};

impl ModelOptions {
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

    /// Checks what a service needs.
    pub(super) fn check_openai(&self) -> Result<(), WrongOption> {
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
