//! Pictures of a search: scores over steps above, the lineage tree below, as one SVG.
//!
//! [`render`] is a pure function from rows to text; reading the rows is the command line's work.

mod canvas;
mod lanes;
mod lineage;
mod scale;
mod scores;
mod style;
mod summary;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

pub use canvas::PlotError;
pub(crate) use lanes::Lanes;
pub(crate) use scale::{ScoreRange, step_ticks, ticks};

/// The run a picture shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlotRun {
    /// Run id.
    pub run_id: String,
    /// Task of the run.
    pub task: String,
    /// Selection policy.
    pub policy: String,
    /// Model that wrote the programs.
    pub model: String,
    /// Name of the metric.
    pub metric: String,
    /// Direction of the metric.
    pub higher_is_better: bool,
    /// State of the run, such as `finished`.
    pub status: String,
}

/// One program of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct PlotNode {
    /// Node id.
    pub node_id: String,
    /// Commit order, from 1.
    pub step: u64,
    /// Operator that made it.
    pub operator: String,
    /// First parent.
    pub parent_id: Option<String>,
    /// Second parent.
    pub parent2_id: Option<String>,
    /// Validation score; only a finite one of a program that is not buggy counts.
    pub score: Option<f64>,
    /// Whether the program failed or its score is not valid.
    pub failed: bool,
    /// Result state, such as `timeout`.
    pub status: String,
}

/// Draws a run as SVG. Nodes may come in any order and name parents that are not among them.
pub fn render(run: &PlotRun, nodes: &[PlotNode]) -> Result<String, PlotError> {
    let mut nodes = nodes.to_vec();
    nodes.sort_by(|a, b| a.step.cmp(&b.step).then_with(|| a.node_id.cmp(&b.node_id)));
    nodes.dedup_by(|a, b| a.node_id == b.node_id);
    let history = History::new(run.higher_is_better, nodes);
    canvas::draw(run, &history)
}

/// The nodes in commit order with what both panels need to know.
pub(crate) struct History {
    /// The nodes.
    pub nodes: Vec<PlotNode>,
    /// Index of the first parent.
    pub parents: Vec<Option<usize>>,
    /// Index of the second parent.
    pub second_parents: Vec<Option<usize>>,
    /// Index of the best node.
    pub best: Option<usize>,
    /// The best node and its ancestors by first parent, root first.
    pub best_path: Vec<usize>,
    /// Direction of the metric.
    pub higher_is_better: bool,
}

impl History {
    /// The history of nodes that are in commit order.
    pub fn new(higher_is_better: bool, nodes: Vec<PlotNode>) -> Self {
        let index: HashMap<&str, usize> = nodes
            .iter()
            .enumerate()
            .map(|(i, node)| (node.node_id.as_str(), i))
            .collect();
        // A parent is committed before its child; anything else is no parent and would make a loop.
        let earlier = |child: usize, id: &Option<String>| {
            id.as_deref()
                .and_then(|id| index.get(id).copied())
                .filter(|parent| *parent < child)
        };
        let parents: Vec<_> = nodes
            .iter()
            .enumerate()
            .map(|(i, node)| earlier(i, &node.parent_id))
            .collect();
        let second_parents = nodes
            .iter()
            .enumerate()
            .map(|(i, node)| earlier(i, &node.parent2_id))
            .collect();
        let mut best = None;
        for (i, node) in nodes.iter().enumerate() {
            let Some(score) = node.valid_score() else { continue };
            let leading = best.and_then(|best: usize| nodes[best].valid_score());
            if leading.is_none_or(|leading| is_better(higher_is_better, score, leading)) {
                best = Some(i);
            }
        }
        let mut best_path: Vec<usize> = std::iter::successors(best, |i| parents[*i]).collect();
        best_path.reverse();
        Self {
            parents,
            second_parents,
            best,
            best_path,
            higher_is_better,
            nodes,
        }
    }

    /// Largest step.
    pub fn last_step(&self) -> u64 {
        self.nodes.last().map_or(1, |node| node.step.max(1))
    }

    /// Index and score of every valid node, in commit order.
    pub fn scored(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.nodes
            .iter()
            .enumerate()
            .filter_map(|(i, node)| Some((i, node.valid_score()?)))
    }
}

impl PlotNode {
    /// The score, when it counts.
    pub(crate) fn valid_score(&self) -> Option<f64> {
        self.score.filter(|score| score.is_finite() && !self.failed)
    }
}

/// Whether `score` is strictly better than `leading`.
pub(crate) fn is_better(higher_is_better: bool, score: f64, leading: f64) -> bool {
    if higher_is_better {
        score > leading
    } else {
        score < leading
    }
}
