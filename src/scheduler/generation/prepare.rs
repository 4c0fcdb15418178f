//! The prompt of an attempt: facts of the store, rendered within the attempt's budget of tokens.

use std::sync::Arc;

use datafusion::common::ScalarValue;

use crate::gym::{DataOverview, Task};
use crate::operators::{
    BoardFacts, ContextNode, FamilyFacts, LimitFacts, Operator, Prompt, PromptFacts, SkillTexts, TaskFacts, board_sql,
    describe_changes,
};
use crate::scheduler::attempt::Attempt;
use crate::scheduler::error::{Result, SchedulerError};
use crate::scheduler::services::Services;

/// The prompt that an attempt sends, for the nodes of its context.
///
/// # Errors
/// When the store or the public files cannot be read, or the prompt does not render within its budget.
pub async fn prompt(
    services: &Services,
    attempt: &Attempt,
    operator: Operator,
    task: &Task,
    nodes: &[ContextNode],
) -> Result<Prompt> {
    let counter = services.models.get(&attempt.model).await?.token_counter().await?;
    let mut nodes = nodes.to_vec();
    describe_changes(&mut nodes, operator.arity());
    let facts = PromptFacts {
        task: TaskFacts::of(&task.row),
        limits: LimitFacts::of(
            &services.candidate_limits,
            attempt.settings.timeout_seconds,
            &attempt.sandbox,
            task.row.submission,
        ),
        budget: attempt.prompt_budget,
        packages: services.interpreter.packages().await.clone(),
        data: DataOverview::clone(&*services.overview(task).await?),
        board: match operator {
            Operator::Improve => board(services, attempt).await?,
            _ => BoardFacts::default(),
        },
        skills: SkillTexts::default(),
        guidance: true,
        nodes,
    };
    let budget = attempt.settings.prompt_tokens;
    Ok(services.prompts.render(operator, facts, budget, &counter)?)
}

/// Where the attempt's search stood when it was planned.
async fn board(services: &Services, attempt: &Attempt) -> Result<BoardFacts> {
    let failed = || SchedulerError::query("the board");
    let snapshot = services.store.snapshot(Some(attempt.snapshot_id)).await?;
    let parameters = [
        ("run_id", ScalarValue::Utf8(attempt.run_id.clone())),
        ("task_id", ScalarValue::from(attempt.task_id.as_str())),
    ];
    let rows = services
        .queries
        .rows(board_sql(), &parameters, None, Some(Arc::clone(&snapshot)))
        .await
        .map_err(failed())?;
    let read = || -> datafusion::error::Result<BoardFacts> {
        let mut board = BoardFacts::default();
        for row in rows.iter() {
            let family = FamilyFacts {
                method_family: row.text("method_family")?,
                nodes: row.int("nodes")?,
                good: row.int("good")?,
                best_score: row.optional_float("best_score")?,
            };
            if board.families.is_empty() && family.best_score.is_some() {
                board.best_score = family.best_score;
                board.best_family = Some(family.method_family.clone());
                board.best_step = row.optional_int("best_step")?;
            }
            if row.bool("is_underexplored")? {
                board.underexplored.push(family.method_family.clone());
            }
            board.steps = board.steps.max(row.int("last_step")?);
            board.families.push(family);
        }
        Ok(board)
    };
    read().map_err(failed())
}
