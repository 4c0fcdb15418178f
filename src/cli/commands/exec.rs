//! `clade exec`: run one program as a candidate.

use std::path::PathBuf;
use std::time::Duration;

use clade_catalog::Txn;
use clap::Args;
use tokio_util::sync::CancellationToken;

use crate::cli::args::FormatArgs;
use crate::cli::client::Client;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::interrupt;
use crate::cli::printer::log_end;
use crate::cli::sql_text::literal;
use crate::cli::terminal::{Look, note};
use crate::dialect::parse_duration;
use crate::engine::EngineError;
use crate::sandbox::ResultState;
use crate::scheduler::{JobPurpose, ProgramRun, fresh_id, job_rows, run_program};

/// Columns of a job that are printed.
const COLUMNS: &str = "job_id, task_id, split, backend, status, score, cause, detail, exit_code, signal, oom, \
     wall_seconds, cpu_seconds, evaluation_seconds, peak_memory_bytes, submission_bytes, stdout_bytes, stderr_bytes, warm, \
     isolation";

/// Arguments of `clade exec`.
#[derive(Debug, Args)]
pub struct ExecArgs {
    /// Python program.
    file: PathBuf,
    /// Task whose data it reads.
    #[arg(long)]
    task: String,
    /// Use the final data instead of the validation split. The score is not shown: it is what grading is for.
    #[arg(long = "final")]
    is_final: bool,
    /// Executor.
    #[arg(long, value_name = "NAME")]
    sandbox: Option<String>,
    /// Longest run of the program, such as 90s or '10 min'.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, allow_hyphen_values = true)]
    timeout: Option<Duration>,
    /// Seed that the program finds in CLADE_SEED.
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    seed: i64,
    #[command(flatten)]
    format: FormatArgs,
}

/// Runs the program and prints its job.
pub async fn run(args: ExecArgs, context: &Context) -> Result<(), CliError> {
    let mut printer = context.printer(args.format.format)?;
    let code = std::fs::read(&args.file).map_err(CliError::file(&args.file))?;
    let code = String::from_utf8(code).map_err(|error| {
        CliError::Failed(format!(
            "{} is not UTF-8 text: the first wrong byte is at {}",
            args.file.display(),
            error.utf8_error().valid_up_to()
        ))
    })?;
    let client = Client::writer(context).await?;
    let services = client.engine().scheduler().services();
    let task = services.task(&args.task).await.map_err(EngineError::from)?;
    let (split, is_self_reported) = match (&task.validation, args.is_final) {
        (Some(validation), false) => (validation, false),
        (None, false) => (&task.final_, true),
        (_, true) => (&task.final_, false),
    };
    let sandbox = args
        .sandbox
        .clone()
        .unwrap_or_else(|| context.loaded.config.sandbox.executor.clone());
    let program = ProgramRun {
        job_id: format!("x{}", fresh_id()),
        sandbox: &sandbox,
        code: &code,
        split,
        self_reported: is_self_reported,
        seed: args.seed,
        seconds: args.timeout.unwrap_or(services.candidate_limits.wall).as_secs_f64(),
        evaluation_seconds: services.evaluation_limits.wall.as_secs_f64(),
        warm: false,
    };
    let job_id = program.job_id.clone();
    let cancel = CancellationToken::new();
    let stop = cancel.clone().drop_guard();
    let work = async {
        let result = run_program(services, program, &cancel, None)
            .await
            .map_err(EngineError::from)?;
        let purpose = JobPurpose {
            attempt_id: None,
            run_id: None,
            task_id: &args.task,
            split: if args.is_final { "final" } else { "validation" },
        };
        let rows = job_rows(services, purpose, &sandbox, &result)
            .await
            .map_err(EngineError::from)?;
        let mut txn = Txn::new();
        txn.append("sandbox.jobs", rows);
        services.store.commit(txn).await.map_err(EngineError::from)?;
        Ok::<_, CliError>(result.candidate)
    };
    let candidate = interrupt::guard(client.engine(), work).await?;
    drop(stop);
    printer.set_notes(false);
    let printed = client
        .run(
            &format!("SELECT {COLUMNS} FROM sandbox.jobs WHERE job_id = {}", literal(&job_id)),
            &mut printer,
        )
        .await?;
    printer.finish()?;
    if printed == 0 {
        let detail = candidate.detail.unwrap_or_default();
        return Err(CliError::Failed(format!(
            "the program did not start: {} ({detail})",
            candidate.state.as_str()
        )));
    }
    if let Some(job) = &candidate.job {
        for (name, log) in [("standard output", &job.stdout), ("standard error", &job.stderr)] {
            if log.bytes > 0 {
                note(context.stderr.paint(Look::Bold, format!("end of {name}:")));
                note(log_end(&log.head, &log.tail, log.bytes).text);
            }
        }
    }
    client.close().await;
    if candidate.state == ResultState::Success {
        return Ok(());
    }
    let detail = candidate.detail.map(|detail| format!(": {detail}")).unwrap_or_default();
    Err(CliError::Failed(format!(
        "the program ended as {}{detail}",
        candidate.state.as_str()
    )))
}
