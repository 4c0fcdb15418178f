//! Runs of chosen programs on the final data, their submissions and their grades. A grade goes to `bench` and nowhere else.
//!
//! Each is committed by itself and once: a run that was killed on the way goes on with what is not graded yet.

pub mod selection;

use std::sync::Arc;

use chrono::Utc;
use clade_catalog::{Rows, Txn, Value};
use datafusion::common::ScalarValue;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use self::selection::Chosen;
use super::error::{Result, SchedulerError};
use super::ids;
use super::record::{self, JobPurpose};
use super::run::Run;
use super::services::Services;
use crate::grading::{Grade, GradeRole, GradeRow};
use crate::gym::Task;
use crate::sandbox::CandidateResult;
use crate::scheduler::attempt::candidate::{ProgramResult, ProgramRun, run_program};
use crate::scheduler::attempt::retry;
use crate::scheduler::run::progress::leaderboard;

/// What the end of a search gave.
#[derive(Debug, Default)]
pub struct FinalRun {
    /// The chosen node; none when no reply held a program.
    pub node_id: Option<String>,
    /// The fault that ended it early; what was graded before is kept.
    pub error: Option<SchedulerError>,
}

/// One program to run on the final data.
#[derive(Debug)]
struct Submit {
    chosen: Chosen,
    role: GradeRole,
    /// Number of the run, from 1.
    repeat: i64,
    seed: i64,
    submission_id: String,
    job_id: String,
}

impl Submit {
    fn finally(run: &Run, chosen: &Chosen, repeat: i64) -> Self {
        let (name, seed) = match repeat {
            1 => (format!("{}/{}", run.run_id, chosen.node_id), chosen.seed),
            _ => (
                format!("{}/{}/{repeat}", run.run_id, chosen.node_id),
                ids::derive_seed(chosen.seed, "submit", repeat, 0),
            ),
        };
        Self {
            chosen: chosen.clone(),
            role: GradeRole::Final,
            repeat,
            seed,
            submission_id: submission_id(&name),
            job_id: ids::job_id(&run.run_id, "final", repeat - 1),
        }
    }

    fn incumbent(run: &Run, chosen: Chosen) -> Self {
        Self {
            role: GradeRole::Incumbent,
            repeat: 1,
            seed: chosen.seed,
            submission_id: submission_id(&format!("{}/{}/incumbent", run.run_id, chosen.node_id)),
            job_id: ids::job_id(&run.run_id, &format!("incumbent/{}", chosen.node_id), 0),
            chosen,
        }
    }
}

fn submission_id(name: &str) -> String {
    format!("s{}", &ids::sha256_hex(name.as_bytes())[..20])
}

/// Chooses the final node, runs it on the final data as often as the run wants, keeps its submissions and grades them; then, where
/// the run wants it, the same for every node that was once the best. The node of an earlier grade stays the chosen one.
///
/// # Errors
/// When it was cancelled, or the node could not be chosen.
pub async fn final_run(services: &Arc<Services>, run: &Run, cancel: &CancellationToken) -> Result<FinalRun> {
    let earlier = grades(services, &run.run_id).await?;
    let before = earlier.iter().find(|grade| grade.is_final);
    let chosen = match before {
        Some(grade) => selection::chosen_before(services, &grade.node_id, grade.selection.as_deref()).await?,
        None => selection::choose(services, run).await?,
    };
    let Some(chosen) = chosen else {
        return Ok(FinalRun::default());
    };
    let node_id = Some(chosen.node_id.clone());
    let error = match submit_all(services, run, &chosen, &earlier, cancel).await {
        Ok(()) => None,
        Err(SchedulerError::Cancelled) => return Err(SchedulerError::Cancelled),
        Err(error) => Some(error),
    };
    Ok(FinalRun { node_id, error })
}

async fn submit_all(
    services: &Services,
    run: &Run,
    chosen: &Chosen,
    earlier: &[Graded],
    cancel: &CancellationToken,
) -> Result<()> {
    let is_done = |submit: &Submit| earlier.iter().any(|grade| grade.submission_id == submit.submission_id);
    let task = services.task(&run.task_id).await?;
    for repeat in 1..=run.options.submit_repeats {
        let submit = Submit::finally(run, chosen, repeat);
        if !is_done(&submit) {
            submit_one(services, run, &task, submit, cancel).await?;
        }
    }
    if run.options.grade_incumbents {
        for incumbent in selection::incumbents(services, run).await? {
            let submit = Submit::incumbent(run, incumbent);
            if submit.chosen.node_id != chosen.node_id && !is_done(&submit) {
                submit_one(services, run, &task, submit, cancel).await?;
            }
        }
    }
    Ok(())
}

