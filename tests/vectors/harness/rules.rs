//! Rules that say where and why we differ from the reference.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::expectations::{Expectation, expectation};
use super::{Check, Predicate, agrees};

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    rule: Vec<Entry>,
}

/// A rule as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Vector file without its ending.
    file: String,
    /// Predicate on the input.
    when: String,
    /// What our answer must be.
    ours: String,
    /// Why.
    reason: String,
}

struct Rule {
    entry: Entry,
    predicate: Predicate,
    expectation: Expectation,
}

/// Rules of one vector file.
pub struct Rules(Vec<Rule>);

impl Rules {
    pub fn load(path: &Path, file: &str, predicates: &[(&str, Predicate)]) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let document: Document = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let rules = document
            .rule
            .into_iter()
            .filter(|entry| entry.file == file)
            .map(|entry| {
                assert!(
                    !entry.reason.trim().is_empty(),
                    "{file}: rule {} has no reason",
                    entry.when
                );
                let predicate = predicates
                    .iter()
                    .find(|(name, _)| *name == entry.when)
                    .unwrap_or_else(|| panic!("{file}: no predicate named {}", entry.when))
                    .1;
                let expectation =
                    expectation(&entry.ours).unwrap_or_else(|| panic!("{file}: no expectation named {}", entry.ours));
                Rule {
                    entry,
                    predicate,
                    expectation,
                }
            });
        Self(rules.collect())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Accepts a comparison that agrees without a rule, or differs as its rule says.
    pub fn judge(&self, check: &Check, used: &mut [usize]) -> Result<(), String> {
        let same = agrees(&check.reference, &check.ours);
        let Some((index, rule)) = self.0.iter().enumerate().find(|(_, rule)| (rule.predicate)(check)) else {
            return if same {
                Ok(())
            } else {
                Err(format!("{} differs and no rule speaks about it", check.what))
            };
        };
        let name = &rule.entry.when;
        if same {
            return Err(format!("{} agrees, but rule {name} says it differs", check.what));
        }
        if !(rule.expectation)(check) {
            return Err(format!("{} is not {} as rule {name} says", check.what, rule.entry.ours));
        }
        used[index] += 1;
        Ok(())
    }

    /// Complaints about rules that spoke about nothing.
    pub fn unused(&self, used: &[usize]) -> Vec<String> {
        self.0
            .iter()
            .zip(used)
            .filter(|(_, count)| **count == 0)
            .map(|(rule, _)| format!("rule {} matched nothing; take it out of the file", rule.entry.when))
            .collect()
    }
}
