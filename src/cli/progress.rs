//! How far a run is: read from the tables, so that any process can follow it; shown as a bar or as plain lines.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::client::Client;
use super::error::CliError;
use super::printer::{counted, dollars, duration, thousands};
use super::sql_text::literal;
use super::terminal::{Look, Terminal, note};
use crate::session::ResultRow;

/// Time between two looks at the tables.
pub const INTERVAL: Duration = Duration::from_millis(500);

/// Least time between two plain lines that say nothing new but the step.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Statuses of a run that goes on.
const GOING_ON: [&str; 2] = ["running", "draining"];

/// How far a run is.
#[derive(Debug, Clone, PartialEq)]
pub struct RunProgress {
    /// Run id.
    pub run_id: String,
    /// Task.
    pub task_id: String,
    /// Policy.
    pub policy: String,
    /// Model.
    pub model: String,
    /// Status, `interrupted` when nobody conducts it.
    pub status: String,
    /// Why it ended.
    pub stop_reason: Option<String>,
    /// Committed steps.
    pub steps: i64,
    /// Step budget.
    pub steps_limit: i64,
    /// Programs without a valid score.
    pub failed: i64,
    /// Metric.
    pub metric: Option<String>,
    /// Best score.
    pub best_score: Option<f64>,
    /// Step of the best score.
    pub best_step: Option<i64>,
    /// Operator of the newest program.
    pub last_operator: Option<String>,
    /// Result of the newest program.
    pub last_status: Option<String>,
    /// Tokens spent; none when no model said.
    pub tokens: Option<i64>,
    /// US dollars spent; none when no price is known.
    pub cost_usd: Option<f64>,
    /// Seconds since the start, or from start to end.
    pub seconds: Option<f64>,
    /// What is left of the budgets that have a limit, in words.
    pub left: Vec<String>,
    /// Until when the model is paused, and why.
    pub paused: Option<String>,
}

impl RunProgress {
    /// Reads a run.
    pub async fn read(client: &Client, run_id: &str) -> Result<Option<Self>, CliError> {
        let sql = include_str!("sql/progress.sql").replace("$run", &literal(run_id));
        let rows = client.rows(&sql).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        Ok(Some(Self {
            run_id: row.text("run_id")?,
            task_id: row.text("task_id")?,
            policy: row.text("policy")?,
            model: row.text("model")?,
            status: row.text("status")?,
            stop_reason: row.optional_text("stop_reason")?,
            steps: row.int("steps")?,
            steps_limit: row.int("steps_limit")?,
            failed: row.int("failed")?,
            metric: row.optional_text("metric")?,
            best_score: row.optional_float("best_score")?,
            best_step: row.optional_int("best_step")?,
            last_operator: row.optional_text("last_operator")?,
            last_status: row.optional_text("last_status")?,
            tokens: row.optional_int("tokens")?,
            cost_usd: row.optional_float("cost_usd")?,
            seconds: row.optional_float("seconds")?,
            left: left(&row)?,
            paused: row.optional_text("paused")?,
        }))
    }

    /// Whether the run goes on.
    pub fn is_going_on(&self) -> bool {
        GOING_ON.contains(&self.status.as_str())
    }

    /// One line: steps, best, failures, newest program, spend.
    pub fn line(&self) -> String {
        let mut line = format!("step {}/{}", self.steps, self.steps_limit);
        let _ = match (self.best_score, self.best_step) {
            (Some(score), Some(step)) => {
                write!(
                    line,
                    "  best {} {score:.5} (step {step})",
                    self.metric.as_deref().unwrap_or("score")
                )
            }
            _ => write!(line, "  no score yet"),
        };
        let _ = write!(line, "  failed {}", self.failed);
        if let (Some(operator), Some(status)) = (&self.last_operator, &self.last_status) {
            let _ = write!(line, "  last {operator}: {status}");
        }
        if let Some(tokens) = self.tokens.filter(|tokens| *tokens > 0) {
            let _ = write!(line, "  tokens {tokens}");
        }
        if let Some(cost) = self.cost_usd.filter(|cost| *cost > 0.0) {
            let _ = write!(line, "  {}", dollars(cost));
        }
        if self.is_going_on() && !self.left.is_empty() {
            let _ = write!(line, "  left {}", self.left.join(", "));
        }
        if let Some(paused) = self.paused.as_ref().filter(|_| self.is_going_on()) {
            let _ = write!(line, "  {paused}");
        }
        line
    }

