//! How far loading and generation are, on standard error, where a person looks at it.

use std::time::{Duration, Instant};

use clade_lm_api::messages::{Generate, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};

use crate::cli::context::Context;
use crate::cli::terminal::Terminal;
use crate::figures::counted;

/// Time between two looks of a bar that nothing moves.
const TICK: Duration = Duration::from_millis(200);

/// How much of the weights is there.
#[derive(Debug, Clone)]
pub(super) struct LoadBar(ProgressBar);

impl LoadBar {
    pub(super) fn new(terminal: &Terminal) -> Self {
        Self(bar(terminal, None, "loading {bar:30} {bytes}/{total_bytes} {eta}"))
    }

    pub(super) fn show(&self, Progress { done, all }: Progress) {
        self.0.set_length(all);
        self.0.set_position(done);
    }

    pub(super) fn finish(&self) {
        self.0.finish_and_clear();
    }
}

/// How many tokens were written, and how fast.
#[derive(Debug)]
pub(super) struct GenerationBar {
    bar: ProgressBar,
    begin: Instant,
    tokens: u64,
    /// The answer is written to the terminal as it comes, so the bar is for the time before it.
    gives_way: bool,
}

impl GenerationBar {
    pub(super) fn new(context: &Context, request: &Generate) -> Self {
        let longest = request.max_tokens.map(|tokens| (tokens * request.samples) as u64);
        let template = match longest {
            Some(_) => "generating {bar:30} of {len}: {msg}",
            None => "generating {spinner} {msg}",
        };
        let bar = bar(&context.stderr, longest, template);
        bar.set_message("reading the prompt");
        Self {
            bar,
            begin: Instant::now(),
            tokens: 0,
            gives_way: request.samples == 1 && context.stdout.is_interactive(),
        }
    }

    /// One token more.
    pub(super) fn token(&mut self) {
        if self.gives_way {
            return self.bar.finish_and_clear();
        }
        self.tokens += 1;
        self.bar.set_position(self.tokens);
        self.bar.set_message(speed(self.tokens, self.begin.elapsed()));
    }
}

impl Drop for GenerationBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Tokens so far, and how many a second.
fn speed(tokens: u64, time: Duration) -> String {
    let rate = tokens as f64 / time.as_secs_f64().max(1e-9);
    format!("{}, {rate:.1} a second", counted(tokens, "token"))
}

fn bar(terminal: &Terminal, length: Option<u64>, template: &'static str) -> ProgressBar {
    if !terminal.is_interactive() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr()).with_finish(ProgressFinish::AndClear);
    // A fixed template: were it wrong, the usual bar would stand in.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(TICK);
    bar
}
