//! Finds the last exception that a Python program printed.

/// An exception as the interpreter prints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RaisedException<'a> {
    /// Name with its module, such as `torch.cuda.OutOfMemoryError`.
    pub(super) name: &'a str,
    /// Message after the colon; empty without one.
    pub(super) message: &'a str,
    /// File of the innermost frame; empty when the log shows no frame.
    pub(super) innermost_file: &'a str,
}

impl<'a> RaisedException<'a> {
    /// Name without its module.
    pub(super) fn class_name(&self) -> &'a str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }
}

const HEADER: &str = "Traceback (most recent call last):";

/// The exception that ended the last traceback; without a traceback, the last line that reads like an exception.
pub(super) fn last_exception(log: &str) -> Option<RaisedException<'_>> {
    match log.rfind(HEADER) {
        Some(start) => after_header(&log[start + HEADER.len()..]),
        None => log.lines().rev().find_map(|line| {
            let (name, message) = split(line.trim_end())?;
            ends_like_exception(name).then_some(RaisedException {
                name,
                message,
                innermost_file: "",
            })
        }),
    }
}

/// Frames are indented; the first line that is not names the exception.
fn after_header(text: &str) -> Option<RaisedException<'_>> {
    let mut innermost_file = "";
    for line in text.lines() {
        if let Some(file) = frame_file(line) {
            innermost_file = file;
        } else if !line.is_empty()
            && !line.starts_with([' ', '\t'])
            && let Some((name, message)) = split(line.trim_end())
        {
            return Some(RaisedException {
                name,
                message,
                innermost_file,
            });
        }
    }
    None
}

fn frame_file(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("File \"")?.split('"').next()
}

/// Splits `name: message`; nothing when the line does not begin with a dotted name.
fn split(line: &str) -> Option<(&str, &str)> {
    let (name, message) = line.split_once(':').unwrap_or((line, ""));
    let is_dotted = !name.is_empty()
        && name.split('.').all(|part| {
            part.chars()
                .next()
                .is_some_and(|first| first.is_alphabetic() || first == '_')
                && part.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
        });
    is_dotted.then_some((name, message.trim()))
}

fn ends_like_exception(name: &str) -> bool {
    ["Error", "Exception", "Interrupt", "Exit"]
        .iter()
        .any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::last_exception;

    #[test]
    fn the_last_traceback_counts() {
        let log = "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 1\n\nDuring handling of the above exception, \
                   another exception occurred:\n\nTraceback (most recent call last):\n  File \"b.py\", line 1, in f\n    g()\n    ^^^\nmy.Problem: x: y\ntail\n";
        let found = last_exception(log).unwrap();
        assert_eq!(
            (found.name, found.message, found.innermost_file, found.class_name()),
            ("my.Problem", "x: y", "b.py", "Problem")
        );
    }

    #[test]
    fn without_a_traceback_a_line_must_look_like_an_exception() {
        assert_eq!(
            last_exception("  File \"a.py\", line 1\nSyntaxError: invalid syntax\n")
                .unwrap()
                .name,
            "SyntaxError"
        );
        assert_eq!(last_exception("Columns mismatch: expected id\nauc: 0.5\n"), None);
        assert_eq!(last_exception(""), None);
    }
}
