//! Reads Python source: its tokens, whether it parses, and whether it does anything.
//!
//! The parser goes on after errors, so broken programs still give tokens. It is recursive, so the nesting of the text
//! is measured first: what the Python interpreter itself would refuse as too deep is not parsed at all.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use rustpython_ruff_python_ast::token::TokenKind;
use rustpython_ruff_python_ast::{ModModule, PySourceType, Stmt};
use rustpython_ruff_python_parser::{Mode, Parsed, lexer, parse_unchecked_source};

/// Longest text taken for a program, in bytes.
const MAX_BYTES: usize = 8 << 20;
/// Deepest nesting that CPython compiles: brackets, blocks and operators together.
const MAX_NESTING: usize = 3_000;
/// Nesting that surely fits a default thread stack; deeper text is parsed on a thread with a large one.
const SHALLOW_NESTING: usize = 40;
/// Stack for deep text; only the pages that are touched cost memory.
const DEEP_STACK_BYTES: usize = 256 << 20;

/// A token and its byte range in the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SourceToken {
    pub(crate) kind: TokenKind,
    start: usize,
    end: usize,
}

impl SourceToken {
    /// Its bytes in the text.
    pub(crate) fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// A Python text that was read.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    text: &'a str,
    tokens: Vec<SourceToken>,
    parses: bool,
    has_statement: bool,
}

struct Facts {
    tokens: Vec<SourceToken>,
    parses: bool,
    has_statement: bool,
}

impl<'a> Source<'a> {
    /// Reads a text. A text that is too long or too deep has no tokens and does not parse.
    pub(crate) fn read(text: &'a str) -> Self {
        let facts = look_at(text, facts);
        match facts {
            Some(facts) => Self {
                text,
                tokens: facts.tokens,
                // CPython refuses null bytes.
                parses: facts.parses && !text.contains('\0'),
                has_statement: facts.has_statement,
            },
            None => Self {
                text,
                tokens: Vec::new(),
                parses: false,
                has_statement: false,
            },
        }
    }

    /// Tokens in text order; comments included.
    pub(crate) fn tokens(&self) -> &[SourceToken] {
        &self.tokens
    }

    /// Text of a token.
    pub(crate) fn text_of(&self, token: SourceToken) -> &'a str {
        self.text.get(token.start..token.end).unwrap_or_default()
    }

    /// Whether the text is a program: it parses and holds a statement that does more than name a value.
    pub(crate) fn is_program(&self) -> bool {
        self.parses && self.has_statement
    }
}

/// Parses a text and looks at what came of it; nothing when it is too long or too deep.
///
/// A fault inside the parser must not end a search: the text then counts as unreadable.
pub(super) fn look_at<T: Send>(text: &str, look: impl FnOnce(&Parsed<ModModule>) -> T + Send) -> Option<T> {
    if text.len() > MAX_BYTES {
        return None;
    }
    let parse_and_look = || look(&parse_unchecked_source(text, PySourceType::Python));
    match nesting(text) {
        depth if depth <= SHALLOW_NESTING => catch_unwind(AssertUnwindSafe(parse_and_look)).ok(),
        depth if depth <= MAX_NESTING => thread::scope(|scope| {
            let worker = thread::Builder::new()
                .name("python-parser".to_owned())
                .stack_size(DEEP_STACK_BYTES)
                .spawn_scoped(scope, parse_and_look);
            worker.ok()?.join().ok()
        }),
        _ => None,
    }
}

fn facts(parsed: &Parsed<ModModule>) -> Facts {
    let tokens = parsed
        .tokens()
        .iter()
        .map(|token| {
            let (kind, range) = token.as_tuple();
            SourceToken {
                kind,
                start: range.start().to_usize(),
                end: range.end().to_usize(),
            }
        })
        .collect();
    Facts {
        tokens,
        parses: parsed.has_no_syntax_errors(),
        has_statement: parsed.suite().iter().any(is_effective),
    }
}

/// Prose of one or two words can parse as a bare name, an annotation or a lone keyword; none of them is a program.
fn is_effective(statement: &Stmt) -> bool {
    match statement {
        Stmt::Expr(_) | Stmt::Pass(_) | Stmt::Break(_) | Stmt::Continue(_) => false,
        Stmt::AnnAssign(assignment) => assignment.value.is_some(),
        _ => true,
    }
}

/// Upper bound of the depth to which a recursive parser descends into the text.
///
/// Brackets and indents nest. Within one stretch between commas every operator can nest too (`not not x`, `a.b.c`,
/// `x if y else z if …`), so their number is added for each open bracket.
fn nesting(text: &str) -> usize {
    let mut lexer = lexer::lex(text, Mode::Module);
    let mut open: Vec<usize> = Vec::new();
    let mut current = 0_usize;
    let mut pending = 0_usize;
    let mut indents = 0_usize;
    let mut deepest = 0_usize;
    loop {
        match lexer.next_token() {
            TokenKind::EndOfFile => return deepest,
            TokenKind::Indent => indents += 1,
            TokenKind::Dedent => indents = indents.saturating_sub(1),
            TokenKind::Lpar
            | TokenKind::Lsqb
            | TokenKind::Lbrace
            | TokenKind::FStringStart
            | TokenKind::TStringStart => {
                current += 1;
                pending += current;
                open.push(current);
                current = 0;
            }
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace | TokenKind::FStringEnd | TokenKind::TStringEnd => {
                if let Some(outer) = open.pop() {
                    pending -= outer;
                    current = outer;
                }
            }
            TokenKind::Comma => current = 0,
            TokenKind::Newline | TokenKind::Semi if open.is_empty() => current = 0,
            TokenKind::Name
            | TokenKind::Int
            | TokenKind::Float
            | TokenKind::Complex
            | TokenKind::String
            | TokenKind::FStringMiddle
            | TokenKind::TStringMiddle
            | TokenKind::Comment
            | TokenKind::Newline
            | TokenKind::NonLogicalNewline => {}
            _ => current += 1,
        }
        deepest = deepest.max(pending + current + indents);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::{SHALLOW_NESTING, Source};

    #[test]
    fn programs_and_prose() {
        for program in [
            "x = 1",
            "import os",
            "def f():\n    pass\n",
            "if x:\n    y()\n",
            "x: int = 3",
            "for i in y: z()",
        ] {
            assert!(Source::read(program).is_program(), "{program}");
        }
        for other in [
            "",
            "hello",
            "Note: done",
            "pass",
            "# comment",
            "main()",
            "'doc'",
            "x = = 1",
            "x = '\0'",
            "print 'x'",
        ] {
            assert!(!Source::read(other).is_program(), "{other}");
        }
    }

    #[test]
    fn deep_text_is_refused_without_using_up_the_stack() {
        for (open, close) in [
            ("(", ")"),
            ("[", "]"),
            ("not ", ""),
            ("-", ""),
            ("lambda: ", ""),
            ("f(", ")"),
            ("x if y else ", ""),
        ] {
            let deep = format!("x = {}1{}", open.repeat(200_000), close.repeat(200_000));
            assert!(!Source::read(&deep).is_program());
            for depth in [SHALLOW_NESTING / 2, 150, 700] {
                let fine = format!("x = {}1{}", open.repeat(depth), close.repeat(depth));
                assert!(Source::read(&fine).is_program(), "{open}");
            }
        }
        assert!(!Source::read(&format!("x = a{}", ".b".repeat(300_000))).is_program());
        assert!(!Source::read(&format!("x = 1{}", " + 1".repeat(300_000))).is_program());
        assert!(Source::read(&format!("x = [{}]", "-1, ".repeat(100_000))).is_program());
    }
}
