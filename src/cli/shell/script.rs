//! A text of statements and of commands of the shell.

use super::lexer::is_complete;

/// A part of a text, in its order.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// Statements; blank lines stand for what came before, so that errors name the line of the whole text.
    Statements(String),
    /// A line that begins with a dot.
    Command(&'a str),
}

/// Cuts a text at the lines that begin with a dot where no statement is open.
pub(super) fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut open = String::new();
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if line.trim_start().starts_with('.') && is_complete(&open) {
            flush(&mut open, &mut parts);
            parts.push(Part::Command(line.trim()));
            open = "\n".repeat(number + 1);
        } else {
            open.push_str(line);
        }
    }
    flush(&mut open, &mut parts);
    parts
}

fn flush(open: &mut String, parts: &mut Vec<Part<'_>>) {
    let statements = std::mem::take(open);
    if !statements.trim().is_empty() {
        parts.push(Part::Statements(statements));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements(text: &str) -> Part<'_> {
        Part::Statements(text.to_owned())
    }

    #[test]
    fn commands_stand_between_statements() {
        assert_eq!(
            parts("SELECT 1;\n .format csv\nSELECT\n.5;\n.quit\n"),
            [
                statements("SELECT 1;\n"),
                Part::Command(".format csv"),
                statements("\n\nSELECT\n.5;\n"),
                Part::Command(".quit"),
            ]
        );
        assert_eq!(parts(".runs"), [Part::Command(".runs")]);
        assert_eq!(
            parts("-- a comment\n.runs\n"),
            [statements("-- a comment\n"), Part::Command(".runs")]
        );
        assert_eq!(parts("SELECT '\n.runs\n'"), [statements("SELECT '\n.runs\n'")]);
        assert_eq!(parts(" \n"), []);
    }
}
