//! Shortens a text by leaving out its middle.

use std::borrow::Cow;

/// The text itself when it has at most `max` characters; otherwise its first and last `keep` characters around a line
/// that says how many were left out.
///
/// A text that would not get shorter is returned as it is.
pub fn truncate_middle(text: &str, max: usize, keep: usize) -> Cow<'_, str> {
    // A text has no more characters than bytes, so most texts need no count.
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let length = text.chars().count();
    let kept = keep.saturating_mul(2);
    if length <= max || length <= kept {
        return Cow::Borrowed(text);
    }
    let head_end = text.char_indices().nth(keep).map_or(text.len(), |(at, _)| at);
    let tail_start = text.char_indices().nth(length - keep).map_or(text.len(), |(at, _)| at);
    let marker = format!("\n ... [{} characters not shown] ... \n", length - kept);
    if marker.len() >= length - kept {
        return Cow::Borrowed(text);
    }
    Cow::Owned([&text[..head_end], &marker, &text[tail_start..]].concat())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::truncate_middle;

    #[test]
    fn keeps_both_ends() {
        let text = format!("{}{}", "é".repeat(60), "b".repeat(60));
        assert_eq!(
            truncate_middle(&text, 100, 2),
            "éé\n ... [116 characters not shown] ... \nbb"
        );
        assert_eq!(
            truncate_middle(&text, 100, 0),
            "\n ... [120 characters not shown] ... \n"
        );
        assert_eq!(truncate_middle(&text, 120, 2), text);
        assert_eq!(truncate_middle(&text, 10, 59), text);
        assert_eq!(truncate_middle(&text, 10, usize::MAX), text);
        assert_eq!(truncate_middle("", 0, 0), "");
    }
}
