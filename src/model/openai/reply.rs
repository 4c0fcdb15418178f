//! An answer, gathered from one message or from the pieces of a stream, and what can be wrong with it.

use std::time::Duration;

use clade_udfs::text::split_thinking;
use serde_json::Value as Json;

use super::profile::Profile;
use super::usage::{self, Asked};
use crate::model::{ReplyFault, Sample};

/// What has come of an answer so far.
#[derive(Debug, Default)]
pub(super) struct Reply {
    text: String,
    reasoning: String,
    refusal: String,
    tools: Vec<String>,
    finish_reason: Option<String>,
    usage: Option<Json>,
    has_choice: bool,
}

impl Reply {
    /// Takes a whole answer.
    pub(super) fn of_completion(answer: &Json, profile: &Profile) -> Self {
        let mut reply = Self::default();
        reply.take(answer, "message", profile);
        reply
    }

    /// Takes a piece of a stream.
    pub(super) fn add_piece(&mut self, piece: &Json, profile: &Profile) {
        self.take(piece, "delta", profile);
    }

    fn take(&mut self, answer: &Json, part: &str, profile: &Profile) {
        if let Some(usage) = answer.get("usage").filter(|usage| usage.is_object()) {
            self.usage = Some(usage.clone());
        }
        let Some(choice) = answer.pointer("/choices/0") else {
            return;
        };
        self.has_choice = true;
        let reason = choice.get("finish_reason").and_then(Json::as_str);
        // Some services send an empty reason with every piece.
        if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
            self.finish_reason = Some(reason.to_owned());
        }
        let Some(message) = choice.get(part) else { return };
        if let Some(content) = message.get("content") {
            self.take_content(content);
        }
        // Some services send the same reasoning under two names.
        let reasoning = profile
            .reasoning_fields
            .iter()
            .find_map(|name| message.get(name)?.as_str());
        self.reasoning.push_str(reasoning.unwrap_or_default());
        self.refusal
            .push_str(message.get("refusal").and_then(Json::as_str).unwrap_or_default());
        let calls = message.get("tool_calls").and_then(Json::as_array).into_iter().flatten();
        for name in calls.filter_map(|call| call.pointer("/function/name")?.as_str()) {
            self.tools.push(name.to_owned());
        }
    }

    /// Takes the content of a message: a text, or blocks of which those of text are text and those of thinking reasoning.
    fn take_content(&mut self, content: &Json) {
        match content {
            Json::String(text) => self.text.push_str(text),
            Json::Array(blocks) => {
                for block in blocks {
                    match block.get("type").and_then(Json::as_str) {
                        Some("text" | "output_text") => push_text(&mut self.text, block, &["text"]),
                        Some("thinking" | "reasoning") => {
                            push_text(&mut self.reasoning, block, &["thinking", "reasoning", "text"]);
                        }
                        None if block.is_string() => push_text(&mut self.text, block, &[]),
                        kind => tracing::debug!(?kind, "a block of the answer is no text"),
                    }
                }
            }
            _ => {}
        }
    }

    /// Whether the answer has said why it ended.
    pub(super) fn is_complete(&self) -> bool {
        self.finish_reason.is_some()
    }

    /// The answer as a sample, and what is wrong with it if anything is.
    pub(super) fn judge(mut self, asked: &Asked<'_>, latency: Duration) -> (Sample, Option<ReplyFault>) {
        self.split_off_thinking();
        let fault = self.fault(asked);
        (self.sample(asked, latency), fault)
    }

    /// What came before an answer broke off.
    pub(super) fn partial(mut self, asked: &Asked<'_>, latency: Duration) -> Sample {
        self.split_off_thinking();
        self.sample(asked, latency)
    }

    /// Moves `<think>` blocks out of the text. One that is still open when the tokens ran out is all there is.
    fn split_off_thinking(&mut self) {
        let (text, thinking) = split_thinking(&self.text);
        if let Some(thinking) = thinking {
            if !self.reasoning.is_empty() {
                self.reasoning.push_str("\n\n");
            }
            self.reasoning.push_str(&thinking);
            self.text = text;
        }
        let is_open = self
            .text
            .trim_start()
            .get(..7)
            .is_some_and(|tag| tag.eq_ignore_ascii_case("<think>"));
        if is_open && self.finish_reason.as_deref() == Some("length") {
            self.reasoning
                .push_str(self.text.trim_start().get(7..).unwrap_or_default());
            self.text.clear();
        }
    }

    fn fault(&self, asked: &Asked<'_>) -> Option<ReplyFault> {
        let finish = self.finish_reason.as_deref().unwrap_or_default();
        if !self.has_choice {
            return Some(ReplyFault::NoChoices);
        }
        if finish == "content_filter" {
            return Some(ReplyFault::Refused {
                reason: "a content filter stopped the answer".to_owned(),
            });
        }
        if finish == "error" {
            return Some(ReplyFault::Reported {
                message: "the answer ended with finish reason 'error'".to_owned(),
            });
        }
        if !self.text.trim().is_empty() {
            return None;
        }
        Some(if !self.tools.is_empty() {
            ReplyFault::ToolCalls {
                names: self.tools.join(", "),
            }
        } else if !self.refusal.is_empty() {
            ReplyFault::Refused {
                reason: self.refusal.clone(),
            }
        } else if finish == "length" {
            ReplyFault::EmptyLength {
                max_tokens: asked.max_tokens,
            }
        } else if !self.reasoning.trim().is_empty() {
            ReplyFault::ReasoningOnly
        } else {
            ReplyFault::Empty {
                finish_reason: finish.to_owned(),
            }
        })
    }

    fn sample(self, asked: &Asked<'_>, latency: Duration) -> Sample {
        let usage = usage::read(self.usage.as_ref(), asked, &self.text, &self.reasoning);
        let cost_usd = match (asked.price, usage.prompt, usage.completion) {
            (Some(price), Some(prompt), Some(completion)) => Some(price.cost(prompt, completion, &usage.details)),
            _ => None,
        };
        Sample {
            text: self.text,
            reasoning: (!self.reasoning.is_empty()).then_some(self.reasoning),
            finish_reason: self.finish_reason.unwrap_or_else(|| "unknown".to_owned()),
            tokens_prompt: usage.prompt,
            tokens_completion: usage.completion,
            usage: usage.details,
            cost_usd,
            cached: false,
            latency,
        }
    }
}

