//! The end of a run: its best node, the final selection, the chosen program's run on the final data, and its grade. The grade goes
//! to `bench` and nowhere else.

use std::sync::Arc;

use chrono::Utc;
use clade_catalog::{Rows, Txn, Value};
use datafusion::common::ScalarValue;
use rand::Rng;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::candidate::{ProgramRun, run_program};
use super::error::{Result, SchedulerError};
use super::ids;
use super::record::{self, JobPurpose};
use super::retry;
use super::run::{BestNode, Progress, Run};
use super::services::Services;
use crate::bench::{Grade, GradeRow};
use crate::sandbox::CandidateResult;

/// How far a run is: committed steps and its best node, the earliest on ties. Nodes that an EXPAND has added to the run are no
/// steps of it, but they may be its best.
///
/// # Errors
/// When the query fails.
pub async fn progress(services: &Services, run: &Run) -> Result<Progress> {
    let rows = services
        .queries
        .rows(
            "SELECT count(*) FILTER (WHERE statement_id = $statement) AS steps,
                    first_value(node_id ORDER BY signed_score DESC NULLS LAST, step) AS node_id,
                    first_value(score ORDER BY signed_score DESC NULLS LAST, step) AS score,
                    first_value(step ORDER BY signed_score DESC NULLS LAST, step) AS step,
                    count(signed_score) AS scored
             FROM evo.nodes WHERE run_id = $run",
            &[
                ("run", ScalarValue::from(run.run_id.as_str())),
                ("statement", ScalarValue::from(run.statement_id.as_str())),
            ],
            None,
            None,
        )
        .await
        .map_err(SchedulerError::query("progress of the run"))?;
    let read = || -> datafusion::error::Result<Progress> {
        let Some(row) = rows.first() else {
            return Ok(Progress::running(0));
        };
        let mut progress = Progress::running(row.int("steps")?);
        if row.int("scored")? > 0 {
            progress.best = Some(BestNode {
                node_id: row.text("node_id")?,
                score: row.optional_float("score")?,
                step: row.int("step")?,
            });
        }
        Ok(progress)
    };
    read().map_err(SchedulerError::query("progress of the run"))
}

/// Chooses the final node, runs it on the final data, keeps its submission and grades it. Done once a run: a run that was
/// killed on the way does it again, a run that has its grade keeps it.
///
/// # Errors
/// When the sandbox or the store fails.
pub async fn final_run(services: &Arc<Services>, run: &Run, cancel: &CancellationToken) -> Result<Option<String>> {
    if let Some(node_id) = graded_node(services, &run.run_id).await? {
        return Ok(Some(node_id));
    }
    let Some((node_id, code, seed)) = choose(services, run).await? else {
        return Ok(None);
    };
    let task = services.task(&run.task_id).await?;
    let job_id = ids::job_id(&run.run_id, "final", 0);
    let mut submission = None;
    let program = ProgramRun {
        job_id: job_id.clone(),
        sandbox: &run.sandbox,
        code: &code,
        split: &task.final_,
        self_reported: false,
        seed,
        seconds: run.options.final_timeout,
        evaluation_seconds: services.evaluation_limits.wall.as_secs_f64(),
        // The score that counts comes from a cold start, which no earlier job has touched.
        warm: false,
    };
    let mut tries = 1;
    let result = loop {
        match run_program(services, program.clone(), cancel, Some(&mut submission)).await {
            Err(error) if error.class().is_retryable() && tries < run.options.attempt.max_tries => {
                let pause = retry::pause(error.class(), tries, None, seed);
                warn!(run = %run.run_id, tries, %error, ?pause, "trying the final run again");
                tokio::select! {
                    () = tokio::time::sleep(pause) => tries += 1,
                    () = cancel.cancelled() => return Err(SchedulerError::Cancelled),
                }
            }
            outcome => break outcome?,
        }
    };
    let submission_id = format!(
        "s{}",
        &ids::sha256_hex(format!("{}/{node_id}", run.run_id).as_bytes())[..20]
    );
    let purpose = JobPurpose {
        attempt_id: None,
        run_id: Some(&run.run_id),
        task_id: &run.task_id,
        split: "final",
    };
    let mut txn = Txn::new();
    txn.append(
        "sandbox.jobs",
        record::job_rows(services, purpose, &run.sandbox, &result).await?,
    );
    if let Some(bytes) = submission {
        let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        let hash = services.store.put_blob(bytes).await?;
        let mut rows = Rows::new("bench.submissions")?;
        rows.push([
            ("submission_id", submission_id.clone().into()),
            ("run_id", run.run_id.clone().into()),
            ("node_id", node_id.clone().into()),
            ("task_id", run.task_id.clone().into()),
            ("job_id", job_id.into()),
            ("sha256", hash.into()),
            ("bytes", size.into()),
            ("created_at", Value::Timestamp(services.now())),
        ])?;
        txn.append("bench.submissions", rows);
    }
    let CandidateResult {
        state, score, detail, ..
    } = result.candidate;
    let board = leaderboard(services, &task).await?;
    let grade = GradeRow {
        submission_id,
        run_id: Some(run.run_id.clone()),
        node_id: Some(node_id.clone()),
        task_id: run.task_id.clone(),
        grade: Grade::of(state, score, detail, &board, task.row.higher_is_better),
        graded_at: Utc::now(),
    };
    txn.append("bench.grades", grade.rows()?);
    services.store.commit(txn).await?;
    Ok(Some(node_id))
}

