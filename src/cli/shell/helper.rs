//! What rustyline asks while a line is typed: completions, colours, whether the statement is complete.

use std::borrow::Cow;

use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};

use super::dot;
use super::lexer::{Kind, is_complete, pieces};
use super::words::{KEYWORDS, Words};
use crate::cli::terminal::{Look, Terminal};

/// Helps to type a line.
pub(super) struct LineHelper {
    pub words: Words,
    files: FilenameCompleter,
    terminal: Terminal,
}

impl LineHelper {
    pub fn new(terminal: Terminal) -> Self {
        Self {
            words: Words::default(),
            files: FilenameCompleter::new(),
            terminal,
        }
    }
}

impl Helper for LineHelper {}

impl Completer for LineHelper {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, context: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = &line[..pos];
        if before.starts_with(".read ") {
            return self.files.complete(line, pos, context);
        }
        let start = before
            .rfind(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '$')))
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let written = &before[start..];
        let words = if start == 0 && written.starts_with('.') {
            dot::NAMES
                .iter()
                .filter(|name| name.starts_with(written))
                .map(|name| (*name).to_owned())
                .collect()
        } else {
            self.words.complete(written)
        };
        Ok((
            start,
            words
                .into_iter()
                .map(|word| Pair {
                    display: word.clone(),
                    replacement: word,
                })
                .collect(),
        ))
    }
}

impl Hinter for LineHelper {
    type Hint = String;
}

impl Highlighter for LineHelper {
    fn highlight<'l>(&self, line: &'l str, _pos: usize) -> Cow<'l, str> {
        if !self.terminal.color {
            return Cow::Borrowed(line);
        }
        let mut painted = String::with_capacity(line.len() * 2);
        for piece in pieces(line) {
            let look = match piece.kind {
                Kind::Word if KEYWORDS.iter().any(|word| word.eq_ignore_ascii_case(piece.text)) => Some(Look::Cyan),
                Kind::Text => Some(Look::Green),
                Kind::Number => Some(Look::Yellow),
                Kind::Comment => Some(Look::Dim),
                _ => None,
            };
            match look {
                Some(look) => painted.push_str(&self.terminal.paint(look, piece.text)),
                None => painted.push_str(piece.text),
            }
        }
        Cow::Owned(painted)
    }

    fn highlight_char(&self, _line: &str, _pos: usize, _kind: CmdKind) -> bool {
        self.terminal.color
    }
}

impl Validator for LineHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> Result<ValidationResult, ReadlineError> {
        let text = context.input();
        let complete = text.trim_start().starts_with('.') || is_complete(text);
        Ok(if complete {
            ValidationResult::Valid(None)
        } else {
            ValidationResult::Incomplete
        })
    }
}
