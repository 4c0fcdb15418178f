//! The selection trace: among how many parents each step chose, and which it took.

use std::collections::HashMap;

use serde::Serialize;

use super::facts::{Draw, RunFacts};
use super::scale::{Across, Tick, Upwards, pixels, units};

/// Pixels of the chart.
const HEIGHT: f64 = 150.0;

/// The trace of a run.
#[derive(Debug, Serialize)]
pub(super) struct Trace {
    pub rows: Vec<Row>,
    pub chart: Option<Width>,
}

/// A step.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub step: i64,
    pub operator: String,
    /// Probability of the operator.
    pub operator_probability: Option<f64>,
    pub parents: Vec<Parent>,
    pub candidates: u64,
    pub effective: Option<f64>,
    /// State of an attempt that became no program.
    pub status: String,
    /// Place of the program that came of it, among those that are shown.
    pub node: Option<usize>,
}

/// A parent that was taken.
#[derive(Debug, Serialize)]
pub(super) struct Parent {
    pub id: String,
    pub step: Option<i64>,
    /// Place among the programs that are shown.
    pub node: Option<usize>,
    /// Probability of being drawn first.
    pub probability: Option<f64>,
}

/// How wide the choice was.
#[derive(Debug, Serialize)]
pub(super) struct Width {
    pub label: String,
    pub x: Vec<Tick>,
    pub y: Vec<Tick>,
    pub candidates: String,
    pub effective: String,
    pub height: f64,
}

impl Draw {
    /// Probability of the operator that was taken.
    fn operator_probability(&self) -> Option<f64> {
        let mut chances = self.record.operators.iter();
        let chance = chances.find(|chance| chance.operator == self.operator)?;
        Some(chance.probability)
    }

    /// Probability that a parent is drawn first.
    fn probability(&self, parent: &str) -> Option<f64> {
        let mut chances = self.record.candidates.iter();
        let chance =
            chances.find(|chance| chance.parent_id == parent || chance.parent2_id.as_deref() == Some(parent))?;
        Some(chance.probability)
    }

    /// Among how many parents the choice really was.
    fn effective(&self) -> Option<f64> {
        (self.record.candidate_count > 0).then_some(self.record.effective_candidates)
    }
}

/// The trace of a run; `places` finds programs by their ids.
pub(super) fn trace(run: &RunFacts, places: &HashMap<&str, usize>) -> Trace {
    let rows = run.draws.iter().map(|draw| Row {
        step: draw.step,
        operator: draw.operator.clone(),
        operator_probability: draw.operator_probability(),
        parents: draw
            .parents
            .iter()
            .map(|id| {
                let node = places.get(id.as_str()).copied();
                Parent {
                    id: id.clone(),
                    step: node.map(|place| run.nodes[place].step),
                    node,
                    probability: draw.probability(id),
                }
            })
            .collect(),
        candidates: draw.record.candidate_count,
        effective: draw.effective(),
        status: draw.status.clone(),
        node: draw.node_id.as_deref().and_then(|id| places.get(id).copied()),
    });
    Trace {
        rows: rows.collect(),
        chart: chart(run),
    }
}

/// The widths over steps; none when no step had a choice.
fn chart(run: &RunFacts) -> Option<Width> {
    let widest = run.draws.iter().map(|draw| draw.record.candidate_count).max()?;
    if widest < 2 {
        return None;
    }
    let across = Across::steps(run.last_step);
    let upwards = Upwards::new(0.0, widest as f64 * 1.05, HEIGHT);
    let path = |value: &dyn Fn(&Draw) -> f64| {
        let mut path = String::new();
        for draw in run.draws.iter().filter(|draw| draw.record.candidate_count > 0) {
            let letter = if path.is_empty() { 'M' } else { 'L' };
            let (x, y) = (units(across.at(draw.step as f64)), pixels(upwards.at(value(draw))));
            path.push_str(&format!("{letter}{x} {y}"));
        }
        path
    };
    Some(Width {
        label: format!(
            "How many parents there were to choose from, up to {widest}, and among how many the choice really was"
        ),
        x: across.ticks(8),
        y: upwards.ticks(4),
        candidates: path(&|draw| draw.record.candidate_count as f64),
        effective: path(&|draw| draw.record.effective_candidates),
        height: HEIGHT,
    })
}
