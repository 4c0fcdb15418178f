//! Several runs beside each other: the best so far of all runs of a task in one chart.

use serde::Serialize;

use super::facts::RunFacts;
use super::scale::{HEIGHT, Tick, Upwards};
use super::scores::{By, best_path};
use crate::plot::ScoreRange;

/// Colours of lines; a run after these shares one.
const COLOURS: usize = 8;

/// The runs of a task.
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
    /// Number of the run on the page, from 1.
    pub run: usize,
    pub colour: usize,
    pub policy: String,
    pub seed: i64,
}

/// A chart.
#[derive(Debug, Serialize)]
pub(super) struct Comparison {
    pub label: String,
    pub across: String,
    pub x: Vec<Tick>,
    pub y: Vec<Tick>,
    /// Path and colour of each run.
    pub lines: Vec<(String, usize)>,
    pub height: f64,
}

/// The tasks that have more than one run, in the order of their first.
pub(super) fn tasks(runs: &[RunFacts]) -> Vec<TaskComparison> {
    let mut tasks: Vec<(&str, Vec<(usize, &RunFacts)>)> = Vec::new();
    for (number, run) in (1..).zip(runs).filter(|(_, run)| !run.nodes.is_empty()) {
        match tasks.iter_mut().find(|(task, _)| *task == run.task_id) {
            Some((_, runs)) => runs.push((number, run)),
            None => tasks.push((&run.task_id, vec![(number, run)])),
        }
    }
    let several = tasks.into_iter().filter(|(_, runs)| runs.len() > 1);
    several.map(|(task_id, runs)| comparison(task_id, &runs)).collect()
}

fn comparison(task_id: &str, runs: &[(usize, &RunFacts)]) -> TaskComparison {
    let first = runs[0].1;
    TaskComparison {
        task_id: task_id.to_owned(),
        metric: first.metric.clone(),
        higher_is_better: first.higher_is_better,
        lines: runs
            .iter()
            .enumerate()
            .map(|(place, (number, run))| Legend {
                run: *number,
                colour: place % COLOURS,
                policy: run.policy.clone(),
                seed: run.seed,
            })
            .collect(),
        charts: [By::Step, By::SandboxTime].map(|by| chart(runs, by)).into(),
    }
}

fn chart(runs: &[(usize, &RunFacts)], by: By) -> Comparison {
    let first = runs[0].1;
    // What the lines go through; single poor programs have no part in them.
    let scores: Vec<f64> = runs
        .iter()
        .flat_map(|(_, run)| super::scores::best_so_far(run))
        .map(|(_, score)| score)
        .collect();
    let range = ScoreRange::of(&scores, first.higher_is_better);
    let across = by.axis(runs.iter().map(|(_, run)| *run));
    let upwards = Upwards::new(range.low, range.high, HEIGHT);
    Comparison {
        label: format!("The best {} so far of {} runs", first.metric, runs.len()),
        across: by.title(&across),
        x: across.ticks(8),
        y: upwards.ticks(6),
        lines: runs
            .iter()
            .enumerate()
            .map(|(place, (_, run))| (best_path(run, by, &across, &upwards), place % COLOURS))
            .collect(),
        height: HEIGHT,
    }
}