/// Best evaluator-scored node; without one, a seeded draw among the nodes that have a program.
async fn choose(services: &Services, run: &Run) -> Result<Option<(String, String, i64)>> {
    let parameters = [("run", ScalarValue::from(run.run_id.as_str()))];
    let fault = SchedulerError::query("final selection");
    let chosen = async || -> datafusion::error::Result<Option<(String, String, i64)>> {
        let first = async |condition: &str, order: &str| {
            let sql = format!(
                "SELECT node_id, code, seed FROM evo.nodes WHERE run_id = $run AND code IS NOT NULL {condition}
                 ORDER BY {order}"
            );
            let rows = services.queries.rows(&sql, &parameters, None, None).await?;
            let row = rows.first();
            row.map(|row| Ok((row.text("node_id")?, row.text("code")?, row.int("seed")?)))
                .transpose()
        };
        if let Some(best) = first("AND signed_score IS NOT NULL", "signed_score DESC, step LIMIT 1").await? {
            return Ok(Some(best));
        }
        let programs = "SELECT count(*) AS programs FROM evo.nodes WHERE run_id = $run AND code IS NOT NULL";
        let rows = services.queries.rows(programs, &parameters, None, None).await?;
        match rows.first().map(|row| row.int("programs")).transpose()? {
            None | Some(0) => Ok(None),
            Some(programs) => {
                let pick = ids::draw_rng(run.options.seed, -1).random_range(0..programs);
                first("", &format!("step LIMIT 1 OFFSET {pick}")).await
            }
        }
    };
    chosen().await.map_err(fault)
}

/// The node that the run's grade belongs to; later nodes of the run, which an EXPAND may have made, do not change it.
async fn graded_node(services: &Services, run_id: &str) -> Result<Option<String>> {
    let read = async || {
        let rows = services
            .queries
            .rows(
                "SELECT node_id FROM bench.grades WHERE run_id = $run AND node_id IS NOT NULL ORDER BY graded_at LIMIT 1",
                &[("run", ScalarValue::from(run_id))],
                None,
                None,
            )
            .await?;
        rows.first().map(|row| row.text("node_id")).transpose()
    };
    read().await.map_err(SchedulerError::query("grades"))
}

/// Scores of a task's leaderboard, best first.
///
/// # Errors
/// When the query fails.
pub async fn leaderboard(services: &Services, task: &crate::gym::Task) -> Result<Vec<f64>> {
    let rows = services
        .queries
        .rows(
            "SELECT score FROM gym.leaderboards WHERE task_id = $task AND package_hash = $package ORDER BY rank",
            &[
                ("task", ScalarValue::from(task.row.task_id.as_str())),
                ("package", ScalarValue::from(task.row.package_hash.as_str())),
            ],
            None,
            None,
        )
        .await
        .map_err(SchedulerError::query("leaderboard"))?;
    let scores = rows
        .iter()
        .filter_map(|row| row.optional_float("score").transpose())
        .collect::<Result<_, _>>();
    scores.map_err(SchedulerError::query("leaderboard"))
}
