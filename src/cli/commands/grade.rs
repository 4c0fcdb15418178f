//! `clade grade`: grade a submission against the hidden answers.

use std::path::PathBuf;

use clade_catalog::{Rows, Txn, Value};
use clap::Args;
use tokio_util::sync::CancellationToken;

use crate::bench::{Grade, Standing};
use crate::cli::args::FormatArgs;
use crate::cli::client::Client;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::sql_text::literal;
use crate::engine::EngineError;
use crate::sandbox::EvaluationSpec;
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

/// Grades the submission and prints its row of `bench.grades`.
pub async fn run(args: GradeArgs, context: &Context) -> Result<(), CliError> {
    let mut printer = context.printer(args.format.format)?;
    let client = Client::writer(context).await?;
    let services = client.engine().scheduler().services();
    let task = services.task(&args.task).await.map_err(EngineError::from)?;
    let bytes = std::fs::read(&args.submission).map_err(CliError::file(&args.submission))?;
    let sandbox = client.engine().sandbox(&context.loaded.config.sandbox.executor)?;
    let spec = EvaluationSpec {
        metric_py: task.final_.metric_py.clone(),
        answers: task.final_.answers.clone(),
        submission: args.submission.canonicalize().map_err(CliError::file(&args.submission))?,
        limits: services.evaluation_limits.clone(),
        warm: false,
    };
    let evaluation = sandbox.evaluator.evaluate(spec, &CancellationToken::new()).await.map_err(EngineError::from)?;
    let standing = match evaluation.score {
        Some(score) => {
            let teams = leaderboard(services, &task).await.map_err(EngineError::from)?;
            Standing::of(score, &teams, task.row.higher_is_better)
        }
        None => None,
    };
    let grade = Grade {
        submission_id: format!("s{}", fresh_id()),
        run_id: None,
        node_id: None,
        task_id: args.task.clone(),
        status: evaluation.state.as_str().to_owned(),
        score: evaluation.score,
        standing,
        detail: evaluation.detail,
        graded_at: services.now(),
    };
    let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    let hash = services.store.put_blob(bytes).await.map_err(EngineError::from)?;
    let mut submission = Rows::new("bench.submissions").map_err(EngineError::from)?;
    submission
        .push([
            ("submission_id", Value::from(grade.submission_id.clone())),
            ("task_id", args.task.into()),
            ("sha256", hash.into()),
            ("bytes", size.into()),
            ("created_at", Value::Timestamp(grade.graded_at)),
        ])
        .map_err(EngineError::from)?;
    let mut txn = Txn::new();
    txn.append("bench.submissions", submission);
    txn.append("bench.grades", grade.rows().map_err(EngineError::from)?);
    services.store.commit(txn).await.map_err(EngineError::from)?;
    printer.set_notes(false);
    let sql = format!(
        "SELECT task_id, status, valid, score, medal, rank, teams, human_rank, leaderboard_median, detail, submission_id \
         FROM bench.grades WHERE submission_id = {}",
        literal(&grade.submission_id)
    );
    client.run(&sql, &mut printer).await?;
    printer.finish()?;
    client.close().await;
    Ok(())
}
