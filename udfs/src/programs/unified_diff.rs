//! Line difference of two programs.

use similar::TextDiff;

/// Lines of context around a change.
const CONTEXT_LINES: usize = 3;

/// Unified diff that turns `a` into `b`, with three lines of context; empty when the texts are equal.
pub fn unified_diff(a: &str, b: &str) -> String {
    TextDiff::from_lines(a, b)
        .unified_diff()
        .context_radius(CONTEXT_LINES)
        .header("a", "b")
        .to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::unified_diff;

    #[test]
    fn shows_the_change() {
        assert_eq!(
            unified_diff("x = 1\ny = 2\n", "x = 1\ny = 3\n"),
            "--- a\n+++ b\n@@ -1,2 +1,2 @@\n x = 1\n-y = 2\n+y = 3\n"
        );
        assert_eq!(unified_diff("same", "same"), "");
    }
}
