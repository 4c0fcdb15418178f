//! The SQL shell.

mod dot;
mod helper;
mod lexer;
mod script;
mod words;

use std::path::PathBuf;

use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};

use super::client::Client;
use super::commands::runs;
use super::context::Context;
use super::error::CliError;
use super::printer::Printer;
use super::terminal::{Look, note};
use crate::config::Config as CladeConfig;
use dot::DotCommand;
use helper::LineHelper;
use script::Part;
use words::Words;

const PROMPT: &str = "clade> ";

/// Lines that the history keeps.
const HISTORY: usize = 10_000;

/// Statements that change what can be completed.
const CHANGES: [&str; 3] = ["create", "drop", "evolve"];

/// Whether the shell goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    GoOn,
    Leave,
}

/// Reads statements and runs them until the user leaves.
pub async fn run(client: &Client, mut printer: Printer, context: &Context) -> Result<(), CliError> {
    let mut editor = editor(context)?;
    let history = history_file();
    if let Some(path) = &history {
        // The first session has none.
        let _ = editor.load_history(path);
    }
    greet(&context.loaded.config);
    refresh(client, &mut editor).await;
    loop {
        let line = match tokio::task::block_in_place(|| editor.readline(PROMPT)) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(CliError::Failed(format!("cannot read from the terminal: {error}"))),
        };
        if line.trim().is_empty() {
            continue;
        }
        // Without a history file the history of this session still works.
        let _ = editor.add_history_entry(line.trim());
        match step(client, &line, &mut printer).await {
            Ok(Next::GoOn) => {}
            Ok(Next::Leave) => break,
            Err(CliError::Interrupted) => note("interrupted"),
            Err(error) => note(format!("{} {error}", context.stderr.paint(Look::Red, "error:"))),
        }
        let first = line.split_whitespace().next().unwrap_or_default().to_lowercase();
        if CHANGES.contains(&first.as_str()) {
            refresh(client, &mut editor).await;
        }
    }
    if let Some(path) = &history {
        if let Some(folder) = path.parent() {
            let _ = std::fs::create_dir_all(folder);
        }
        if let Err(error) = editor.save_history(path) {
            note(format!("the history could not be kept in {}: {error}", path.display()));
        }
    }
    Ok(())
}

/// Runs a text from a file or a pipe: statements, and commands of the shell on lines of their own.
pub async fn run_text(client: &Client, text: &str, printer: &mut Printer) -> Result<(), CliError> {
    for part in script::parts(text) {
        match part {
            Part::Statements(sql) => {
                client.run(&sql, printer).await?;
            }
            Part::Command(line) => {
                if command(client, line, printer).await? == Next::Leave {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Runs one command or text.
async fn step(client: &Client, line: &str, printer: &mut Printer) -> Result<Next, CliError> {
    if line.trim_start().starts_with('.') {
        return command(client, line, printer).await;
    }
    client.run(line, printer).await?;
    Ok(Next::GoOn)
}

/// Runs a command of the shell.
async fn command(client: &Client, line: &str, printer: &mut Printer) -> Result<Next, CliError> {
    match DotCommand::parse(line).map_err(CliError::Usage)? {
        DotCommand::Help => printer.text(&format!("{}\n", dot::HELP))?,
        DotCommand::Query(sql) => {
            client.run(&sql, printer).await?;
        }
        DotCommand::Runs => runs::list(client, printer).await?,
        DotCommand::Format(None) => note(format!("the format is {:?}", printer.format()).to_lowercase()),
        DotCommand::Format(Some(format)) => printer.set_format(format)?,
        DotCommand::Timing(on) => printer.set_notes(on),
        DotCommand::Read(path) => {
            let text = std::fs::read_to_string(&path).map_err(CliError::file(&path))?;
            // A file may read others.
            Box::pin(run_text(client, &text, printer)).await?;
        }
        DotCommand::Quit => return Ok(Next::Leave),
    }
    Ok(Next::GoOn)
}

fn editor(context: &Context) -> Result<Editor<LineHelper, FileHistory>, CliError> {
    let failed = |error: ReadlineError| CliError::Failed(format!("the shell cannot start: {error}"));
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .max_history_size(HISTORY)
        .map_err(failed)?
        .history_ignore_space(true)
        .auto_add_history(false)
        .build();
    let mut editor = Editor::with_config(config).map_err(failed)?;
    editor.set_helper(Some(LineHelper::new(context.stdout)));
    Ok(editor)
}

fn greet(config: &CladeConfig) {
    note(format!(
        "clade {} on {}; .help for help, Ctrl-D to leave",
        env!("CARGO_PKG_VERSION"),
        config.store.path.display()
    ));
}

/// Brings the completions up to date; without them the shell still works.
async fn refresh(client: &Client, editor: &mut Editor<LineHelper, FileHistory>) {
    match Words::load(client).await {
        Ok(words) => {
            if let Some(helper) = editor.helper_mut() {
                helper.words = words;
            }
        }
        Err(error) => tracing::warn!(%error, "the words to complete could not be read"),
    }
}

/// `clade/history` in the user's data folder.
fn history_file() -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let folder = absolute("XDG_DATA_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/share")))?;
    Some(folder.join("clade").join("history"))
}
