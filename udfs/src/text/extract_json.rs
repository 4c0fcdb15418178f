//! Takes the JSON object out of a model's reply.

use serde_json::{Map, Value};

use super::thinking::strip_thinking;

/// Most opening braces from which an object is read; prose may hold braces of its own.
const MAX_OPENINGS: usize = 256;

/// The first JSON object of a reply, without its thinking: the reply may be the object, hold it in a code block, or have words
/// around it. `None` when nothing in it is one whole object: arrays, numbers and broken JSON are none.
pub fn extract_json(text: &str) -> Option<Map<String, Value>> {
    let answer = strip_thinking(text);
    let object = |text: &str| match serde_json::Deserializer::from_str(text).into_iter().next() {
        Some(Ok(Value::Object(object))) => Some(object),
        _ => None,
    };
    answer
        .match_indices('{')
        .take(MAX_OPENINGS)
        .find_map(|(at, _)| object(&answer[at..]))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use serde_json::{Value, json};

    use super::extract_json;

    #[test]
    fn an_object_is_found_wherever_it_stands() {
        for (text, expected) in [
            (r#"{"a": 1}"#, json!({"a": 1})),
            (
                "Here:\n```json\n{\"a\": {\"b\": 2}}\n```\nDone.",
                json!({"a": {"b": 2}}),
            ),
            (r#"<think>{"a": 0}</think> so {"a": 1}, not {"a": 2}"#, json!({"a": 1})),
            (r#"the set {x} and {"a": "}"}"#, json!({"a": "}"})),
            (r#"[{"a": 1}]"#, json!({"a": 1})),
        ] {
            assert_eq!(extract_json(text).map(Value::Object), Some(expected), "{text}");
        }
        for text in ["", "3.5", "[1, 2]", r#"{"a": 1,}"#, r#"{"a": 1"#, "{}{"] {
            let found = extract_json(text);
            assert!(found.is_none_or(|object| object.is_empty()), "{text}");
        }
    }
}
