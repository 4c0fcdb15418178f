//! The score charts: every program, the best so far, and the failures on a rail below.

use serde::Serialize;

use super::facts::{Node, RunFacts};
use super::scale::{Across, HEIGHT, Tick, Upwards, percent, pixels, units};
use crate::figures::{duration, score};
use crate::plot::{ScoreRange, is_better};

/// Pixels of the rail of failures.
const RAIL: f64 = 28.0;

/// A chart.
#[derive(Debug, Serialize)]
pub(super) struct ScoreChart {
    /// What the chart shows, in words, for those who do not see it.
    pub label: String,
    /// Name of the horizontal axis.
    pub across: String,
    pub x: Vec<Tick>,
    pub y: Vec<Tick>,
    /// The best so far, as a path in thousandths of the width and pixels.
    pub best_path: String,
    pub dots: Vec<Dot>,
    pub best: Option<Best>,
    pub height: f64,
    /// Vertical middle of the rail.
    pub rail: f64,
}

/// A program.
#[derive(Debug, Serialize)]
pub(super) struct Dot {
    /// Place of the program among those of the run.
    pub node: usize,
    pub x: String,
    pub y: String,
    pub operator: String,
    pub title: String,
    /// `failed`, `above` or `below` when the program has no place in the panel.
    pub kind: &'static str,
}

/// The best program.
#[derive(Debug, Serialize)]
pub(super) struct Best {
    pub x: String,
    pub y: String,
    pub text: String,
    /// Where the label goes.
    pub label_y: String,
    /// Anchor of the label.
    pub anchor: &'static str,
}

/// By what the programs of a chart are placed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum By {
    Step,
    SandboxTime,
}

impl By {
    /// The axis of a run, or of several: up to the last step and the last second of any.
    pub fn axis(self, last_step: i64, last_time: f64) -> Across {
        match self {
            Self::Step => Across::steps(last_step),
            Self::SandboxTime => Across::time(last_time),
        }
    }

    /// Which of two places counts.
    pub fn of(self, step: i64, time: f64) -> f64 {
        match self {
            Self::Step => step as f64,
            Self::SandboxTime => time,
        }
    }

    /// Where a program is on the axis.
    pub fn value(self, node: &Node) -> f64 {
        self.of(node.step, node.sandbox_total)
    }

    /// Name of the axis.
    pub fn title(self, axis: &Across) -> String {
        match self {
            Self::Step => "step".to_owned(),
            Self::SandboxTime => format!("sandbox time, {}", axis.unit()),
        }
    }
}

/// A chart of a run; none when it has no program yet.
pub(super) fn chart(run: &RunFacts, by: By) -> Option<ScoreChart> {
    let nodes = &run.nodes;
    if nodes.is_empty() {
        return None;
    }
    let axis = by.axis(run.last_step, run.sandbox_total());
    let valid: Vec<f64> = nodes.iter().filter_map(Node::valid_score).collect();
    let range = ScoreRange::of(&valid, run.higher_is_better);
    let upwards = Upwards::new(range.low, range.high, HEIGHT);
    let rail = HEIGHT + RAIL / 2.0;
    let best = best_so_far(run).last().copied();
    let dots = nodes.iter().enumerate().map(|(place, node)| {
        let (y, kind) = match node.valid_score() {
            None => (rail, "failed"),
            Some(score) if score > range.high => (upwards.at(score), "above"),
            Some(score) if score < range.low => (upwards.at(score), "below"),
            Some(score) => (upwards.at(score), ""),
        };
        Dot {
            node: place,
            x: percent(axis.at(by.value(node))),
            y: pixels(y),
            operator: node.operator.clone(),
            title: title(node),
            kind,
        }
    });
    Some(ScoreChart {
        label: label(run, &axis, by, best),
        across: by.title(&axis),
        x: axis.ticks(8),
        y: upwards.ticks(6),
        best_path: best_path(run, by, &axis, &upwards),
        dots: dots.collect(),
        best: best.map(|(node, value)| {
            let share = axis.at(by.value(node));
            let y = upwards.at(value);
            // Beyond the best there is nothing, so the label is out of the way there.
            let away = if run.higher_is_better { -14.0 } else { 22.0 };
            Best {
                x: percent(share),
                y: pixels(y),
                label_y: pixels(y + away),
                text: score(value),
                anchor: match share {
                    share if share > 0.8 => "end",
                    share if share < 0.2 => "start",
                    _ => "middle",
                },
            }
        }),
        height: HEIGHT,
        rail,
    })
}

impl Node {
    /// The score, when it counts.
    pub fn valid_score(&self) -> Option<f64> {
        self.score.filter(|score| score.is_finite() && !self.is_buggy)
    }

    /// Its score, or its state when it has none.
    pub fn outcome(&self) -> String {
        self.valid_score().map_or_else(|| self.status.clone(), score)
    }
}

/// What is shown when the pointer rests on a program.
pub(super) fn title(node: &Node) -> String {
    let mut parts = vec![
        format!("step {}", node.step),
        node.operator.clone(),
        node.family.clone(),
        node.outcome(),
    ];
    parts.extend(node.sandbox_seconds.map(duration));
    parts.join(" · ")
}

/// The programs that were better than everything before them, with their scores.
pub(super) fn best_so_far(run: &RunFacts) -> Vec<(&Node, f64)> {
    let mut steps: Vec<(&Node, f64)> = Vec::new();
    for node in &run.nodes {
        let Some(score) = node.valid_score() else { continue };
        let is_new = steps
            .last()
            .is_none_or(|(_, leading)| is_better(run.higher_is_better, score, *leading));
        if is_new {
            steps.push((node, score));
        }
    }
    steps
}

/// The best so far as a stair, up to the run's last program.
fn best_path(run: &RunFacts, by: By, axis: &Across, upwards: &Upwards) -> String {
    let points = best_so_far(run)
        .into_iter()
        .map(|(node, score)| (by.value(node), score));
    stair(points, run.nodes.last().map(|last| by.value(last)), axis, upwards)
}

/// A path that keeps each value until the next, and the last one up to a place.
pub(super) fn stair(
    points: impl Iterator<Item = (f64, f64)>,
    last: Option<f64>,
    axis: &Across,
    upwards: &Upwards,
) -> String {
    let mut path = String::new();
    for (place, value) in points {
        let (x, y) = (units(axis.at(place)), pixels(upwards.at(value)));
        path.push_str(&if path.is_empty() {
            format!("M{x} {y}")
        } else {
            format!("H{x}V{y}")
        });
    }
    if let (false, Some(last)) = (path.is_empty(), last) {
        path.push_str(&format!("H{}", units(axis.at(last))));
    }
    path
}

fn label(run: &RunFacts, axis: &Across, by: By, best: Option<(&Node, f64)>) -> String {
    let failed = run.nodes.iter().filter(|node| node.valid_score().is_none()).count();
    let found = best.map_or_else(
        || "none has a valid score".to_owned(),
        |(node, value)| format!("the best is {} at step {}", score(value), node.step),
    );
    format!(
        "{} of {} programs by {}; {found}; {failed} failed",
        run.metric,
        run.nodes.len(),
        by.title(axis)
    )
}