    /// What the run is.
    pub fn title(&self) -> String {
        format!(
            "run {}: {} with {} and {}",
            self.run_id, self.task_id, self.policy, self.model
        )
    }

    /// How the run ended.
    pub fn ending(&self) -> String {
        let mut line = format!("{}: {}", self.status, self.line());
        if let Some(reason) = &self.stop_reason {
            let _ = write!(line, "  ({reason})");
        }
        if let Some(seconds) = self.seconds {
            let _ = write!(line, "  {}", duration(seconds));
        }
        line
    }
}

/// What is left of the budgets that have a limit; of wall time, which goes on, it may be a little less than nothing.
fn left(row: &ResultRow<'_>) -> Result<Vec<String>, CliError> {
    let number = |name| Ok::<_, CliError>(row.optional_float(name)?.map(|left| left.max(0.0)));
    let mut parts = Vec::new();
    for (column, name) in [
        ("wall_left", "of wall time"),
        ("sandbox_left", "in the sandbox"),
        ("active_left", "in model and sandbox"),
    ] {
        parts.extend(number(column)?.map(|left| format!("{} {name}", duration(left))));
    }
    parts.extend(number("tokens_left")?.map(|left| format!("{} tokens", thousands(left as i64))));
    parts.extend(number("cost_left")?.map(dollars));
    parts.extend(number("jobs_left")?.map(|left| counted(left as u64, "job")));
    Ok(parts)
}

/// Shows progress on standard error.
pub struct ProgressView {
    terminal: Terminal,
    bar: Option<ProgressBar>,
    shown: Option<(RunProgress, Instant)>,
}

impl ProgressView {
    /// A bar on a terminal, plain lines elsewhere.
    pub fn new(terminal: Terminal) -> Self {
        Self {
            terminal,
            bar: None,
            shown: None,
        }
    }

    /// Shows how far the run is.
    pub fn show(&mut self, progress: &RunProgress) {
        if self.shown.is_none() {
            note(self.terminal.paint(Look::Bold, progress.title()));
        }
        if self.terminal.is_interactive() {
            let limit = u64::try_from(progress.steps_limit).unwrap_or(0);
            let bar = self.bar.get_or_insert_with(|| new_bar(limit));
            bar.set_position(u64::try_from(progress.steps).unwrap_or(0));
            bar.set_message(progress.line());
        } else if self.is_news(progress) {
            note(progress.line());
        } else {
            return;
        }
        self.shown = Some((progress.clone(), Instant::now()));
    }

    /// Ends the display with how the run ended.
    pub fn finish(&mut self, progress: &RunProgress) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        let look = if progress.status == "finished" {
            Look::Green
        } else {
            Look::Yellow
        };
        note(self.terminal.paint(look, progress.ending()));
    }

    /// A better score and a new failure are news at once, steps now and then.
    fn is_news(&self, progress: &RunProgress) -> bool {
        self.shown.as_ref().is_none_or(|(shown, at)| {
            shown.best_score != progress.best_score
                || shown.status != progress.status
                || shown.paused != progress.paused
                || (shown.steps != progress.steps && at.elapsed() >= LINE_INTERVAL)
        })
    }
}

fn new_bar(limit: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(limit), ProgressDrawTarget::stderr());
    // A fixed template: were it wrong, the usual bar would stand in.
    if let Ok(style) = ProgressStyle::with_template("{elapsed_precise} {bar:24.green/dim} {wide_msg}") {
        bar.set_style(style.progress_chars("━━─"));
    }
    bar.enable_steady_tick(INTERVAL);
    bar
}
