//! Top-level modules that a program imports.

use std::collections::BTreeSet;

use rustpython_ruff_python_ast::token::TokenKind;

use super::source::{Source, SourceToken};

/// Names of the top-level modules imported anywhere in the program, sorted, each once.
///
/// `from .a import b` gives `a`; `from . import b` gives nothing. Programs with syntax errors still give their imports,
/// because statements are found by their tokens; words inside strings and comments do not count.
pub fn python_imports(code: &str) -> Vec<String> {
    top_level_modules(&Source::read(code))
        .into_iter()
        .map(str::to_owned)
        .collect()
}

/// As [`python_imports`], for a program that was read before.
pub(super) fn top_level_modules<'a>(source: &Source<'a>) -> BTreeSet<&'a str> {
    let mut modules = BTreeSet::new();
    let tokens: Vec<SourceToken> = source
        .tokens()
        .iter()
        .copied()
        .filter(|token| token.kind != TokenKind::Comment)
        .collect();
    let mut at_start = true;
    for (index, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::Import if at_start => imported(source, &tokens[index + 1..], &mut modules),
            TokenKind::From if at_start => imported_from(source, &tokens[index + 1..], &mut modules),
            _ => {}
        }
        at_start = starts_statement(token.kind);
    }
    modules
}

fn starts_statement(previous: TokenKind) -> bool {
    matches!(
        previous,
        TokenKind::Newline
            | TokenKind::NonLogicalNewline
            | TokenKind::Indent
            | TokenKind::Dedent
            | TokenKind::Semi
            | TokenKind::Colon
    )
}

/// `import a.b as c, d`: the first name of each dotted path.
fn imported<'a>(source: &Source<'a>, tokens: &[SourceToken], modules: &mut BTreeSet<&'a str>) {
    let mut expects_module = true;
    for token in tokens {
        match token.kind {
            TokenKind::Comma => expects_module = true,
            kind if is_name(kind) => {
                if expects_module {
                    modules.insert(source.text_of(*token));
                }
                expects_module = false;
            }
            TokenKind::Dot | TokenKind::As => {}
            _ => return,
        }
    }
}

/// `from a.b import c`: counts only when the word `import` follows the path, which tells it from `raise x from y`.
fn imported_from<'a>(source: &Source<'a>, tokens: &[SourceToken], modules: &mut BTreeSet<&'a str>) {
    let mut module = None;
    for token in tokens {
        match token.kind {
            TokenKind::Dot | TokenKind::Ellipsis => {}
            TokenKind::Import => {
                modules.extend(module);
                return;
            }
            kind if is_name(kind) => {
                module.get_or_insert(source.text_of(*token));
            }
            _ => return,
        }
    }
}

fn is_name(kind: TokenKind) -> bool {
    kind == TokenKind::Name || kind.is_soft_keyword()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::python_imports;

    #[test]
    fn finds_imports_wherever_they_stand() {
        let code = "if gpu: import torch\ntry:\n    from . import local\n    from .sibling import x\nexcept ImportError as e:\n    \
                    raise ValueError from e\ndef f():\n    import numpy as np, pandas.io as p\n    yield from numbers\n";
        assert_eq!(python_imports(code), ["numpy", "pandas", "sibling", "torch"]);
    }

    #[test]
    fn survives_broken_programs() {
        assert_eq!(
            python_imports("import a\nfoo(\nimport b\nx = = 2\n  from c.d import e\n"),
            ["a", "b", "c"]
        );
        assert_eq!(python_imports("s = '''import fake\n"), Vec::<String>::new());
        assert_eq!(python_imports("# import fake\nimport match, type\n"), ["match", "type"]);
    }
}
