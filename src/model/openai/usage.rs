//! Token counts: as the provider reports them, whether they can be right, and our own estimate beside them.

use serde_json::Value as Json;

use crate::model::tokenizer::Tokenizer;
use crate::model::{Message, TokenPrice, UsageDetails};

/// Bytes of a token, for the rough estimate.
const BYTES_PER_TOKEN: u64 = 4;

/// Counts tokens for our own estimate.
#[derive(Debug)]
pub(super) enum Counter {
    /// Roughly, by bytes.
    Bytes,
    /// As the model does.
    Tokenizer(Tokenizer),
}

impl Counter {
    fn count(&self, text: &str) -> u64 {
        match self {
            Self::Bytes => (text.len() as u64).div_ceil(BYTES_PER_TOKEN),
            Self::Tokenizer(tokenizer) => tokenizer.count(text),
        }
    }
}

/// What a request asked for, as far as tokens go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    /// Bytes of all messages.
    pub prompt_bytes: usize,
    /// Number of messages.
    pub messages: usize,
    /// Token limit of the answer.
    pub max_tokens: u32,
    /// Our own estimate of the prompt's tokens.
    pub estimated_prompt: u64,
    /// What counts the answer's.
    pub counter: &'a Counter,
    /// What tokens cost.
    pub price: Option<TokenPrice>,
}

impl<'a> Asked<'a> {
    pub(super) fn new(messages: &[Message], max_tokens: u32, counter: &'a Counter, price: Option<TokenPrice>) -> Self {
        let texts = || messages.iter().map(|message| message.content.as_str());
        Self {
            prompt_bytes: texts().map(str::len).sum(),
            messages: messages.len(),
            max_tokens,
            estimated_prompt: texts().map(|text| counter.count(text)).sum(),
            counter,
            price,
        }
    }
}

/// Token counts of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Prompt tokens.
    pub prompt: Option<u64>,
    /// Completion tokens.
    pub completion: Option<u64>,
    /// Everything else.
    pub details: UsageDetails,
}

/// The most tokens that a prompt can have: a token is a byte or more, and templates add a little.
pub fn prompt_token_bound(bytes: usize, messages: usize) -> u64 {
    (bytes + 64 * messages + 1024) as u64
}

/// Reads the usage object of an answer.
pub(super) fn read(usage: Option<&Json>, asked: &Asked<'_>, text: &str, reasoning_text: &str) -> Usage {
    let text_bytes = text.len() + reasoning_text.len();
    let mut problems = Vec::new();
    let mut count = |names: &[&str]| count(usage?, names, &mut problems);
    let prompt = count(&["/prompt_tokens", "/input_tokens"]);
    let completion = count(&["/completion_tokens", "/output_tokens"]);
    let total = count(&["/total_tokens"]);
    let cached_prompt = count(&["/prompt_tokens_details/cached_tokens", "/prompt_cache_hit_tokens"]);
    let reasoning = count(&["/completion_tokens_details/reasoning_tokens", "/reasoning_tokens"]);
    let bound = prompt_token_bound(asked.prompt_bytes, asked.messages);
    let checks = [
        (
            prompt == Some(0) && asked.prompt_bytes > 0,
            format!("no prompt tokens for {} bytes", asked.prompt_bytes),
        ),
        (
            prompt.is_some_and(|tokens| tokens > bound),
            format!("more prompt tokens than {} bytes can have", asked.prompt_bytes),
        ),
        (
            completion == Some(0) && text_bytes > 0,
            format!("no completion tokens for {text_bytes} bytes"),
        ),
        (
            completion.is_some_and(|tokens| tokens > u64::from(asked.max_tokens)),
            format!("more completion tokens than the limit of {}", asked.max_tokens),
        ),
        (
            matches!((prompt, completion, total), (Some(prompt), Some(completion), Some(total))
                     if prompt.saturating_add(completion) != total),
            format!(
                "total_tokens {} is not the sum of the others",
                total.unwrap_or_default()
            ),
        ),
        (
            cached_prompt > prompt && prompt.is_some(),
            "more cached prompt tokens than prompt tokens".to_owned(),
        ),
        (
            reasoning > completion && completion.is_some(),
            "more reasoning tokens than completion tokens".to_owned(),
        ),
    ];
    problems.extend(
        checks
            .into_iter()
            .filter(|(is_wrong, _)| *is_wrong)
            .map(|(_, what)| what),
    );
    Usage {
        prompt,
        completion,
        details: UsageDetails {
            cached_prompt,
            reasoning,
            estimated_prompt: Some(asked.estimated_prompt),
            estimated_completion: Some(asked.counter.count(text) + asked.counter.count(reasoning_text)),
            problem: (!problems.is_empty()).then(|| problems.join("; ")),
        },
    }
}

