//! Fingerprint of a program: equal programs up to comments, layout and docstrings have equal fingerprints.

use rustpython_ruff_python_ast::token::TokenKind;
use sha2::{Digest, Sha256};

use super::source::{Source, SourceToken};

const END_OF_STATEMENT: &str = "\n";
const BLOCK_START: &str = "\u{2}";
const BLOCK_END: &str = "\u{3}";

/// SHA-256, in hexadecimal, of the program without comments, layout and docstrings.
///
/// Quote style and the case of string prefixes do not count either. A text that cannot be read as Python is hashed
/// as it is.
pub fn code_fingerprint(code: &str) -> String {
    let source = Source::read(code);
    let mut hasher = Sha256::new();
    if source.tokens().is_empty() {
        hasher.update(code.as_bytes());
    } else {
        visit_essence(&source, |part| {
            hasher.update(part.as_bytes());
            hasher.update(b"\x1f");
        });
    }
    hex::encode(hasher.finalize())
}

/// Calls `visit` with each part of the program that matters, in order.
pub(super) fn visit_essence<'a>(source: &Source<'a>, mut visit: impl FnMut(&'a str)) {
    let tokens = source.tokens();
    let mut at_start = true;
    let mut index = 0;
    while let Some(&token) = tokens.get(index) {
        index += 1;
        match token.kind {
            TokenKind::Comment | TokenKind::NonLogicalNewline | TokenKind::EndOfFile => {}
            TokenKind::Newline | TokenKind::Semi => {
                if !at_start {
                    visit(END_OF_STATEMENT);
                }
                at_start = true;
            }
            TokenKind::Indent => visit(BLOCK_START),
            TokenKind::Dedent => visit(BLOCK_END),
            TokenKind::String if at_start => match end_of_string_statement(&tokens[index..]) {
                Some(length) => index += length,
                None => {
                    at_start = false;
                    visit_string(source.text_of(token), &mut visit);
                }
            },
            TokenKind::String | TokenKind::FStringStart | TokenKind::TStringStart => {
                at_start = false;
                visit_string(source.text_of(token), &mut visit);
            }
            TokenKind::FStringEnd | TokenKind::TStringEnd => visit("\""),
            _ => {
                at_start = false;
                visit(source.text_of(token));
            }
        }
    }
}

/// Number of tokens up to the end of a statement that holds nothing but strings.
fn end_of_string_statement(tokens: &[SourceToken]) -> Option<usize> {
    for (index, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::String | TokenKind::Comment | TokenKind::NonLogicalNewline => {}
            TokenKind::Newline | TokenKind::Semi | TokenKind::EndOfFile => return Some(index),
            _ => return None,
        }
    }
    Some(tokens.len())
}

/// A string literal without its quotes: first the prefix letters that change its meaning, then the body.
fn visit_string<'a>(literal: &'a str, visit: &mut impl FnMut(&'a str)) {
    let quote = literal.find(['"', '\'']).unwrap_or(literal.len());
    let (prefix, quoted) = literal.split_at(quote);
    for letter in prefix.chars() {
        match letter.to_ascii_lowercase() {
            'r' => visit("r"),
            'b' => visit("b"),
            'f' => visit("f"),
            't' => visit("t"),
            _ => {}
        }
    }
    visit("\"");
    visit(quoted.trim_start_matches(['"', '\'']).trim_end_matches(['"', '\'']));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::code_fingerprint;

    #[test]
    fn layout_comments_and_docstrings_do_not_count() {
        let plain = "import os\ndef f(a, b):\n    return os.path.join(a, 'x', b)\n";
        let dressed = "'''Module.'''\n# about\nimport os ; \n\ndef f(a,\n      b):   # two\n  \"\"\"Doc.\"\"\"\n  return os.path.join( a, \"x\",b )";
        assert_eq!(code_fingerprint(plain), code_fingerprint(dressed));
        assert_eq!(code_fingerprint(plain).len(), 64);
    }

    #[test]
    fn meaning_counts() {
        let programs = [
            "x = 1",
            "x = 2",
            "x = '1'",
            "x = b'1'",
            "if a:\n  b = 1\nc = 1",
            "if a:\n  b = 1\n  c = 1",
            "ab = 1",
            "a; b = 1",
        ];
        for (index, left) in programs.iter().enumerate() {
            for right in &programs[index + 1..] {
                assert_ne!(code_fingerprint(left), code_fingerprint(right), "{left} / {right}");
            }
        }
    }
}
