//! What the parents of a recorded run paid off: how much better than a parent its best descendant became.

use std::collections::HashMap;

use super::trace::RecordedNode;

/// The gains that the nodes of a run led to.
#[derive(Debug)]
pub struct Payoffs {
    nodes: Vec<RecordedNode>,
    by_id: HashMap<String, usize>,
    by_attempt: HashMap<String, usize>,
    /// Best score among the descendants of a node, itself left out.
    below: Vec<Option<f64>>,
}

/// The larger of two scores, either of which may be missing.
fn better(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (one, other) => one.or(other),
    }
}

impl Payoffs {
    /// Of the nodes of a run in the order of their steps: a child comes after its parents.
    pub fn new(nodes: Vec<RecordedNode>) -> Self {
        let place = |key: fn(&RecordedNode) -> &String| {
            let places = nodes.iter().enumerate();
            places.map(|(place, node)| (key(node).clone(), place)).collect()
        };
        let by_id: HashMap<String, usize> = place(|node| &node.node_id);
        let by_attempt = place(|node| &node.attempt_id);
        let mut below = vec![None; nodes.len()];
        for (child, node) in nodes.iter().enumerate().rev() {
            let reached = better(node.signed_score, below[child]);
            for parent in node.parents.iter().filter_map(|parent| by_id.get(parent)) {
                below[*parent] = better(below[*parent], reached);
            }
        }
        Self {
            nodes,
            by_id,
            by_attempt,
            below,
        }
    }

    /// Best score of an attempt's node and its descendants, less the best score of its parents. `None` where either is missing.
    pub fn of_attempt(&self, attempt_id: &str) -> Option<f64> {
        let place = *self.by_attempt.get(attempt_id)?;
        let node = &self.nodes[place];
        let reached = better(node.signed_score, self.below[place])?;
        Some(reached - self.best_score(&node.parents)?)
    }

    /// Best score among the descendants of any of the parents, less the best score of the parents. `None` where either is missing.
    pub fn of_parents(&self, parents: &[String]) -> Option<f64> {
        let below = self.places(parents).map(|place| self.below[place]);
        Some(below.reduce(better)?? - self.best_score(parents)?)
    }

    fn best_score(&self, parents: &[String]) -> Option<f64> {
        self.places(parents)
            .map(|place| self.nodes[place].signed_score)
            .reduce(better)?
    }

    fn places<'a>(&'a self, parents: &'a [String]) -> impl Iterator<Item = usize> + 'a {
        parents.iter().filter_map(|parent| self.by_id.get(parent)).copied()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn node(id: &str, parents: &[&str], signed_score: Option<f64>) -> RecordedNode {
        RecordedNode {
            node_id: id.to_owned(),
            attempt_id: format!("attempt {id}"),
            parents: parents.iter().map(|parent| (*parent).to_owned()).collect(),
            signed_score,
        }
    }

    #[test]
    fn a_parent_pays_off_by_its_best_descendant() {
        let payoffs = Payoffs::new(vec![
            node("a", &[], Some(0.5)),
            node("b", &[], Some(0.25)),
            node("c", &["a"], None),
            node("d", &["c"], Some(0.75)),
            node("e", &["a", "b"], Some(0.375)),
        ]);
        let parents = |ids: &[&str]| payoffs.of_parents(&ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>());
        assert_eq!(parents(&["a"]), Some(0.25), "through the failed child and its repair");
        assert_eq!(parents(&["b"]), Some(0.125));
        assert_eq!(parents(&["a", "b"]), Some(0.25));
        assert_eq!(parents(&["c"]), None, "a failure has no score to gain on");
        assert_eq!(parents(&["d"]), None, "nothing came of it");
        assert_eq!(parents(&[]), None);
        assert_eq!(payoffs.of_attempt("attempt c"), Some(0.25));
        assert_eq!(
            payoffs.of_attempt("attempt e"),
            Some(-0.125),
            "against the better parent"
        );
        assert_eq!(payoffs.of_attempt("attempt a"), None, "a draft");
        assert_eq!(payoffs.of_attempt("nobody"), None);
    }
}