/// Runs one program on the final data and commits its job, its submission and its grade.
async fn submit_one(
    services: &Services,
    run: &Run,
    task: &Task,
    submit: Submit,
    cancel: &CancellationToken,
) -> Result<()> {
    let (result, submission) = execute(services, run, task, &submit, cancel).await?;
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
    let Submit {
        chosen,
        role,
        repeat,
        submission_id,
        job_id,
        ..
    } = submit;
    if let Some(bytes) = submission {
        let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        let hash = services.store.put_blob(bytes).await?;
        let mut rows = Rows::new("bench.submissions")?;
        rows.push([
            ("submission_id", submission_id.clone().into()),
            ("run_id", run.run_id.clone().into()),
            ("node_id", chosen.node_id.clone().into()),
            ("task_id", run.task_id.clone().into()),
            ("job_id", job_id.into()),
            ("sha256", hash.into()),
            ("bytes", size.into()),
            ("created_at", Value::Timestamp(services.now())),
        ])?;
        txn.append("bench.submissions", rows);
    }
    let CandidateResult {
        state,
        score,
        detail,
        evaluation,
        ..
    } = result.candidate;
    let instances = evaluation.map(|evaluation| evaluation.instances).unwrap_or_default();
    let board = leaderboard(services, task).await?;
    let grade = GradeRow {
        submission_id,
        run_id: Some(run.run_id.clone()),
        node_id: Some(chosen.node_id),
        task_id: run.task_id.clone(),
        grade: Grade::of(state, score, detail, &board, task.row.higher_is_better).with_instances(instances),
        graded_at: Utc::now(),
        role: Some(role),
        repeat: Some(repeat),
        selection: chosen.by,
    };
    txn.append("bench.grades", grade.rows()?);
    txn.append("bench.instance_scores", grade.instance_rows()?);
    services.store.commit(txn).await?;
    Ok(())
}

/// Runs the program; a fault of the machine is tried again.
async fn execute(
    services: &Services,
    run: &Run,
    task: &Task,
    submit: &Submit,
    cancel: &CancellationToken,
) -> Result<(ProgramResult, Option<Vec<u8>>)> {
    let program = ProgramRun {
        job_id: submit.job_id.clone(),
        sandbox: &run.sandbox,
        code: &submit.chosen.code,
        split: &task.final_,
        self_reported: false,
        seed: submit.seed,
        seconds: run.options.final_timeout,
        evaluation_seconds: services.evaluation_limits.wall.as_secs_f64(),
        // The score that counts comes from a cold start, which no earlier job has touched.
        warm: false,
    };
    let mut tries = 1;
    loop {
        let mut submission = None;
        match run_program(services, program.clone(), cancel, Some(&mut submission)).await {
            Err(error) if error.class().is_retryable() && tries < run.options.attempt.max_tries => {
                let pause = retry::pause(error.class(), tries, None, submit.seed);
                warn!(run = %run.run_id, tries, %error, ?pause, "trying the final run again");
                tokio::select! {
                    () = tokio::time::sleep(pause) => tries += 1,
                    () = cancel.cancelled() => return Err(SchedulerError::Cancelled),
                }
            }
            outcome => return Ok((outcome?, submission)),
        }
    }
}

/// A grade that a run has.
#[derive(Debug)]
struct Graded {
    submission_id: String,
    node_id: String,
    /// Not the grade of a node that was only once the best.
    is_final: bool,
    selection: Option<String>,
}

async fn grades(services: &Services, run_id: &str) -> Result<Vec<Graded>> {
    let read = async || -> datafusion::error::Result<Vec<Graded>> {
        let parameters = [("run", ScalarValue::from(run_id))];
        let rows = services
            .queries
            .rows(include_str!("../../../sql/final/grades.sql"), &parameters, None, None)
            .await?;
        rows.iter()
            .map(|row| {
                let role = row.optional_text("role")?;
                Ok(Graded {
                    submission_id: row.text("submission_id")?,
                    node_id: row.text("node_id")?,
                    is_final: role.as_deref() != Some(GradeRole::Incumbent.as_str()),
                    selection: row.optional_text("selection")?,
                })
            })
            .collect()
    };
    read().await.map_err(SchedulerError::query("grades"))
}
