//! Finds stop strings in text that comes in pieces.

/// What is known after a piece.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::engine) struct Released {
    /// Text that belongs to the answer for certain.
    pub(in crate::engine) text: String,
    /// Number of the stop string that was found.
    pub(in crate::engine) stop: Option<usize>,
}

/// Holds text back as long as it may be the beginning of a stop string.
#[derive(Debug, Clone, Default)]
pub(in crate::engine) struct StopMatcher {
    stops: Vec<String>,
    held: String,
}

impl StopMatcher {
    /// A matcher of some strings, none of them empty.
    pub(in crate::engine) fn new(stops: &[String]) -> Self {
        Self {
            stops: stops.to_vec(),
            held: String::new(),
        }
    }

    /// Takes the next piece. When a stop string is complete, the text before it is released and the rest is lost.
    pub(in crate::engine) fn push(&mut self, piece: &str) -> Released {
        self.held.push_str(piece);
        let found = (0..)
            .zip(&self.stops)
            .filter_map(|(number, stop)| Some((self.held.find(stop.as_str())?, number)));
        if let Some((start, number)) = found.min() {
            let mut text = std::mem::take(&mut self.held);
            text.truncate(start);
            return Released {
                text,
                stop: Some(number),
            };
        }
        let rest = self.held.split_off(self.certain());
        Released {
            text: std::mem::replace(&mut self.held, rest),
            stop: None,
        }
    }

    /// The text that is held back, when nothing follows.
    pub(in crate::engine) fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Bytes of the held text that cannot be the beginning of a stop string.
    fn certain(&self) -> usize {
        let longest = self.stops.iter().map(String::len).max().unwrap_or(0);
        let from = self.held.len().saturating_sub(longest.saturating_sub(1));
        (from..self.held.len())
            .filter(|start| self.held.is_char_boundary(*start))
            .find(|start| self.stops.iter().any(|stop| stop.starts_with(&self.held[*start..])))
            .unwrap_or(self.held.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stops: &[&str], pieces: &[&str]) -> (Vec<String>, Option<usize>) {
        let stops: Vec<String> = stops.iter().map(ToString::to_string).collect();
        let mut matcher = StopMatcher::new(&stops);
        let mut texts = Vec::new();
        for piece in pieces {
            let Released { text, stop } = matcher.push(piece);
            texts.push(text);
            if stop.is_some() {
                return (texts, stop);
            }
        }
        texts.push(matcher.finish());
        (texts, None)
    }

    #[test]
    fn a_stop_string_is_found_across_pieces_and_cut() {
        assert_eq!(
            read(&["END"], &["abE", "N", "Dxy"]),
            (vec!["ab".into(), "".into(), "".into()], Some(0))
        );
        assert_eq!(read(&["\n\n"], &["one\n", "two\n", "\nthree"]).0.concat(), "one\ntwo");
    }

    #[test]
    fn what_only_looked_like_a_stop_string_comes_later() {
        assert_eq!(
            read(&["END"], &["abE", "N", "x"]),
            (vec!["ab".into(), "".into(), "ENx".into(), "".into()], None)
        );
        assert_eq!(read(&["END"], &["abEN"]), (vec!["ab".into(), "EN".into()], None));
        // The beginning overlaps itself.
        assert_eq!(read(&["aab"], &["a", "a", "a", "b", "c"]).0.concat(), "a");
    }

    #[test]
    fn the_first_of_several_counts() {
        assert_eq!(
            read(&["c", "bc", "abcd"], &["ab", "c", "d"]),
            (vec!["".into(), "a".into()], Some(1))
        );
        assert_eq!(read(&["x", "y"], &["1y2x"]), (vec!["1".into()], Some(1)));
    }

    #[test]
    fn characters_of_many_bytes_are_not_cut() {
        assert_eq!(read(&["éé"], &["aé", "b", "é", "é"]).0.concat(), "aéb");
        assert_eq!(read(&["é"], &["a€"]).0.concat(), "a€");
    }
}
