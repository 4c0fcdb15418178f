//! The texts that values came from, and the line of a key in them: an error then says where to look.

use toml::de::{DeTable, DeValue};

/// Texts by the names that origins have.
#[derive(Debug, Clone, Default)]
pub(super) struct Texts(Vec<(String, String)>);

impl Texts {
    /// Keeps the text of an origin.
    pub(super) fn add(&mut self, origin: &str, text: &str) {
        self.0.push((origin.to_owned(), text.to_owned()));
    }

    /// The origin, with the line of the key where it has one.
    pub(super) fn place<T: AsRef<str>>(&self, origin: &str, key: &[T]) -> String {
        let line = self
            .0
            .iter()
            .rev()
            .find(|(name, _)| name == origin)
            .and_then(|(_, text)| line_of(text, key));
        match line {
            Some(line) => format!("{origin}:{line}"),
            None => origin.to_owned(),
        }
    }
}

/// Line of a key, counted from 1; of the section it belongs to where the text does not have it.
fn line_of<T: AsRef<str>>(text: &str, key: &[T]) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let mut table = document.get_ref();
    let mut start = None;
    for part in key {
        let Some((name, value)) = table.iter().find(|(name, _)| name.get_ref() == part.as_ref()) else {
            break;
        };
        start = Some(name.span().start);
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => break,
        }
    }
    let before = text.get(..start?)?;
    Some(before.matches('\n').count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# A file.\n[search]\nsteps = 1\n\nsettings.drafts = 2\n[sandbox]\nwarm = true\n";

    #[test]
    fn keys_are_found_in_their_lines() {
        let line = |key: &[&str]| line_of(TEXT, key);
        assert_eq!(line(&["search", "steps"]), Some(3));
        assert_eq!(line(&["search", "settings", "drafts"]), Some(5));
        assert_eq!(line(&["sandbox", "warm"]), Some(7));
        assert_eq!(line(&["search", "seed"]), Some(2));
        assert_eq!(line(&["store", "path"]), None);
        assert_eq!(line_of("[search\n", &["search"]), None);
    }

    #[test]
    fn an_origin_without_a_text_stays_as_it_is() {
        let mut texts = Texts::default();
        texts.add("clade.toml", TEXT);
        assert_eq!(texts.place("clade.toml", &["sandbox", "warm"]), "clade.toml:7");
        assert_eq!(
            texts.place("command line (--set)", &["sandbox", "warm"]),
            "command line (--set)"
        );
    }
}
