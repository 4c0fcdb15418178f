//! Runs beside each other: the best so far of all runs of a task in one chart.

use serde::Serialize;

use super::facts::RunFacts;
use super::scale::{HEIGHT, Tick, Upwards};
use super::scores::{By, best_so_far, stair};
use crate::figures::counted;
use crate::plot::ScoreRange;

/// Colours of lines; a run after these shares one.
const COLOURS: usize = 8;

/// The runs of a task.
pub(super) struct TaskCurves {
    pub task_id: String,
    pub metric: String,
    pub higher_is_better: bool,
    pub curves: Vec<Curve>,
}

/// The best so far of a run.
pub(super) struct Curve {
    /// What the legend says.
    pub label: String,
    /// Id of the element of the page that is about the run.
    pub anchor: String,
    pub points: Vec<Point>,
    /// How far the run went.
    pub last_step: i64,
    pub last_time: f64,
}

/// A new best.
pub(super) struct Point {
    pub step: i64,
    /// Sandbox seconds until then.
    pub time: f64,
    pub score: f64,
}

/// The charts of a task.
#[derive(Debug, Serialize)]
pub(super) struct TaskComparison {
    pub task_id: String,
    pub metric: String,
    pub higher_is_better: bool,
    pub lines: Vec<Legend>,
    pub charts: Vec<Comparison>,
}

/// A run in the legend.
#[derive(Debug, Serialize)]
pub(super) struct Legend {
    pub anchor: String,
    pub colour: usize,
    pub label: String,
}

/// A chart.
#[derive(Debug, Serialize)]
pub(super) struct Comparison {
    pub label: String,
    pub across: String,
    pub x: Vec<Tick>,
    pub y: Vec<Tick>,
    /// Path and colour of each line.
    pub lines: Vec<(String, usize)>,
    pub height: f64,
}

/// The tasks that have more than one run, in the order of their first.
pub(super) fn tasks(runs: &[(usize, RunFacts)]) -> Vec<TaskComparison> {
    let mut tasks: Vec<TaskCurves> = Vec::new();
    for (number, run) in runs.iter().filter(|(_, run)| !run.nodes.is_empty()) {
        let curve = curve(*number, run);
        match tasks.iter_mut().find(|task| task.task_id == run.task_id) {
            Some(task) => task.curves.push(curve),
            None => tasks.push(TaskCurves {
                task_id: run.task_id.clone(),
                metric: run.metric.clone(),
                higher_is_better: run.higher_is_better,
                curves: vec![curve],
            }),
        }
    }
    tasks
        .iter()
        .filter(|task| task.curves.len() > 1)
        .map(TaskComparison::new)
        .collect()
}

fn curve(number: usize, run: &RunFacts) -> Curve {
    Curve {
        label: format!("{number}: {}, seed {}", run.policy, run.seed),
        anchor: format!("r{number}"),
        points: best_so_far(run)
            .into_iter()
            .map(|(node, score)| Point {
                step: node.step,
                time: node.sandbox_total,
                score,
            })
            .collect(),
        last_step: run.last_step,
        last_time: run.sandbox_total(),
    }
}

impl TaskComparison {
    /// The charts of a task by step and by sandbox time.
    pub fn new(task: &TaskCurves) -> Self {
        let curves = task.curves.iter().enumerate();
        Self {
            task_id: task.task_id.clone(),
            metric: task.metric.clone(),
            higher_is_better: task.higher_is_better,
            lines: curves
                .map(|(place, curve)| Legend {
                    anchor: curve.anchor.clone(),
                    colour: place % COLOURS,
                    label: curve.label.clone(),
                })
                .collect(),
            charts: [By::Step, By::SandboxTime].map(|by| chart(task, by)).into(),
        }
    }
}

fn chart(task: &TaskCurves, by: By) -> Comparison {
    // What the lines go through; single poor programs have no part in them.
    let points = task.curves.iter().flat_map(|curve| &curve.points);
    let scores: Vec<f64> = points.map(|point| point.score).collect();
    let range = ScoreRange::of(&scores, task.higher_is_better);
    let last_step = task.curves.iter().map(|curve| curve.last_step).max().unwrap_or(1);
    let last_time = task.curves.iter().map(|curve| curve.last_time).fold(0.0, f64::max);
    let across = by.axis(last_step, last_time);
    let upwards = Upwards::new(range.low, range.high, HEIGHT);
    let line = |curve: &Curve| {
        let points = curve.points.iter();
        let points = points.map(|point| (by.of(point.step, point.time), point.score));
        stair(points, Some(by.of(curve.last_step, curve.last_time)), &across, &upwards)
    };
    Comparison {
        label: format!(
            "The best {} so far of {}",
            task.metric,
            counted(task.curves.len() as u64, "run")
        ),
        across: by.title(&across),
        x: across.ticks(8),
        y: upwards.ticks(6),
        lines: task
            .curves
            .iter()
            .enumerate()
            .map(|(place, curve)| (line(curve), place % COLOURS))
            .collect(),
        height: HEIGHT,
    }
}
