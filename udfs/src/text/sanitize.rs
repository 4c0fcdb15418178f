//! Removes official scores from a log before a model sees it.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use rustpython_ruff_python_ast::token::TokenKind;

use super::lines::split_lines;
use crate::programs::source::Source;

/// Stands where the first official score was.
const NOTICE: &str = "[official score removed]";

/// The log without official scores: `Final Score: …`, `##SCORE##…`, `Official Score`, `Submission Score` and
/// `Leaderboard Score` anywhere, and plain `Score: …` lines after the heading of a grader's feedback.
///
/// Case does not matter, JSON keys count, and so do `nan`, `inf` and numbers with a unit. The line of the first one
/// becomes a notice, later ones vanish. The program's own validation score stays, also when it shares a line with an
/// official one.
pub fn sanitize_output(log: &str) -> String {
    let mut cleaned = String::with_capacity(log.len());
    let mut in_feedback = false;
    let mut noticed = false;
    for (line, ending) in split_lines(log) {
        in_feedback |= HEADING.is_match(line);
        if holds_official(line) {
            if VALIDATION.is_match(line) {
                cleaned.push_str(&without_official(line, &mut noticed));
                cleaned.push_str(ending);
                continue;
            }
        } else if !(in_feedback && BARE.is_match(line)) {
            cleaned.push_str(line);
            cleaned.push_str(ending);
            continue;
        }
        if !noticed {
            cleaned.push_str(NOTICE);
            cleaned.push_str(ending);
            noticed = true;
        }
    }
    cleaned
}

/// The program without official scores in its comments and texts. What it computes stays: a variable named `final_score` is no
/// score. A text that is too long or nested too deep to be read loses them everywhere.
pub fn sanitize_program(code: &str) -> Cow<'_, str> {
    if !holds_official(code) {
        return Cow::Borrowed(code);
    }
    let source = Source::read(code);
    if source.tokens().is_empty() {
        return Cow::Owned(without_official(code, &mut false));
    }
    let mut cleaned = String::with_capacity(code.len());
    let mut copied = 0;
    for token in source.tokens() {
        let says = matches!(
            token.kind,
            TokenKind::Comment | TokenKind::String | TokenKind::FStringMiddle | TokenKind::TStringMiddle
        );
        let text = source.text_of(*token);
        if says && holds_official(text) {
            let range = token.range();
            cleaned.push_str(&code[copied..range.start]);
            cleaned.push_str(&without_official(text, &mut false));
            copied = range.end;
        }
    }
    cleaned.push_str(&code[copied..]);
    Cow::Owned(cleaned)
}

fn holds_official(line: &str) -> bool {
    OFFICIAL.captures_iter(line).any(|found| is_official(&found))
}

/// `Validation Final Score` is the program's own.
fn is_official(found: &Captures<'_>) -> bool {
    found.name("own").is_none()
}

fn without_official(line: &str, noticed: &mut bool) -> String {
    OFFICIAL
        .replace_all(line, |found: &Captures<'_>| {
            if !is_official(found) {
                return found[0].to_owned();
            }
            if std::mem::replace(noticed, true) {
                String::new()
            } else {
                NOTICE.to_owned()
            }
        })
        .into_owned()
}

/// A number with an optional sign, or a word for one that is none.
const NUMBER: &str = r"[+-]?(?:\d[\d_,]*(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?|(?:nan|inf(?:inity)?)\b)";

#[allow(clippy::expect_used, reason = "the patterns are constants that the tests compile")]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("constant pattern")
}

static HEADING: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)grader['’]?s?\s+feedback|execution\s+results?"));
static VALIDATION: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)validation[\s_-]+score"));
static OFFICIAL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(
        r#"(?ix)
        (?: (?P<own>validation[\s_-]+)?
            (?:final|official|submit|submission|leaderboard)[\s_-]*score(?:\s*\([^()]{{0,40}}\))?
            (?:["'*`\s\\]*(?:[:=]|-+>|→)|\s+(?:is|was|of)\b|[\s_])
          | \#\#\s*score\s*\#\#\s*:?
        )
        ["'*`\s\\]*{NUMBER}"#
    ))
});
static BARE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(
        r#"(?i)^[\s"'*`{{,>#-]*score["'*`\s]*[:=]["'*`\s]*{NUMBER}\s*(?:%|/\s*\d[\d.]*|[a-z]+)?["'*`\s}},.]*$"#
    ))
});

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::{NOTICE, sanitize_output, sanitize_program};

    #[test]
    fn every_spelling_is_removed() {
        for line in [
            "Final Score: 0.5",
            "FINAL SCORE = nan",
            "{\"Final Score\": 0.5}",
            "{'final_score': -inf, 'n': 3}",
            "{\\\"final_score\\\": 0.5}",
            "**Final Score:** 12 points",
            "##SCORE## 1e5",
            "## score ##: 3",
            "x official score: .5 y",
            "final score is 0.5",
            "Final score (rmse): 0.5",
            "No such file: 'final_score_0.5.csv'",
            "leaderboard score -> 3",
        ] {
            assert_eq!(
                sanitize_output(&format!("{line}\nend")),
                format!("{NOTICE}\nend"),
                "{line}"
            );
        }
        for line in [
            "Score: 5 points",
            "score: nan",
            "{\"score\": 0.7}",
            "**Score**: 85%",
            "- Score = 3/10",
        ] {
            assert_eq!(
                sanitize_output(&format!("# Grader feedback\n{line}\n")),
                format!("# Grader feedback\n{NOTICE}\n"),
                "{line}"
            );
        }
    }

    #[test]
    fn a_program_keeps_what_it_computes() {
        let code = "\"\"\"Reaches Final Score: 0.5.\"\"\"\nfinal_score = 0.5  # leaderboard score: 0.6, as seen\nprint(f'Final Score: {final_score}')\n";
        let clean = format!(
            "\"\"\"Reaches {NOTICE}.\"\"\"\nfinal_score = 0.5  # {NOTICE}, as seen\nprint(f'Final Score: {{final_score}}')\n"
        );
        assert_eq!(sanitize_program(code), clean);
        assert_eq!(sanitize_program(&clean), clean);
        let deep = "(".repeat(4_000);
        assert_eq!(
            sanitize_program(&format!("{deep}Final Score: 0.5")),
            format!("{deep}{NOTICE}")
        );
        let own = "# Final Validation Score: 0.5\nx = {'final_score': 0.5}\n";
        assert_eq!(sanitize_program(own), own);
    }

    #[test]
    fn the_programs_own_words_stay() {
        for line in [
            "Final Validation Score: 0.81",
            "Validation Final Score: 0.81",
            "Score: 0.7",
            "final score is computed below",
            "final score information",
            "{\"validation_score\": 0.5}",
        ] {
            assert_eq!(sanitize_output(line), line);
        }
        assert_eq!(
            sanitize_output("Final Validation Score: 0.8, Final Score: 0.7\nFinal Score: 1\n"),
            format!("Final Validation Score: 0.8, {NOTICE}\n")
        );
    }
}
