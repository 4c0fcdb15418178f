//! How far a suite is: a line for every search that begins or ends, and on a terminal a bar in between.

use std::cell::RefCell;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::client::Client;
use crate::cli::error::CliError;
use crate::cli::sql_text::literal;
use crate::cli::terminal::{Look, Terminal, note};
use crate::scheduler::Progress;
use crate::suite::{Event, Search};

/// Shows how far a suite is on standard error.
pub struct SuiteView {
    name: String,
    terminal: Terminal,
    bar: RefCell<Option<ProgressBar>>,
}

impl SuiteView {
    /// Time between two looks at the tables.
    pub const INTERVAL: Duration = Duration::from_secs(1);

    /// A view of a suite.
    pub fn new(name: &str, terminal: Terminal) -> Self {
        note(terminal.paint(Look::Bold, format!("suite {name}")));
        Self {
            name: name.to_owned(),
            terminal,
            bar: RefCell::default(),
        }
    }

    /// Says what happens to a search.
    pub fn tell(&self, event: &Event<'_>) {
        let (look, line) = match event {
            Event::Started(search) => (Look::Dim, format!("{}: begins as run {}", title(search), search.run_id)),
            Event::Resumed(search) => (
                Look::Dim,
                format!("{}: goes on as run {}", title(search), search.run_id),
            ),
            Event::Ended(search, progress) => (look(progress), format!("{}: {}", title(search), ending(progress))),
            Event::Failed(search) => {
                let error = search.error.as_deref().unwrap_or("no reason is known");
                (Look::Red, format!("{}: {error}", title(search)))
            }
            Event::Missing(search) => (Look::Yellow, format!("{}: the task is not imported", title(search))),
        };
        let line = self.terminal.paint(look, line);
        match &*self.bar.borrow() {
            Some(bar) => bar.suspend(|| note(line)),
            None => note(line),
        }
    }

    /// Looks at how far the suite is; elsewhere than on a terminal the lines say enough. A suite does not end because of a look.
    pub async fn look(&self, client: &Client) {
        if self.terminal.is_interactive()
            && let Err(error) = self.show(client).await
        {
            tracing::warn!(suite = %self.name, %error, "how far the suite is could not be read");
        }
    }

    async fn show(&self, client: &Client) -> Result<(), CliError> {
        let sql = include_str!("../../sql/suite_steps.sql").replace("$suite", &literal(&self.name));
        let rows = client.rows(&sql).await?;
        let Some(row) = rows.first() else { return Ok(()) };
        let (searches, ended, running) = (row.int("searches")?, row.int("ended")?, row.int("running")?);
        let (steps, limit) = (row.int("steps")?, row.int("steps_limit")?);
        let mut bar = self.bar.borrow_mut();
        let bar = bar.get_or_insert_with(|| new_bar(u64::try_from(searches).unwrap_or(0)));
        bar.set_position(u64::try_from(ended).unwrap_or(0));
        bar.set_message(format!(
            "{ended}/{searches} searches ended, {running} running, step {steps}/{limit}"
        ));
        Ok(())
    }

    /// Ends the display.
    pub fn finish(&self) {
        if let Some(bar) = self.bar.borrow_mut().take() {
            bar.finish_and_clear();
        }
    }
}

fn title(search: &Search) -> String {
    format!("{} #{}", search.task_id, search.repeat)
}

fn look(progress: &Progress) -> Look {
    match progress.status {
        "finished" if progress.error.is_none() => Look::Green,
        "failed" => Look::Red,
        _ => Look::Yellow,
    }
}

fn ending(progress: &Progress) -> String {
    let mut line = format!("{} after {} steps", progress.status, progress.steps_done);
    if let Some(best) = &progress.best
        && let Some(score) = best.score
    {
        line.push_str(&format!(", best {score:.5} (step {})", best.step));
    }
    if let Some(error) = &progress.error {
        line.push_str(&format!(": {error}"));
    }
    line
}

fn new_bar(searches: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(searches), ProgressDrawTarget::stderr());
    // A fixed template: were it wrong, the usual bar would stand in.
    if let Ok(style) = ProgressStyle::with_template("{elapsed_precise} {bar:24.green/dim} {wide_msg}") {
        bar.set_style(style.progress_chars("━━─"));
    }
    bar.enable_steady_tick(SuiteView::INTERVAL);
    bar
}
