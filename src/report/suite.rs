//! What a page shows of a suite, read from the store.

use minijinja::Value;
use serde::Serialize;

use super::compare::{Comparison, Curve, Point, TaskComparison, TaskCurves};
use super::error::ReportError;
use super::rows::{self, Query, Source, records};
use super::scale::{HEIGHT, Upwards};
use super::scores::{By, stair};
use super::{MOST_FAULTS, MOST_PROGRAMS, MOST_SUITE_PROGRAMS};
use crate::session::ResultRows;

/// A suite.
pub(super) struct SuiteFacts {
    /// Its row of `suite.sql`.
    head: Value,
    searches: Vec<Value>,
    /// Numbers and runs of the searches that the page has a part about.
    pub parts: Vec<(usize, String)>,
    /// How many searches have programs.
    with_programs: usize,
    tasks: Vec<Value>,
    modalities: Vec<Value>,
    repeats: Vec<Value>,
    spend: Vec<Value>,
    failures: Vec<Value>,
    curves: Vec<TaskCurves>,
    medals: Vec<Moment>,
}

/// A moment at which the share of searches with a medal changes.
struct Moment {
    time: f64,
    estimated: f64,
    tested: f64,
    /// Sandbox seconds of the longest search.
    last: f64,
}

/// What the template of a suite reads.
#[derive(Serialize)]
pub(super) struct SuiteView {
    head: Value,
    searches: Vec<Value>,
    /// Searches that have programs, and how many of them have a part.
    with_programs: usize,
    parts: usize,
    tasks: Vec<Value>,
    modalities: Vec<Value>,
    repeats: Vec<Value>,
    spend: Vec<Value>,
    failures: Vec<Value>,
    comparisons: Vec<TaskComparison>,
    medals: Option<Comparison>,
    most_programs: i64,
}

impl SuiteFacts {
    /// Reads a suite.
    pub async fn read(source: &Source<'_>, suite: &str) -> Result<Self, ReportError> {
        let head = records_of(source, rows::SUITE, suite, &[]).await?;
        let Some(head) = head.into_iter().next() else {
            return Err(ReportError::UnknownSuite(suite.to_owned()));
        };
        let bounds = [("programs", MOST_SUITE_PROGRAMS), ("each", MOST_PROGRAMS)];
        let searches = source.suite(rows::SUITE_SEARCHES, suite, &bounds).await?;
        let (parts, with_programs) = parts(&searches).map_err(rows::SUITE_SEARCHES.failed())?;
        let curves = source.suite(rows::SUITE_CURVES, suite, &[]).await?;
        let medals = source.suite(rows::SUITE_MEDALS, suite, &[]).await?;
        Ok(Self {
            head,
            searches: records(&searches).map_err(rows::SUITE_SEARCHES.failed())?,
            parts,
            with_programs,
            tasks: records_of(source, rows::SUITE_TASKS, suite, &[]).await?,
            modalities: records_of(source, rows::SUITE_MODALITIES, suite, &[]).await?,
            repeats: records_of(source, rows::SUITE_REPEATS, suite, &[]).await?,
            spend: records_of(source, rows::SUITE_SPEND, suite, &[]).await?,
            failures: records_of(source, rows::SUITE_FAILURES, suite, &[("most", MOST_FAULTS)]).await?,
            curves: task_curves(&curves).map_err(rows::SUITE_CURVES.failed())?,
            medals: moments(&medals).map_err(rows::SUITE_MEDALS.failed())?,
        })
    }
}

async fn records_of(
    source: &Source<'_>,
    query: Query,
    suite: &str,
    bounds: &[(&str, i64)],
) -> Result<Vec<Value>, ReportError> {
    records(&source.suite(query, suite, bounds).await?).map_err(query.failed())
}

