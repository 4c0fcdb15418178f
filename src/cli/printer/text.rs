//! Programs and differences as text.

use std::fmt::Write as _;

use similar::{ChangeTag, TextDiff};

use super::cell::one_line;
use crate::cli::terminal::{Look, Terminal};

/// Lines of context around a change.
const CONTEXT: usize = 3;

/// Lines of a log that are shown.
const LOG_LINES: usize = 40;

/// US dollars, to a hundredth of a cent.
pub fn dollars(amount: f64) -> String {
    if amount == 0.0 {
        "$0".to_owned()
    } else {
        format!("${amount:.4}")
    }
}

/// A time as people say it: `0.35 s`, `4.2 s`, `52 s`, `3 min 10 s`, `2 h 5 min`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round();
    if seconds < 0.005 {
        return "0 s".to_owned();
    }
    if seconds < 0.995 {
        return format!("{seconds:.2} s");
    }
    if seconds < 9.95 {
        return format!("{seconds:.1} s");
    }
    if whole < 60.0 {
        return format!("{whole} s");
    }
    if whole < 3600.0 {
        return format!("{} min {} s", (whole / 60.0).floor(), whole % 60.0);
    }
    let minutes = (seconds / 60.0).round();
    format!("{} h {} min", (minutes / 60.0).floor(), minutes % 60.0)
}

/// A score with as many digits as tell scores apart: six decimals, or four digits when it is tiny.
pub fn score(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-4 {
        return format!("{value:.3e}");
    }
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A number with its thing, in the plural where it must be.
pub fn counted(number: u64, thing: &str) -> String {
    let plural = match number {
        1 => "",
        _ if thing.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{number} {thing}{plural}")
}

/// A whole number with its thousands apart: `12,345`.
pub fn thousands(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::from(if number < 0 { "-" } else { "" });
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The end of a program's log.
pub struct LogEnd {
    /// The last lines.
    pub text: String,
    /// Whether that is the whole log.
    pub is_whole: bool,
}

/// The last lines of a log that is kept as its head and its tail. The tail goes on where the head ends, with a gap
/// when the log was long.
pub fn log_end(head: &str, tail: &str, bytes: u64) -> LogEnd {
    let has_gap = ((head.len() + tail.len()) as u64) < bytes;
    let text = if has_gap {
        tail.to_owned()
    } else {
        format!("{head}{tail}")
    };
    let lines: Vec<String> = text.lines().map(plain_line).collect();
    let cut = lines.len().saturating_sub(LOG_LINES);
    LogEnd {
        text: lines[cut..].join("\n"),
        is_whole: cut == 0 && !has_gap,
    }
}

/// A text with line numbers.
pub fn numbered(text: &str, terminal: Terminal) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let digits = lines.len().to_string().len();
    let mut out = String::new();
    for (number, line) in (1..).zip(lines) {
        let number = terminal.paint(Look::Dim, format!("{number:>digits$} "));
        let _ = writeln!(out, "{number} {}", plain_line(line));
    }
    out
}

/// Text broken at words, each line indented.
pub fn wrapped(text: &str, indent: &str, columns: usize) -> String {
    let room = columns.saturating_sub(indent.len()).max(20);
    let mut out = String::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            if !line.is_empty() && super::cell::width(&line) + 1 + super::cell::width(word) > room {
                let _ = writeln!(out, "{indent}{line}");
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&one_line(word));
        }
        let _ = writeln!(out, "{}", format!("{indent}{line}").trim_end());
    }
    out
}

/// A unified difference of two texts with their names; empty when they are equal.
pub fn unified_diff(old: (&str, &str), new: (&str, &str), terminal: Terminal) -> String {
    let diff = TextDiff::from_lines(old.1, new.1);
    let mut out = String::new();
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        if out.is_empty() {
            let _ = writeln!(out, "{}", terminal.paint(Look::Bold, format!("--- {}", old.0)));
            let _ = writeln!(out, "{}", terminal.paint(Look::Bold, format!("+++ {}", new.0)));
        }
        let _ = writeln!(out, "{}", terminal.paint(Look::Cyan, hunk.header()));
        for change in hunk.iter_changes() {
            let line = plain_line(change.value().trim_end_matches(['\n', '\r']));
            let line = match change.tag() {
                ChangeTag::Delete => terminal.paint(Look::Red, format!("-{line}")),
                ChangeTag::Insert => terminal.paint(Look::Green, format!("+{line}")),
                ChangeTag::Equal => format!(" {line}"),
            };
            let _ = writeln!(out, "{line}");
        }
    }
    out
}

/// A text of several lines without anything that a terminal would obey.
pub(super) fn plain_text(text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(plain_line).collect();
    lines.push(String::new());
    lines.join("\n")
}

/// A line of a program or a log without anything that a terminal would obey.
fn plain_line(line: &str) -> String {
    line.split('\t').map(one_line).collect::<Vec<_>>().join("\t")
}
