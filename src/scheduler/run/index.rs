//! What a run knows of its own nodes, kept in memory beside the store: program hashes for duplicates, family counts, the
//! islands' running means. It is read from `evo.nodes` when the run starts and fed by every commit; losing it loses nothing.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

/// The facts of a node that later attempts of its run are judged by.
#[derive(Debug, Clone)]
pub struct IndexedNode {
    /// Node id.
    pub node_id: String,
    /// Step.
    pub step: i64,
    /// Generation, in generation mode.
    pub generation: Option<i64>,
    /// Island.
    pub island: i64,
    /// Hash of the program.
    pub code_hash: Option<String>,
    /// Method family.
    pub method_family: String,
    /// Score with its sign turned so that higher is better; `None` when invalid.
    pub signed_score: Option<f64>,
    /// It belongs to the pool of its island.
    pub admitted: bool,
    /// Outcome that a duplicate takes over.
    pub outcome: NodeOutcome,
}

/// Outcome of running a program.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeOutcome {
    /// Result state.
    pub status: String,
    /// Validation score.
    pub score: Option<f64>,
    /// evaluator, self_reported or none.
    pub score_source: String,
    /// Score the program printed.
    pub self_reported_score: Option<f64>,
    /// Class of the failure.
    pub error_class: Option<String>,
    /// Signature of the failure.
    pub error_signature: Option<String>,
    /// Last lines of the failure.
    pub error: Option<String>,
}

/// A sum that can leave the newest generations out: totals, and what each generation added. Generations are few at the end
/// of the map, so asking is cheap however long the run is.
#[derive(Debug, Default, Clone)]
struct Tally {
    sum: f64,
    count: i64,
    by_generation: BTreeMap<i64, (f64, i64)>,
}

impl Tally {
    fn add(&mut self, generation: Option<i64>, value: f64) {
        self.sum += value;
        self.count += 1;
        if let Some(generation) = generation {
            let slot = self.by_generation.entry(generation).or_default();
            slot.0 += value;
            slot.1 += 1;
        }
    }

    /// Sum and count of what an attempt of a generation sees: the generations before its own, all of it in async mode.
    fn before(&self, generation: Option<i64>) -> (f64, i64) {
        let Some(generation) = generation else {
            return (self.sum, self.count);
        };
        self.by_generation
            .range(generation..)
            .fold((self.sum, self.count), |(sum, count), (_, hidden)| {
                (sum - hidden.0, count - hidden.1)
            })
    }
}

/// The nodes of a run. In generation mode an attempt sees the generations before its own, so that the order in which a
/// generation's programs end does not matter; in async mode it sees what was committed.
#[derive(Debug, Default)]
pub struct RunIndex {
    by_code: HashMap<String, Vec<IndexedNode>>,
    families: HashMap<String, Tally>,
    islands: HashMap<i64, Tally>,
    places: HashMap<String, Place, BuildHasherDefault<IdHasher>>,
}

/// Hashes node ids, which are hashes already: their first bytes are as good as any. A selection asks for every parent.
#[derive(Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8).take(3) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.0 = (self.0.rotate_left(29) ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

/// Where a node stands in its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Step that made it.
    pub step: i64,
    /// Island it lives on.
    pub island: i64,
}

impl RunIndex {
    /// Adds a node.
    pub fn add(&mut self, node: IndexedNode) {
        self.places.insert(
            node.node_id.clone(),
            Place {
                step: node.step,
                island: node.island,
            },
        );
        self.families
            .entry(node.method_family.clone())
            .or_default()
            .add(node.generation, 1.0);
        if let Some(score) = node.signed_score.filter(|_| node.admitted) {
            self.islands.entry(node.island).or_default().add(node.generation, score);
        }
        if let Some(hash) = node.code_hash.clone() {
            self.by_code.entry(hash).or_default().push(node);
        }
    }

    /// Where a node of the run stands.
    pub fn place(&self, node_id: &str) -> Option<Place> {
        self.places.get(node_id).copied()
    }

    /// The earliest visible node with the same program whose outcome is a fact about the program, not about the machine.
    pub fn duplicate_of(&self, code_hash: &str, generation: Option<i64>) -> Option<&IndexedNode> {
        let visible = |node: &&IndexedNode| match (generation, node.generation) {
            (Some(own), Some(other)) => other < own,
            _ => true,
        };
        self.by_code
            .get(code_hash)?
            .iter()
            .filter(visible)
            .filter(|node| node.outcome.status != "sandbox_unconfirmed")
            .min_by_key(|node| node.step)
    }

    /// Visible nodes of a method family.
    pub fn family_count(&self, family: &str, generation: Option<i64>) -> i64 {
        self.families.get(family).map_or(0, |tally| tally.before(generation).1)
    }

    /// Whether a score is not worse than the mean of the visible nodes that its island has admitted; the first scored node of an
    /// island is.
    pub fn admits(&self, signed_score: Option<f64>, island: i64, generation: Option<i64>) -> bool {
        let Some(score) = signed_score else { return false };
        let (sum, count) = self
            .islands
            .get(&island)
            .map_or((0.0, 0), |tally| tally.before(generation));
        count == 0 || score >= sum / count as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(step: i64, generation: Option<i64>, hash: &str, family: &str, score: Option<f64>) -> IndexedNode {
        IndexedNode {
            node_id: format!("n{step}"),
            step,
            generation,
            island: 0,
            code_hash: Some(hash.into()),
            method_family: family.into(),
            signed_score: score,
            admitted: true,
            outcome: NodeOutcome {
                status: "success".into(),
                score,
                score_source: "evaluator".into(),
                self_reported_score: None,
                error_class: None,
                error_signature: None,
                error: None,
            },
        }
    }

    #[test]
    fn a_generation_does_not_see_itself() {
        let mut index = RunIndex::default();
        index.add(node(1, Some(0), "a", "linear", Some(0.5)));
        index.add(node(2, Some(1), "b", "linear", Some(0.1)));
        assert_eq!(index.family_count("linear", Some(1)), 1);
        assert!(index.duplicate_of("b", Some(1)).is_none());
        assert_eq!(index.duplicate_of("b", Some(2)).map(|n| n.step), Some(2));
        assert!(index.admits(Some(0.5), 0, Some(1)));
        assert!(!index.admits(Some(0.4), 0, Some(1)));
        assert!(index.admits(Some(0.3), 0, None));
    }

    #[test]
    fn a_node_that_was_not_admitted_does_not_lower_the_bar() {
        let mut index = RunIndex::default();
        index.add(node(1, None, "a", "linear", Some(0.5)));
        index.add(IndexedNode {
            admitted: false,
            ..node(2, None, "b", "linear", Some(0.1))
        });
        assert!(!index.admits(Some(0.4), 0, None));
    }

    #[test]
    fn the_first_scored_node_of_an_island_is_admitted_and_a_failure_never_is() {
        let index = RunIndex::default();
        assert!(index.admits(Some(-9.0), 3, None));
        assert!(!index.admits(None, 3, None));
    }
}
