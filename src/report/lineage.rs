//! The lineage: who came from whom, over steps, in lanes.

use std::collections::BTreeMap;

use serde::Serialize;

use super::facts::RunFacts;
use super::scale::{Across, Tick, percent, pixels, units};
use super::scores::{Dot, title};
use crate::plot::{History, Lanes, PlotNode};

/// Pixels of a lane, while there are few.
const LANE: f64 = 22.0;
/// Most pixels of all lanes.
const TALLEST: f64 = 640.0;
/// Pixels above the first and below the last lane.
const PADDING: f64 = 18.0;
/// Pixels of a step where a run is too long for the width of the page.
const STEP: i64 = 16;
/// Most pixels of the widest lineage.
const WIDEST: i64 = 32_000;

/// The picture.
#[derive(Debug, Serialize)]
pub(super) struct Lineage {
    pub label: String,
    /// Pixels at which every step can be told apart.
    pub width: i64,
    /// Pixels of the panel, without the axis.
    pub height: f64,
    pub x: Vec<Tick>,
    /// Lines to first and second parents, a path each operator and kind.
    pub edges: Vec<Edges>,
    /// Line from the first draft to the best program.
    pub best_path: String,
    pub dots: Vec<Dot>,
    /// Places of the programs of the best path, among those of the run.
    pub way: Vec<usize>,
    /// Place of the best program.
    pub best: Option<usize>,
}

/// Lines of the children of one operator.
#[derive(Debug, Serialize)]
pub(super) struct Edges {
    pub operator: String,
    /// Whether the lines lead to second parents.
    pub second: bool,
    pub path: String,
}

/// The lineage of a run; none when it has no program yet.
pub(super) fn picture(run: &RunFacts) -> Option<Lineage> {
    if run.nodes.is_empty() {
        return None;
    }
    let history = history(run);
    let lanes = Lanes::of(&history);
    let axis = Across::steps(run.last_step);
    let room = (lanes.count as f64 * LANE).min(TALLEST);
    let y = |place: usize| PADDING + (lanes.lane[place] as f64 + 0.5) * room / lanes.count as f64;
    let x = |place: usize| axis.at(history.nodes[place].step as f64);
    let step = 1.0 / run.last_step.max(1) as f64;
    // Along the lane of the parent, then over into that of the child.
    let line = |parent: usize, child: usize| {
        let (from_x, from_y, to_x, to_y) = (x(parent), pixels(y(parent)), x(child), pixels(y(child)));
        if from_y == to_y {
            return format!("M{} {from_y}H{}", units(from_x), units(to_x));
        }
        let turn = (to_x - step.min(0.04)).max(from_x);
        let middle = units((turn + to_x) / 2.0);
        format!(
            "M{} {from_y}H{}C{middle} {from_y} {middle} {to_y} {} {to_y}",
            units(from_x),
            units(turn),
            units(to_x)
        )
    };
    let mut edges: BTreeMap<(&str, bool), String> = BTreeMap::new();
    for (child, node) in history.nodes.iter().enumerate() {
        for (parent, second) in [(history.parents[child], false), (history.second_parents[child], true)] {
            if let Some(parent) = parent {
                let path = edges.entry((node.operator.as_str(), second)).or_default();
                path.push_str(&line(parent, child));
            }
        }
    }
    let dots = run.nodes.iter().enumerate().map(|(place, node)| Dot {
        node: place,
        x: percent(x(place)),
        y: pixels(y(place)),
        operator: node.operator.clone(),
        title: title(node),
        kind: if node.valid_score().is_none() { "failed" } else { "" },
    });
    let ways = history.best_path.windows(2).map(|pair| line(pair[0], pair[1]));
    Some(Lineage {
        label: format!(
            "Lineage of {} programs; {} of them lead from a draft to the best",
            run.nodes.len(),
            history.best_path.len()
        ),
        width: run.last_step.saturating_mul(STEP).min(WIDEST),
        height: room + 2.0 * PADDING,
        x: axis.ticks(if run.last_step > 100 { 20 } else { 10 }),
        best_path: ways.collect(),
        dots: dots.collect(),
        edges: edges
            .into_iter()
            .map(|((operator, second), path)| Edges {
                operator: operator.to_owned(),
                second,
                path,
            })
            .collect(),
        way: history.best_path.clone(),
        best: history.best,
    })
}

fn history(run: &RunFacts) -> History {
    let nodes = run.nodes.iter().map(|node| PlotNode {
        node_id: node.node_id.clone(),
        step: u64::try_from(node.step).unwrap_or(0),
        operator: node.operator.clone(),
        parent_id: node.parent_id.clone(),
        parent2_id: node.parent2_id.clone(),
        score: node.score,
        failed: node.is_buggy,
        status: node.status.clone(),
    });
    History::new(run.higher_is_better, nodes.collect())
}
