//! Splitting a text into the pieces within which tokens are merged.

use regex::Regex;
use serde_json::Value as Json;

/// White space, of which the last letter is left to what follows it.
const RUN: &str = r"\s+(?!\S)|\s+";
/// How GPT-2 splits.
const GPT_2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// The steps of splitting, in order.
#[derive(Debug)]
pub(super) struct Splitter {
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    /// Puts a space before a text that has none.
    Prefix,
    /// Takes matches, and what stands between them, apart.
    Isolate(Regex),
    /// Takes matches apart and drops what stands between them.
    Keep(Regex),
}

impl Splitter {
    /// Reads a `pre_tokenizer`.
    pub(super) fn of_json(json: &Json) -> Result<Self, String> {
        let mut splitter = Self { steps: Vec::new() };
        let is_byte_level = splitter.add(json)?;
        if is_byte_level {
            Ok(splitter)
        } else {
            Err("it does not work on bytes (no ByteLevel)".to_owned())
        }
    }

    /// Adds the steps of one `pre_tokenizer`; says whether tokens are made of bytes after it.
    fn add(&mut self, json: &Json) -> Result<bool, String> {
        let flag = |name: &str, default: bool| json.get(name).and_then(Json::as_bool).unwrap_or(default);
        match json.get("type").and_then(Json::as_str) {
            Some("Sequence") => {
                let parts = json.get("pretokenizers").and_then(Json::as_array).into_iter().flatten();
                let mut is_byte_level = false;
                for part in parts {
                    is_byte_level |= self.add(part)?;
                }
                Ok(is_byte_level)
            }
            Some("ByteLevel") => {
                if flag("add_prefix_space", true) {
                    self.steps.push(Step::Prefix);
                }
                if flag("use_regex", true) {
                    self.steps.push(Step::Isolate(pattern(GPT_2)?));
                }
                Ok(true)
            }
            Some("Digits") => {
                let digits = if flag("individual_digits", false) {
                    r"\p{Nd}"
                } else {
                    r"\p{Nd}+"
                };
                self.steps.push(Step::Isolate(pattern(digits)?));
                Ok(false)
            }
            Some("Split") => {
                let regex = match (json.pointer("/pattern/Regex"), json.pointer("/pattern/String")) {
                    (Some(Json::String(text)), _) => pattern(text)?,
                    (_, Some(Json::String(text))) => pattern(&regex::escape(text))?,
                    _ => return Err("a Split has no pattern".to_owned()),
                };
                self.steps.push(match json.get("behavior").and_then(Json::as_str) {
                    Some("Isolated") => Step::Isolate(regex),
                    Some("Removed") if flag("invert", false) => Step::Keep(regex),
                    behavior => return Err(format!("it splits with the behavior {behavior:?}")),
                });
                Ok(false)
            }
            other => Err(format!("it splits by {}", other.unwrap_or("nothing"))),
        }
    }

    /// The pieces of a text.
    pub(super) fn pieces(&self, text: &str) -> Vec<String> {
        let mut pieces = vec![text.to_owned()];
        for step in &self.steps {
            pieces = pieces
                .into_iter()
                .flat_map(|piece| match step {
                    Step::Prefix if piece.starts_with(' ') => vec![piece],
                    Step::Prefix => vec![format!(" {piece}")],
                    Step::Isolate(regex) => apart(regex, &piece, true),
                    Step::Keep(regex) => apart(regex, &piece, false),
                })
                .filter(|piece| !piece.is_empty())
                .collect();
        }
        pieces
    }
}

/// A pattern of a tokenizer as this engine's: it has no look-ahead, of which tokenizers use one for white space.
fn pattern(text: &str) -> Result<Regex, String> {
    let text = text.replace(RUN, r"(?<run>\s+)");
    Regex::new(&text).map_err(|_| format!("it splits by the pattern {text}"))
}

/// Matches of a pattern, with what stands between them or without.
fn apart(regex: &Regex, text: &str, with_rest: bool) -> Vec<String> {
    let mut pieces = Vec::new();
    let (mut from, mut rest) = (0, 0);
    while let Some(found) = regex.captures_at(text, from)
        && let Some(whole) = found.get(0)
    {
        let mut end = whole.end();
        if whole.is_empty() {
            // Nothing is no piece; go on after the next letter.
            match text[end..].chars().next() {
                Some(letter) => from = end + letter.len_utf8(),
                None => break,
            }
            continue;
        }
        if found.name("run").is_some() && end < text.len() {
            let last = whole.as_str().chars().next_back().map_or(0, char::len_utf8);
            // A single space stays as it is.
            if last < whole.len() {
                end -= last;
            }
        }
        if with_rest {
            pieces.push(text[rest..whole.start()].to_owned());
        }
        pieces.push(text[whole.start()..end].to_owned());
        (from, rest) = (end, end);
    }
    if with_rest {
        pieces.push(text[rest..].to_owned());
    }
    pieces
}
