//! `clade grade`: grade a submission against the hidden answers.

use std::path::{Path, PathBuf};

use chrono::Utc;
use clade_catalog::{Rows, Txn, Value};
use clap::Args;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::cli::args::FormatArgs;
use crate::cli::client::Client;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::printer::Format;
use crate::cli::sql_text::literal;
use crate::cli::standing::STANDING;
use crate::engine::EngineError;
use crate::grading::{GradeRow, grade_submission};
use crate::gym::Submission;
use crate::sandbox::pack_folder;
use crate::scheduler::{fresh_id, leaderboard};

/// Arguments of `clade grade`.
#[derive(Debug, Args)]
pub struct GradeArgs {
    /// Submission: a file, or the folder with the output for a task that wants one.
    submission: PathBuf,
    /// Task.
    #[arg(long)]
    task: String,
    #[command(flatten)]
    format: FormatArgs,
}

/// The file that is graded, and the folder it was made in where it had to be made.
fn submission(given: &Path, wanted: Submission, limit: u64) -> Result<(PathBuf, Option<TempDir>), String> {
    match (wanted, given.is_dir()) {
        (Submission::Table, false) => {
            let facts = std::fs::metadata(given).map_err(|error| error.to_string())?;
            if !facts.is_file() {
                return Err("it is no regular file".to_owned());
            }
            if facts.len() > limit {
                return Err(format!(
                    "it has {} bytes, at most {limit} are taken (sandbox.submission_size)",
                    facts.len()
                ));
            }
            Ok((given.to_owned(), None))
        }
        (Submission::Folder, true) => {
            let made = tempfile::tempdir().map_err(|error| format!("no folder can be made to pack it in: {error}"))?;
            let target = made.path().join(format!("{}.tar", wanted.name()));
            pack_folder(given, limit, &target)?;
            Ok((target, Some(made)))
        }
        (Submission::Table, true) => Err("it is a folder, and the task wants a file".to_owned()),
        (Submission::Folder, false) => {
            Err("it is a file, and the task wants a folder with the files of every instance".to_owned())
        }
    }
}

/// Grades the submission and prints its row of `bench.grades`. One that is not valid has its row too, and fails the command.
pub async fn run(args: GradeArgs, context: &Context) -> Result<(), CliError> {
    let mut printer = context.printer(args.format.format)?;
    let client = Client::writer(context).await?;
    let services = client.engine().scheduler().services();
    let task = services.task(&args.task).await.map_err(EngineError::from)?;
    let sandbox = client.engine().sandbox(&context.loaded.config.sandbox.executor)?;
    let given = args
        .submission
        .canonicalize()
        .map_err(CliError::file(&args.submission))?;
    let limit = services.candidate_limits.submission_bytes;
    let (path, _packed) = submission(&given, task.row.submission, limit)
        .map_err(|reason| CliError::Failed(format!("{}: {reason}", args.submission.display())))?;
    let bytes = std::fs::read(&path).map_err(CliError::file(&path))?;
    let teams = leaderboard(services, &task).await.map_err(EngineError::from)?;
    let (evaluator, limits) = (sandbox.evaluator.as_ref(), services.evaluation_limits.clone());
    let grade = grade_submission(&task, &path, &teams, evaluator, limits, &CancellationToken::new())
        .await
        .map_err(EngineError::from)?;
    let row = GradeRow {
        submission_id: format!("s{}", fresh_id()),
        run_id: None,
        node_id: None,
        task_id: args.task.clone(),
        grade,
        graded_at: Utc::now(),
        role: None,
        repeat: None,
        selection: None,
    };
    let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    let hash = services.store.put_blob(bytes).await.map_err(EngineError::from)?;
    let mut submission = Rows::new("bench.submissions").map_err(EngineError::from)?;
    submission
        .push([
            ("submission_id", Value::from(row.submission_id.clone())),
            ("task_id", args.task.into()),
            ("sha256", hash.into()),
            ("bytes", size.into()),
            ("created_at", row.graded_at.into()),
        ])
        .map_err(EngineError::from)?;
    let mut txn = Txn::new();
    txn.append("bench.submissions", submission);
    txn.append("bench.grades", row.rows().map_err(EngineError::from)?);
    txn.append("bench.instance_scores", row.instance_rows().map_err(EngineError::from)?);
    services.store.commit(txn).await.map_err(EngineError::from)?;
    printer.set_notes(false);
    let sql = match args.format.format {
        Format::Table => include_str!("../sql/grade_words.sql").replace("$standing", STANDING),
        _ => include_str!("../sql/grade.sql").to_owned(),
    };
    let sql = sql.replace("$submission", &literal(&row.submission_id));
    client.run(&sql, &mut printer).await?;
    printer.finish()?;
    client.close().await;
    if row.grade.valid {
        return Ok(());
    }
    Err(CliError::Failed(format!(
        "the submission is not valid: {}",
        row.grade.detail.as_deref().unwrap_or(row.grade.status.as_str())
    )))
}