/// The first of the fields that is there. What is no count of tokens is a problem and no count.
fn count(usage: &Json, pointers: &[&str], problems: &mut Vec<String>) -> Option<u64> {
    let (name, value) = pointers
        .iter()
        .find_map(|pointer| usage.pointer(pointer).map(|value| (*pointer, value)))
        .filter(|(_, value)| !value.is_null())?;
    let whole = value
        .as_f64()
        .filter(|number| number.fract() == 0.0 && (0.0..=9e15).contains(number));
    let tokens = value
        .as_u64()
        .filter(|tokens| i64::try_from(*tokens).is_ok())
        .or(whole.map(|number| number as u64));
    if tokens.is_none() {
        let name = name.rsplit('/').next().unwrap_or(name);
        problems.push(format!("{name} is {value}, which is no count"));
    }
    tokens
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    const TEXT: &str = "forty-one bytes of a text of the service.";
    const ASKED: Asked<'static> = Asked {
        prompt_bytes: 4000,
        messages: 2,
        max_tokens: 100,
        estimated_prompt: 1000,
        counter: &Counter::Bytes,
        price: None,
    };

    fn problem(usage: Json) -> Option<String> {
        read(Some(&usage), &ASKED, TEXT, "").details.problem
    }

    #[test]
    fn missing_usage_is_unknown_and_only_estimated() {
        let usage = read(None, &ASKED, TEXT, "");
        assert_eq!((usage.prompt, usage.completion), (None, None));
        assert_eq!(usage.details.estimated_prompt, Some(1000));
        assert_eq!(usage.details.estimated_completion, Some(11));
        assert_eq!(usage.details.problem, None);
    }

    #[test]
    fn shares_of_cached_and_reasoning_tokens_are_read_in_both_spellings() {
        let usage = json!({
            "prompt_tokens": 900, "completion_tokens": 50, "total_tokens": 950,
            "prompt_tokens_details": {"cached_tokens": 800}, "completion_tokens_details": {"reasoning_tokens": 30},
        });
        let read_usage = read(Some(&usage), &ASKED, TEXT, "");
        assert_eq!(
            (read_usage.details.cached_prompt, read_usage.details.reasoning),
            (Some(800), Some(30))
        );
        let usage = json!({"prompt_tokens": 900.0, "completion_tokens": 50, "prompt_cache_hit_tokens": 7});
        let read_usage = read(Some(&usage), &ASKED, TEXT, "");
        assert_eq!(
            (read_usage.prompt, read_usage.details.cached_prompt),
            (Some(900), Some(7))
        );
        assert_eq!(read_usage.details.problem, None);
    }

    #[test]
    fn counts_that_cannot_be_right_are_kept_and_flagged() {
        let wrong = json!({"prompt_tokens": 1_000_000_000_u64, "completion_tokens": 50});
        assert_eq!(read(Some(&wrong), &ASKED, TEXT, "").prompt, Some(1_000_000_000));
        assert_eq!(problem(wrong).unwrap(), "more prompt tokens than 4000 bytes can have");
        for (usage, said) in [
            (json!({"prompt_tokens": 0, "completion_tokens": 5}), "no prompt tokens"),
            (
                json!({"prompt_tokens": 9, "completion_tokens": 0}),
                "no completion tokens",
            ),
            (json!({"prompt_tokens": 9, "completion_tokens": 101}), "limit of 100"),
            (
                json!({"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 99}),
                "not the sum",
            ),
            (
                json!({"prompt_tokens": -9, "completion_tokens": 5}),
                "prompt_tokens is -9",
            ),
            (
                json!({"prompt_tokens": "9", "completion_tokens": 5}),
                "which is no count",
            ),
            (
                json!({"prompt_tokens": 9, "completion_tokens": 5, "reasoning_tokens": 6}),
                "reasoning tokens",
            ),
            (
                json!({"prompt_tokens": 9, "prompt_cache_hit_tokens": 10}),
                "cached prompt tokens",
            ),
        ] {
            assert!(
                problem(usage.clone()).is_some_and(|problem| problem.contains(said)),
                "{usage}"
            );
        }
    }
}
