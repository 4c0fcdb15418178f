//! Code fences of a Markdown text.

/// A fence that opens a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Opening<'a> {
    /// First word after the fence, in lower case, without braces and dots.
    pub(super) language: String,
    /// Spaces before the fence; as many are taken off the lines inside.
    pub(super) indent: usize,
    /// Byte offset of the fence in its line.
    at: usize,
    fence: &'a str,
}

impl<'a> Opening<'a> {
    /// Reads a line as an opening fence.
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        let trimmed = line.trim_start();
        let indent = line.len() - trimmed.len();
        match fence_run(trimmed) {
            Some(fence) => {
                let info = &trimmed[fence.len()..];
                // Backticks after backticks are inline code.
                (!(fence.starts_with('`') && info.contains('`'))).then(|| Self {
                    language: language(info),
                    indent,
                    at: indent,
                    fence,
                })
            }
            None => Self::parse_trailing(line, indent),
        }
    }

    /// A fence that the model put at the end of a sentence: only with a language, since it may close inline code.
    fn parse_trailing(line: &'a str, indent: usize) -> Option<Self> {
        let at = line.find("```")?;
        let fence = fence_run(&line[at..])?;
        let info = &line[at + fence.len()..];
        let language = language(info);
        (is_python(&language) && !language.is_empty() && info.trim().eq_ignore_ascii_case(&language)).then_some(Self {
            language,
            indent,
            at,
            fence,
        })
    }

    /// Whether the block can hold Python: it says so, or says nothing.
    pub(super) fn is_python(&self) -> bool {
        is_python(&self.language)
    }

    /// Whether a line closes the block.
    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim();
        line.len() >= self.fence.len() && fence_run(line) == Some(line) && line.starts_with(&self.fence[..1])
    }
}

fn is_python(language: &str) -> bool {
    matches!(language, "" | "python" | "py" | "python3")
}

/// The run of three or more backticks or tildes at the start of the text.
fn fence_run(text: &str) -> Option<&str> {
    let first = text.chars().next().filter(|first| matches!(first, '`' | '~'))?;
    let length = text.chars().take_while(|letter| *letter == first).count();
    (length >= 3).then(|| &text[..length])
}

fn language(info: &str) -> String {
    info.trim_start_matches(|letter: char| letter.is_whitespace() || matches!(letter, '{' | '.'))
        .chars()
        .take_while(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '+' | '#' | '-'))
        .flat_map(char::to_lowercase)
        .collect()
}

/// Byte ranges of the blocks that are closed, from the first fence to the last.
pub(super) fn closed_blocks(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut blocks = Vec::new();
    let mut open: Option<(Opening<'_>, usize)> = None;
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let end = offset + line.len();
        open = match open {
            Some((opening, start)) if opening.is_closed_by(line) => {
                blocks.push(start..end);
                None
            }
            Some(block) => Some(block),
            None => Opening::parse(line).map(|opening| {
                let start = offset + opening.at;
                (opening, start)
            }),
        };
        offset = end;
    }
    blocks
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::{Opening, closed_blocks};

    #[test]
    fn openings() {
        for (line, language) in [
            ("```", ""),
            ("``` Python", "python"),
            ("  ~~~py title=x", "py"),
            ("```{.python3}", "python3"),
            ("Here it is: ```python", "python"),
            ("```c++", "c++"),
        ] {
            assert_eq!(Opening::parse(line).unwrap().language, language, "{line}");
        }
        for line in ["``x``", "```x```", "text ```", "plain"] {
            assert_eq!(Opening::parse(line), None, "{line}");
        }
    }

    #[test]
    fn blocks_need_a_closing_fence_of_the_same_kind() {
        let text = "a\n````\n```\n````\nb\n~~~\n```\n";
        assert_eq!(closed_blocks(text), vec![2..16; 1]);
    }
}
