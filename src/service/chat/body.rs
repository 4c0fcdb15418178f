//! The body of a request, and what of it is taken.

use std::collections::BTreeMap;

use clade_lm_api::messages::{Generate, Message, Prompt, Sampling};
use serde::Deserialize;
use serde_json::Value as Json;

use crate::service::api::ApiError;

/// Most answers to one request.
const MOST_SAMPLES: usize = 128;
/// Most of the likeliest tokens that are told, as at OpenAI.
const MOST_LOGPROBS: usize = 20;

/// A request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Body {
    pub model: String,
    messages: Vec<Said>,
    #[serde(default)]
    n: Option<usize>,
    #[serde(default)]
    max_tokens: Option<usize>,
    #[serde(default)]
    max_completion_tokens: Option<usize>,
    #[serde(default)]
    temperature: Option<f64>,
    #[serde(default)]
    top_p: Option<f64>,
    #[serde(default)]
    top_k: Option<i64>,
    #[serde(default)]
    min_p: Option<f64>,
    #[serde(default)]
    repetition_penalty: Option<f64>,
    #[serde(default)]
    presence_penalty: Option<f64>,
    #[serde(default)]
    frequency_penalty: Option<f64>,
    #[serde(default)]
    seed: Option<i64>,
    #[serde(default)]
    stop: Option<Stop>,
    #[serde(default)]
    logprobs: Option<bool>,
    #[serde(default)]
    top_logprobs: Option<usize>,
    #[serde(default)]
    pub stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    #[serde(default)]
    response_format: Option<ResponseFormat>,
    #[serde(default)]
    chat_template_kwargs: Option<BTreeMap<String, Json>>,
    /// Whom the client serves; nothing is done with it.
    #[serde(default, rename = "user")]
    _user: Option<String>,
}

/// A message.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    role: String,
    content: Option<Content>,
    #[serde(default, rename = "name")]
    _name: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Debug, Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Stop {
    One(String),
    Several(Vec<String>),
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Debug, Deserialize)]
struct ResponseFormat {
    #[serde(rename = "type")]
    kind: String,
}

impl Body {
    /// Reads a body.
    pub(super) fn read(body: Json) -> Result<Self, ApiError> {
        serde_json::from_value(body).map_err(|error| {
            ApiError::new(
                axum::http::StatusCode::UNPROCESSABLE_ENTITY,
                "invalid_field",
                format!("the request cannot be taken: {error}"),
                "docs/models.md lists the fields that are taken",
            )
        })
    }

    /// Whether the last piece of a stream tells the usage.
    pub(super) fn tells_usage(&self) -> bool {
        self.stream_options
            .as_ref()
            .is_some_and(|options| options.include_usage)
    }

    /// Whether log-probabilities are asked for.
    pub(super) fn wants_logprobs(&self) -> bool {
        self.logprobs == Some(true)
    }

    /// The request to a model.
    pub(super) fn request(self, model: u64) -> Result<Generate, ApiError> {
        if self.messages.is_empty() {
            return Err(ApiError::field("messages", "there must be one at least"));
        }
        let samples = self.n.unwrap_or(1);
        if !(1..=MOST_SAMPLES).contains(&samples) {
            return Err(ApiError::field("n", format!("must be from 1 to {MOST_SAMPLES}")));
        }
        if let Some(format) = &self.response_format
            && format.kind != "text"
        {
            return Err(ApiError::field("response_format", "only {\"type\": \"text\"} is known"));
        }
        let wants_logprobs = self.wants_logprobs();
        let top = self.top_logprobs.unwrap_or(0);
        if top > 0 && !wants_logprobs {
            return Err(ApiError::field("top_logprobs", "needs \"logprobs\": true"));
        }
        if top > MOST_LOGPROBS {
            return Err(ApiError::field(
                "top_logprobs",
                format!("must be from 0 to {MOST_LOGPROBS}"),
            ));
        }
        let top_k = match self.top_k {
            // vLLM and SGLang write -1 for all.
            None | Some(-1) => None,
            Some(count) => Some(
                usize::try_from(count)
                    .ok()
                    .filter(|count| *count > 0)
                    .ok_or_else(|| ApiError::field("top_k", "must be at least 1, or -1 for all tokens"))?,
            ),
        };
        let messages = self.messages.into_iter().map(Said::message).collect::<Result<_, _>>()?;
        Ok(Generate {
            model,
            prompt: Prompt::Chat {
                messages,
                variables: self.chat_template_kwargs.unwrap_or_default(),
            },
            samples,
            max_tokens: self.max_completion_tokens.or(self.max_tokens),
            sampling: Sampling {
                temperature: self.temperature,
                top_k,
                top_p: self.top_p,
                min_p: self.min_p,
                repetition_penalty: self.repetition_penalty,
                presence_penalty: self.presence_penalty,
                frequency_penalty: self.frequency_penalty,
                seed: self.seed.map(i64::cast_unsigned),
            },
            stop: match self.stop {
                None => Vec::new(),
                Some(Stop::One(text)) => vec![text],
                Some(Stop::Several(texts)) => texts,
            },
            logprobs: wants_logprobs.then_some(top),
            priority: 0,
        })
    }
}

impl Said {
    fn message(self) -> Result<Message, ApiError> {
        let content = match self.content {
            Some(Content::Text(text)) => text,
            Some(Content::Parts(parts)) => {
                let mut all = String::new();
                for part in parts {
                    match part.text {
                        Some(text) if part.kind == "text" => all.push_str(&text),
                        _ => {
                            return Err(ApiError::field(
                                "messages",
                                format!("a part of the type '{}' cannot be read: only text can", part.kind),
                            ));
                        }
                    }
                }
                all
            }
            None => String::new(),
        };
        Ok(Message {
            role: self.role,
            content,
        })
    }
}
