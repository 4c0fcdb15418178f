//! Removes official scores from a log before a model sees it.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::lines::split_lines;

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
const NUMBER: &str = r"[+-]?(?:\d[\d_,]*(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?|nan|inf(?:inity)?)";

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
            (?:final|official|submit|submission|leaderboard)[\s_-]*score\b["'*`\s]*[:=]
          | \#\#\s*score\s*\#\#\s*:?
        )
        ["'*`\s]*{NUMBER}"#
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

    use super::{NOTICE, sanitize_output};

    #[test]
    fn every_spelling_is_removed() {
        for line in [
            "Final Score: 0.5",
            "FINAL SCORE = nan",
            "{\"Final Score\": 0.5}",
            "{'final_score': -inf, 'n': 3}",
            "**Final Score:** 12 points",
            "##SCORE## 1e5",
            "## score ##: 3",
            "x official score: .5 y",
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
    fn the_programs_own_words_stay() {
        for line in [
            "Final Validation Score: 0.81",
            "Validation Final Score: 0.81",
            "Score: 0.7",
            "final score is computed below",
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
