//! The body of a request.

use serde_json::{Map, Value as Json, json};

use super::profile::{Parameter, Profile};
use crate::model::{Message, SamplingParams};

/// Seeds are cut to 31 bits, which every service takes.
const SEED_BITS: u64 = 0x7fff_ffff;

/// What a body is made of.
#[derive(Debug)]
pub(super) struct Question<'a> {
    /// Name of the model at the service.
    pub model: &'a str,
    /// The prompt.
    pub messages: &'a [Message],
    /// How to sample.
    pub params: SamplingParams,
    /// Seed, when there is one.
    pub seed: Option<u64>,
    /// The answer is to come as a stream.
    pub stream: bool,
}

/// The body as JSON.
pub(super) fn body(question: &Question<'_>, profile: &Profile, extra: Option<&Map<String, Json>>) -> Json {
    let messages: Vec<Json> = question
        .messages
        .iter()
        .map(|message| json!({"role": message.role.as_str(), "content": message.content}))
        .collect();
    let mut body = Map::new();
    body.insert("model".to_owned(), question.model.into());
    body.insert("messages".to_owned(), messages.into());
    body.insert(profile.max_tokens_field.clone(), question.params.max_tokens.into());
    for parameter in profile.parameters_of(question.model) {
        match parameter {
            Parameter::Temperature => {
                body.insert("temperature".to_owned(), question.params.temperature.into());
            }
            Parameter::TopP => {
                body.insert("top_p".to_owned(), question.params.top_p.into());
            }
            Parameter::Seed => {
                if let Some(seed) = question.seed {
                    body.insert("seed".to_owned(), (seed & SEED_BITS).into());
                }
            }
        }
    }
    body.insert("stream".to_owned(), question.stream.into());
    if question.stream && profile.stream_usage {
        body.insert("stream_options".to_owned(), json!({"include_usage": true}));
    }
    for (name, value) in extra.into_iter().flatten() {
        body.insert(name.clone(), value.clone());
    }
    Json::Object(body)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::model::Role;

    fn of(profile: &str, model: &str, stream: bool, extra: Json) -> Json {
        let messages = [Message {
            role: Role::User,
            content: "hello".to_owned(),
        }];
        let question = Question {
            model,
            messages: &messages,
            params: SamplingParams {
                temperature: 0.5,
                top_p: 0.9,
                max_tokens: 77,
            },
            seed: Some(u64::MAX),
            stream,
        };
        body(&question, Profile::named(profile).unwrap(), extra.as_object())
    }

    #[test]
    fn a_request_says_what_its_service_takes() {
        assert_eq!(
            of("sglang", "m", true, json!({"top_k": 20, "top_p": 0.1})),
            json!({
                "model": "m", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 77, "temperature": 0.5,
                "top_p": 0.1, "seed": 0x7fff_ffff, "stream": true, "stream_options": {"include_usage": true}, "top_k": 20,
            })
        );
    }

    #[test]
    fn what_a_model_refuses_is_left_out() {
        assert_eq!(
            of("openai", "o3-mini", false, Json::Null),
            json!({
                "model": "o3-mini", "messages": [{"role": "user", "content": "hello"}], "max_completion_tokens": 77,
                "seed": 0x7fff_ffff, "stream": false,
            })
        );
    }
}
