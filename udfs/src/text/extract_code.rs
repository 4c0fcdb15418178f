//! Takes the program out of a model's reply.

use super::fence::Opening;
use super::lines::normalize_newlines;
use super::thinking::strip_thinking;
use crate::programs::source::Source;

/// Most closing fences tried for one block; a program may hold fences inside its own strings.
const MAX_CLOSINGS: usize = 8;

/// The program of a reply and how it was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtractedCode {
    /// The program with `\n` line ends and without surrounding blank lines; nothing when the reply holds none.
    pub code: Option<String>,
    /// The program stood in a code block, not alone.
    pub fenced: bool,
    /// The program's code block was never closed, so the reply may have been cut off.
    pub unclosed: bool,
    /// Number of earlier programs in the reply that were passed over as drafts.
    pub drafts: usize,
}

/// Finds the program of a reply.
///
/// A reply that is a program as a whole is taken as it is. Otherwise thinking is stripped, and the last closed block
/// (`python`, `py`, `python3` in any case, or no language) that holds a program wins; without one, a block that is
/// never closed is taken to the end. Text counts as a program when it parses as Python and has a statement that is more
/// than a bare expression. Line ends become `\n`; nothing else of the program is changed.
pub fn extract_code(text: &str) -> ExtractedCode {
    let text = normalize_newlines(text);
    if let Some(code) = program(&text) {
        return ExtractedCode {
            code: Some(code),
            ..ExtractedCode::default()
        };
    }
    let answer = strip_thinking(&text);
    let blocks = program_blocks(&answer);
    let winner = blocks
        .iter()
        .rposition(|block| block.closed)
        .or_else(|| blocks.len().checked_sub(1));
    match winner.and_then(|index| blocks.into_iter().nth(index).map(|block| (index, block))) {
        Some((drafts, block)) => ExtractedCode {
            code: Some(block.code),
            fenced: true,
            unclosed: !block.closed,
            drafts,
        },
        None => ExtractedCode {
            code: program(&answer),
            ..ExtractedCode::default()
        },
    }
}

struct ProgramBlock {
    code: String,
    closed: bool,
}

/// Blocks that hold programs, in text order.
fn program_blocks(text: &str) -> Vec<ProgramBlock> {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut blocks = Vec::new();
    let mut index = 0;
    while let Some(line) = lines.get(index) {
        index += 1;
        let Some(opening) = Opening::parse(line) else { continue };
        let body = &lines[index..];
        let mut closings = (0..body.len()).filter(|at| opening.is_closed_by(body[*at]));
        if !opening.is_python() {
            index += closings.next().map_or(body.len(), |at| at + 1);
            continue;
        }
        let closings: Vec<usize> = closings.take(MAX_CLOSINGS).collect();
        let closed = closings
            .iter()
            .find_map(|at| Some((*at, block_program(&opening, &body[..*at])?)));
        index += match (closed, closings.first()) {
            (Some((at, code)), _) => {
                blocks.push(ProgramBlock { code, closed: true });
                at + 1
            }
            (None, Some(first)) => first + 1,
            (None, None) => {
                blocks.extend(open_block(&opening, body));
                body.len()
            }
        };
    }
    blocks
}

/// A block without a closing line; a fence at the end of a code line closes it too.
fn open_block(opening: &Opening<'_>, body: &[&str]) -> Option<ProgramBlock> {
    if let Some(code) = block_program(opening, body) {
        return Some(ProgramBlock { code, closed: false });
    }
    let text = body.join("\n");
    let (inside, _) = text.split_once("```")?;
    let lines: Vec<&str> = inside.split('\n').collect();
    Some(ProgramBlock {
        code: block_program(opening, &lines)?,
        closed: true,
    })
}

fn block_program(opening: &Opening<'_>, lines: &[&str]) -> Option<String> {
    if opening.indent == 0 {
        return program(&lines.join("\n"));
    }
    let shifted: Vec<&str> = lines
        .iter()
        .map(|line| {
            let spaces = line.bytes().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            &line[spaces.min(opening.indent)..]
        })
        .collect();
    program(&shifted.join("\n"))
}

/// The text without surrounding blank lines, when it is a program.
fn program(text: &str) -> Option<String> {
    let text = text.trim_end().trim_start_matches('\n');
    Source::read(text).is_program().then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::extract_code;

    fn code(text: &str) -> Option<String> {
        extract_code(text).code
    }

    #[test]
    fn fences() {
        for (text, expected) in [
            ("Plan\n```Python\nx = 1\n```\nbye", Some("x = 1")),
            ("```py\nx = 1\n```", Some("x = 1")),
            ("~~~python3\nx = 1\n~~~", Some("x = 1")),
            ("```\nx = 1\n```", Some("x = 1")),
            ("See:```python\nx = 1\n```", Some("x = 1")),
            ("- item\n  ```python\n  if a:\n    x = 1\n  ```", Some("if a:\n  x = 1")),
            ("```json\n{}\n```", None),
            ("```python\nx = 1```", Some("x = 1")),
            ("```python\nx = '''\n```\n'''\n```\n", Some("x = '''\n```\n'''")),
            ("```python\nmain()\n```", None),
            ("```r\nx = 1\n```", None),
            ("hello", None),
            ("x = 1\r\ny = 2\r\n", Some("x = 1\ny = 2")),
            ("", None),
        ] {
            assert_eq!(code(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn the_last_complete_program_wins() {
        let reply = "<think>```python\nthought = 1\n```</think>Draft:\n```python\nx = 1\n```\nFinal:\n```python\nx = 2\n```\nRun it:\n```\nmain()\n```";
        let found = extract_code(reply);
        assert_eq!(
            (found.code.as_deref(), found.drafts, found.fenced, found.unclosed),
            (Some("x = 2"), 1, true, false)
        );
        let found = extract_code("```python\nx = 1\n```\n```python\nx = 2\n");
        assert_eq!((found.code.as_deref(), found.unclosed), (Some("x = 1"), false));
        let found = extract_code("```python\nx = 2\n");
        assert_eq!((found.code.as_deref(), found.unclosed), (Some("x = 2"), true));
    }
}
