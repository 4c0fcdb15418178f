//! How alike two programs are.

use std::collections::HashMap;

use super::fingerprint::visit_essence;
use super::source::Source;

/// Tokens in a shingle.
const SHINGLE: usize = 3;

/// What a program is made of: its runs of three tokens, with their numbers.
///
/// Reading a program once and comparing it often is cheap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeProfile<'a> {
    shingles: HashMap<[&'a str; SHINGLE], u32>,
    total: u64,
}

impl<'a> CodeProfile<'a> {
    /// Reads a program; comments, layout and docstrings do not count.
    pub fn read(code: &'a str) -> Self {
        let source = Source::read(code);
        let mut profile = Self {
            shingles: HashMap::new(),
            total: 0,
        };
        let mut window = [""; SHINGLE];
        let mut push = |part| {
            window.rotate_left(1);
            window[SHINGLE - 1] = part;
            *profile.shingles.entry(window).or_default() += 1;
            profile.total += 1;
        };
        if source.tokens().is_empty() {
            code.split_whitespace().for_each(&mut push);
        } else {
            visit_essence(&source, &mut push);
        }
        profile
    }

    /// Share of the runs that both have, from 0 to 1 (Dice coefficient).
    pub fn similarity(&self, other: &Self) -> f64 {
        let total = self.total + other.total;
        if total == 0 {
            return 1.0;
        }
        let (small, large) = if self.shingles.len() <= other.shingles.len() {
            (self, other)
        } else {
            (other, self)
        };
        let shared: u64 = small
            .shingles
            .iter()
            .filter_map(|(shingle, count)| large.shingles.get(shingle).map(|other| u64::from(*count.min(other))))
            .sum();
        2.0 * shared as f64 / total as f64
    }
}

/// Similarity of two programs from 0 (nothing in common) to 1 (equal but for comments, layout and docstrings).
pub fn code_similarity(a: &str, b: &str) -> f64 {
    CodeProfile::read(a).similarity(&CodeProfile::read(b))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::code_similarity;

    #[test]
    fn known_values() {
        assert_eq!(code_similarity("x = 1\n", "x  =  1  # one"), 1.0);
        assert_eq!(code_similarity("", ""), 1.0);
        assert_eq!(code_similarity("x = 1", ""), 0.0);
        assert_eq!(code_similarity("import os", "y()"), 0.0);
        let near = code_similarity("a = f(1)\nb = g(2)\n", "a = f(1)\nb = g(3)\n");
        assert!((0.5..1.0).contains(&near), "{near}");
    }
}
