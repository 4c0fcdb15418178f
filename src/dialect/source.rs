//! The text of a query: positions, slices and excerpts.

use datafusion::sql::sqlparser::tokenizer::Location;
use unicode_width::UnicodeWidthChar;

/// Widest excerpt of a line that an error shows, in characters.
const EXCERPT_WIDTH: usize = 100;

/// The user's text with the byte offset of every line.
#[derive(Debug)]
pub(super) struct Source<'a> {
    text: &'a str,
    line_starts: Vec<usize>,
}

impl<'a> Source<'a> {
    /// Index the lines of `text`.
    pub(super) fn new(text: &'a str) -> Self {
        let line_starts = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        Self { text, line_starts }
    }

    /// Byte offset of a location; the end of the text when the location lies behind it.
    fn offset(&self, location: Location) -> usize {
        let line = usize::try_from(location.line.saturating_sub(1)).unwrap_or(usize::MAX);
        let Some(&start) = self.line_starts.get(line) else {
            return self.text.len();
        };
        let column = usize::try_from(location.column.saturating_sub(1)).unwrap_or(usize::MAX);
        self.text[start..]
            .char_indices()
            .nth(column)
            .map_or(self.text.len(), |(at, _)| start + at)
    }

    /// The text from `start` up to, not including, `end`.
    pub(super) fn slice(&self, start: Location, end: Location) -> &'a str {
        let start = self.offset(start);
        let end = self.offset(end).max(start);
        &self.text[start..end]
    }

    /// The location right behind the last character.
    pub(super) fn end(&self) -> Location {
        let last = self.line_starts.last().copied().unwrap_or(0);
        Location {
            line: self.line_starts.len() as u64,
            column: self.text[last..].chars().count() as u64 + 1,
        }
    }

    /// The line of `location` with a caret below the column, both indented by two spaces.
    pub(super) fn excerpt(&self, location: Location) -> String {
        let line = usize::try_from(location.line.saturating_sub(1)).unwrap_or(usize::MAX);
        let Some(&start) = self.line_starts.get(line) else {
            return String::new();
        };
        let text = self.text[start..].lines().next().unwrap_or_default();
        let column = usize::try_from(location.column.saturating_sub(1)).unwrap_or(usize::MAX);
        let from = if text.chars().count() > EXCERPT_WIDTH {
            column.saturating_sub(EXCERPT_WIDTH / 2)
        } else {
            0
        };
        let shown: String = text.chars().skip(from).take(EXCERPT_WIDTH).collect();
        // Tabs stay tabs, so that the caret stands right whatever the terminal makes of them.
        let gap: String = shown
            .chars()
            .take(column - from)
            .flat_map(|character| {
                let (fill, count) = if character == '\t' {
                    ('\t', 1)
                } else {
                    (' ', character.width().unwrap_or(0))
                };
                std::iter::repeat_n(fill, count)
            })
            .collect();
        format!("  {shown}\n  {gap}^")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_count_characters_not_bytes() {
        let source = Source::new("SELECT 'ü';\nSELECT 2");
        let slice = source.slice(Location { line: 1, column: 8 }, Location { line: 1, column: 11 });
        assert_eq!(slice, "'ü'");
        assert_eq!(source.end(), Location { line: 2, column: 9 });
        assert_eq!(
            source.slice(Location { line: 2, column: 1 }, Location { line: 9, column: 1 }),
            "SELECT 2"
        );
    }

    #[test]
    fn the_caret_stands_below_wide_characters_and_tabs() {
        let source = Source::new("\tSELECT '漢字' x");
        assert_eq!(
            source.excerpt(Location { line: 1, column: 14 }),
            "  \tSELECT '漢字' x\n  \t              ^"
        );
    }

    #[test]
    fn long_lines_are_cut_around_the_column() {
        let text = format!("{}x", " ".repeat(500));
        let excerpt = Source::new(&text).excerpt(Location { line: 1, column: 501 });
        assert_eq!(excerpt, format!("  {}x\n  {}^", " ".repeat(50), " ".repeat(50)));
    }
}
