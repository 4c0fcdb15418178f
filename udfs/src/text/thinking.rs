//! Takes the thinking of a reasoning model out of its reply.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::fence::closed_blocks;

/// The reply without its thinking, trimmed.
///
/// Every block between `<think>` and `</think>` is removed (`<thinking>` too, any case). Text before a `</think>` that
/// was never opened is thinking as well. A block that is never closed stays, because the reply may hold its program
/// there. Tags inside a closed code block are program text.
pub fn strip_thinking(text: &str) -> String {
    split_thinking(text).0
}

/// The reply as [`strip_thinking`] gives it, and the thinking that was taken out, without its tags; none when there was none.
pub fn split_thinking(text: &str) -> (String, Option<String>) {
    let mut answer = text.to_owned();
    let mut thinking = Vec::new();
    while let Some(range) = first_thinking(&answer) {
        let block = &answer[range.clone()];
        let block = CLOSE
            .find_iter(block)
            .last()
            .map_or(block, |close| &block[..close.start()]);
        let start = OPEN
            .find(block)
            .filter(|open| open.start() == 0)
            .map_or(0, |open| open.end());
        thinking.push(block[start..].trim().to_owned());
        answer.replace_range(range, "");
    }
    let thinking = thinking.join("\n\n");
    (answer.trim().to_owned(), (!thinking.is_empty()).then_some(thinking))
}

fn first_thinking(text: &str) -> Option<Range<usize>> {
    // Most replies hold no tag at all.
    CLOSE.find(text)?;
    let blocks = closed_blocks(text);
    let outside = |at: usize| !blocks.iter().any(|block| block.contains(&at));
    let open = OPEN.find_iter(text).find(|tag| outside(tag.start()));
    let orphan = CLOSE
        .find_iter(text)
        .find(|tag| outside(tag.start()) || is_alone_on_line(text, tag.range()))
        .filter(|close| open.is_none_or(|open| close.start() < open.start()));
    if let Some(close) = orphan {
        return Some(0..close.end());
    }
    let open = open?;
    let close = CLOSE.find_at(text, open.end())?;
    Some(open.start()..close.end())
}

/// Thinking may stop inside a draft whose fence is still open; the tag then stands on a line of its own.
fn is_alone_on_line(text: &str, tag: Range<usize>) -> bool {
    let before = text[..tag.start].rsplit('\n').next().unwrap_or_default();
    let after = text[tag.end..].split('\n').next().unwrap_or_default();
    before.trim().is_empty() && after.trim().is_empty()
}

#[allow(clippy::expect_used, reason = "the patterns are constants that the tests compile")]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("constant pattern")
}

static OPEN: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)<think(?:ing)?>"));
static CLOSE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)</think(?:ing)?>"));

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::{split_thinking, strip_thinking};

    #[test]
    fn thinking_is_kept_apart_without_its_tags() {
        assert_eq!(
            split_thinking("<think>a</think>b<THINKING> c\n</THINKING>d"),
            ("bd".to_owned(), Some("a\n\nc".to_owned()))
        );
        assert_eq!(
            split_thinking("reasons\n</think>\nanswer"),
            ("answer".to_owned(), Some("reasons".to_owned()))
        );
        assert_eq!(split_thinking("plain"), ("plain".to_owned(), None));
        assert_eq!(split_thinking("<think></think>plain"), ("plain".to_owned(), None));
    }

    #[test]
    fn thinking_goes_wherever_it_stands() {
        for (text, rest) in [
            ("<think>a</think>b<THINKING>c</THINKING>d", "bd"),
            ("reasons ```x```\n</think>\nanswer", "answer"),
            (
                "draft\n```python\nx = 1\n</think>\n```python\ny = 2\n```",
                "```python\ny = 2\n```",
            ),
            (
                "<think>```python\nx\n```</think>\n```python\ny\n```",
                "```python\ny\n```",
            ),
            ("<think>open ```python\nx = 1\n```", "<think>open ```python\nx = 1\n```"),
            ("a <think>b", "a <think>b"),
        ] {
            assert_eq!(strip_thinking(text), rest, "{text}");
        }
    }

    #[test]
    fn tags_in_programs_stay() {
        let text = "Plan\n```python\ntext = text.split('</think>')[0] + '<think>'\n```";
        assert_eq!(strip_thinking(text), text);
    }
}