/// Numbers and runs of the searches with a part, and how many have programs.
fn parts(searches: &ResultRows) -> datafusion::error::Result<(Vec<(usize, String)>, usize)> {
    let mut parts = Vec::new();
    let mut with_programs = 0;
    for row in searches.iter() {
        with_programs += usize::from(row.bool("has_programs")?);
        if row.bool("has_part")? {
            parts.push((row.int("number")?.unsigned_abs() as usize, row.text("run_id")?));
        }
    }
    Ok((parts, with_programs))
}

/// The rows, which are in order, by task and search.
fn task_curves(rows: &ResultRows) -> datafusion::error::Result<Vec<TaskCurves>> {
    let mut tasks: Vec<TaskCurves> = Vec::new();
    for row in rows.iter() {
        let task_id = row.text("task_id")?;
        if tasks.last().is_none_or(|task| task.task_id != task_id) {
            tasks.push(TaskCurves {
                task_id,
                metric: row.text("metric")?,
                higher_is_better: row.bool("higher_is_better")?,
                curves: Vec::new(),
            });
        }
        let Some(task) = tasks.last_mut() else { continue };
        let anchor = format!("q{}", row.int("number")?);
        if task.curves.last().is_none_or(|curve| curve.anchor != anchor) {
            task.curves.push(Curve {
                label: format!("repeat {}, seed {}", row.int("repeat")?, row.int("seed")?),
                anchor,
                points: Vec::new(),
                last_step: row.int("last_step")?,
                last_time: row.optional_float("last_seconds")?.unwrap_or(0.0),
            });
        }
        let score = row.optional_float("score")?.filter(|score| score.is_finite());
        if let (Some(curve), Some(score)) = (task.curves.last_mut(), score) {
            curve.points.push(Point {
                step: row.int("step")?,
                time: row.optional_float("sandbox_seconds")?.unwrap_or(0.0),
                score,
            });
        }
    }
    Ok(tasks)
}

fn moments(rows: &ResultRows) -> datafusion::error::Result<Vec<Moment>> {
    rows.iter()
        .map(|row| {
            let number = |name| Ok::<_, datafusion::error::DataFusionError>(row.optional_float(name)?.unwrap_or(0.0));
            Ok(Moment {
                time: number("sandbox_seconds")?,
                estimated: number("estimated")?,
                tested: number("tested")?,
                last: number("last_seconds")?,
            })
        })
        .collect()
}

impl SuiteView {
    /// The view of a suite.
    pub fn new(suite: &SuiteFacts) -> Self {
        Self {
            head: suite.head.clone(),
            searches: suite.searches.clone(),
            with_programs: suite.with_programs,
            parts: suite.parts.len(),
            tasks: suite.tasks.clone(),
            modalities: suite.modalities.clone(),
            repeats: suite.repeats.clone(),
            spend: suite.spend.clone(),
            failures: suite.failures.clone(),
            comparisons: suite.curves.iter().map(TaskComparison::new).collect(),
            medals: medal_chart(&suite.medals),
            most_programs: MOST_SUITE_PROGRAMS,
        }
    }
}

/// The share of searches with a medal over sandbox time; none when there was never a medal.
fn medal_chart(moments: &[Moment]) -> Option<Comparison> {
    let last = moments.last()?.last;
    let highest = moments.iter().map(|moment| moment.estimated.max(moment.tested));
    let highest = highest.fold(0.0, f64::max) * 100.0;
    let by = By::SandboxTime;
    let across = by.axis(1, last);
    let upwards = Upwards::new(0.0, (highest * 1.15).clamp(1.0, 100.0), HEIGHT);
    let line = |share: fn(&Moment) -> f64| {
        let from = std::iter::once((0.0, 0.0));
        let points = moments.iter().map(|moment| (moment.time, share(moment) * 100.0));
        stair(from.chain(points), Some(last), &across, &upwards)
    };
    Some(Comparison {
        label: "Share of the searches that have a medal, in percent, over sandbox time".to_owned(),
        across: by.title(&across),
        x: across.ticks(8),
        y: upwards.ticks(6),
        lines: vec![(line(|moment| moment.tested), 0), (line(|moment| moment.estimated), 1)],
        height: HEIGHT,
    })
}