/// Appends the text of a block: a string, or a field that is a string or holds blocks in its turn.
fn push_text(target: &mut String, block: &Json, fields: &[&str]) {
    match block {
        Json::String(text) => target.push_str(text),
        Json::Array(parts) => parts.iter().for_each(|part| push_text(target, part, &["text"])),
        Json::Object(_) => {
            if let Some(value) = fields.iter().find_map(|field| block.get(field)) {
                push_text(target, value, fields);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::super::usage::Counter;
    use super::*;
    use crate::error::ErrorClass;
    use crate::model::TokenPrice;

    const ASKED: Asked<'static> = Asked {
        prompt_bytes: 400,
        messages: 1,
        max_tokens: 64,
        estimated_prompt: 100,
        counter: &Counter::Bytes,
        price: None,
    };

    fn judged(message: Json, finish: &str) -> (Sample, Option<ReplyFault>) {
        let answer = json!({"choices": [{"message": message, "finish_reason": finish}]});
        let profile = Profile::named(Profile::DEFAULT).unwrap();
        Reply::of_completion(&answer, profile).judge(&ASKED, Duration::ZERO)
    }

    fn texts(message: Json) -> (String, Option<String>) {
        let (sample, fault) = judged(message, "stop");
        assert_eq!(fault, None);
        (sample.text, sample.reasoning)
    }

    fn pair(text: &str, reasoning: &str) -> (String, Option<String>) {
        (text.to_owned(), Some(reasoning.to_owned()))
    }

    #[test]
    fn reasoning_is_kept_apart_wherever_it_stands() {
        assert_eq!(texts(json!({"content": "a", "reasoning_content": "r"})), pair("a", "r"));
        assert_eq!(texts(json!({"content": "a", "reasoning": "r"})), pair("a", "r"));
        let both = json!({"content": "a", "reasoning": "r", "reasoning_content": "r"});
        assert_eq!(texts(both), pair("a", "r"), "not twice");
        assert_eq!(texts(json!({"content": "<think>r</think>\n\na"})), pair("a", "r"));
        assert_eq!(texts(json!({"content": "r</think>a"})), pair("a", "r"));
    }

    #[test]
    fn text_blocks_are_picked_by_type() {
        let blocks = json!({"content": [
            {"type": "redacted_thinking", "data": "xyz"},
            {"type": "thinking", "thinking": "r"},
            {"type": "text", "text": "a"},
            {"type": "image_url", "image_url": {"url": "x"}},
            {"type": "text", "text": "b"},
        ]});
        assert_eq!(texts(blocks), pair("ab", "r"));
        let nested = json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "r"}]}, {"type": "text", "text": "a"}]});
        assert_eq!(texts(nested), pair("a", "r"));
    }

    #[test]
    fn null_content_at_the_length_limit_has_a_class_of_its_own() {
        let (sample, fault) = judged(json!({"content": null, "reasoning_content": "r"}), "length");
        let fault = fault.unwrap();
        assert_eq!((fault.name(), fault.class()), ("empty_length", ErrorClass::Candidate));
        assert!(fault.to_string().contains("64 tokens") && fault.to_string().contains("raise max_output_tokens"));
        assert_eq!((sample.text.as_str(), sample.reasoning.as_deref()), ("", Some("r")));
        let (sample, fault) = judged(json!({"content": "<think>r and r"}), "length");
        assert_eq!(fault.unwrap().name(), "empty_length");
        assert_eq!(sample.reasoning.as_deref(), Some("r and r"));
    }

    #[test]
    fn answers_without_text_say_why() {
        let call = json!({"content": null, "tool_calls": [{"function": {"name": "run_python", "arguments": "{}"}}]});
        for (message, finish, name, class) in [
            (call, "tool_calls", "tool_calls", ErrorClass::Candidate),
            (
                json!({"content": null, "refusal": "no"}),
                "stop",
                "refused",
                ErrorClass::Candidate,
            ),
            (
                json!({"content": "half"}),
                "content_filter",
                "refused",
                ErrorClass::Candidate,
            ),
            (
                json!({"content": "", "reasoning": "r"}),
                "stop",
                "reasoning_only",
                ErrorClass::Candidate,
            ),
            (json!({"content": " \n"}), "stop", "empty", ErrorClass::Provider),
            (json!({}), "stop", "empty", ErrorClass::Provider),
            (json!({"content": "x"}), "error", "reported", ErrorClass::Provider),
        ] {
            let fault = judged(message.clone(), finish).1.unwrap();
            assert_eq!((fault.name(), fault.class()), (name, class), "{message}");
        }
        let profile = Profile::named(Profile::DEFAULT).unwrap();
        let (_, fault) = Reply::of_completion(&json!({"choices": []}), profile).judge(&ASKED, Duration::ZERO);
        assert_eq!(fault, Some(ReplyFault::NoChoices));
    }

    #[test]
    fn a_stream_gives_the_same_answer_as_a_message() {
        let profile = Profile::named(Profile::DEFAULT).unwrap();
        let mut reply = Reply::default();
        for piece in [
            json!({"choices": [{"delta": {"role": "assistant", "content": ""}, "finish_reason": ""}]}),
            json!({"choices": [{"delta": {"reasoning_content": "r"}}]}),
            json!({"choices": [{"delta": {"content": "a"}}]}),
            json!({"choices": [{"delta": {"content": "b"}, "finish_reason": "stop"}]}),
            json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10}}),
        ] {
            assert!(!reply.is_complete() || piece["choices"] == json!([]));
            reply.add_piece(&piece, profile);
        }
        let asked = Asked {
            price: Some(TokenPrice::flat(1.0, 2.0)),
            ..ASKED
        };
        let (sample, fault) = reply.judge(&asked, Duration::ZERO);
        assert_eq!(
            (fault, sample.text.as_str(), sample.reasoning.as_deref()),
            (None, "ab", Some("r"))
        );
        assert_eq!((sample.tokens_prompt, sample.cost_usd), (Some(100), Some(120.0 / 1e6)));
    }
}
