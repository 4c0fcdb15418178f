//! `clade grade`: grade a submission against the hidden answers.

use std::path::PathBuf;

use chrono::Utc;
use clade_catalog::{Rows, Txn, Value};
use clap::Args;
use tokio_util::sync::CancellationToken;

use crate::bench::{GradeRow, grade_submission};
use crate::cli::args::FormatArgs;
use crate::cli::client::Client;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::printer::Format;
use crate::cli::sql_text::literal;
use crate::cli::standing::STANDING;
use crate::engine::EngineError;
use crate::scheduler::{fresh_id, leaderboard};

/// Arguments of `clade grade`.
#[derive(Debug, Args)]
pub struct GradeArgs {
    /// Submission file.
    submission: PathBuf,
    /// Task.
    #[arg(long)]
    task: String,
    #[command(flatten)]
    format: FormatArgs,
}

/// Grades the submission and prints its row of `bench.grades`. One that is not valid has its row too, and fails the command.
pub async fn run(args: GradeArgs, context: &Context) -> Result<(), CliError> {
    let mut printer = context.printer(args.format.format)?;
    let client = Client::writer(context).await?;
    let services = client.engine().scheduler().services();
    let task = services.task(&args.task).await.map_err(EngineError::from)?;
    let bytes = std::fs::read(&args.submission).map_err(CliError::file(&args.submission))?;
    let sandbox = client.engine().sandbox(&context.loaded.config.sandbox.executor)?;
    let path = args
        .submission
        .canonicalize()
        .map_err(CliError::file(&args.submission))?;
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
