//! Import of a task whose instances have published results: its evaluator must run, and must know the instances.

use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use crate::gym::checks::{Check, METRIC};
use crate::gym::error::{GymError, io};
use crate::gym::import::{Import, evaluate, over_time};
use crate::gym::rows::Instance;
use crate::gym::stage::Staged;

/// Check of the evaluator.
const CHECK: &str = "evaluator";

/// Bytes of an archive that holds nothing.
const EMPTY_ARCHIVE: [u8; 1024] = [0; 1024];

/// Why such a task has no validation split.
pub const NO_SPLIT: &str =
    "the data has a layout of its own, so no split of it is derived; the hidden answers are for grading";

/// Notes the instances of a task.
pub fn check_instances(instances: &[Instance], left_out: &[String]) -> Check {
    let names: Vec<&str> = instances.iter().map(|instance| instance.instance.as_str()).collect();
    let found = format!("published results for {}", names.join(", "));
    if left_out.is_empty() {
        Check::passed("instances", found)
    } else {
        Check::warning("instances", format!("{found}; left out: {}", left_out.join(", ")))
    }
}

/// Runs the evaluator on an empty output folder. It must report every instance, none of them with a score. Gives the direction of
/// the task's score, or what was said instead of it.
pub async fn check_evaluator(
    staged: &mut Staged,
    import: &Import,
    cancel: &CancellationToken,
) -> Result<Result<bool, Option<String>>, GymError> {
    let root = staged.dir.path().to_owned();
    let limit = import.metric_limits.wall.as_secs_f64();
    import.progress.say(&format!(
        "{}: running evaluation/evaluator.py on an empty output, at most {limit} s",
        staged.task_id
    ));
    let empty: PathBuf = root.join("empty_output.tar");
    std::fs::write(&empty, EMPTY_ARCHIVE).map_err(io("write", &empty))?;
    let answers = vec![root.join("data/private")];
    let evaluation = evaluate(&root, answers, &empty, import, cancel, &staged.task_id).await?;
    std::fs::remove_file(&empty).map_err(io("remove", &empty))?;
    let said = || {
        evaluation
            .detail
            .clone()
            .unwrap_or_else(|| evaluation.state.as_str().to_owned())
    };
    let scored: Vec<&str> = evaluation
        .instances
        .iter()
        .filter(|(_, score)| score.is_some())
        .map(|(name, _)| name.as_str())
        .collect();
    staged
        .checks
        .push(if let Some(reason) = over_time(&evaluation, import) {
            Check::failed(CHECK, reason)
        } else if evaluation.instances.is_empty() {
            Check::failed(
                CHECK,
                format!("it does not run in this Python, as {METRIC} calls it: {}", said()),
            )
        } else if scored.is_empty() {
            Check::passed(
                CHECK,
                "it runs, knows the instances, and gives an empty output no score",
            )
        } else {
            Check::failed(
                CHECK,
                format!("it gives a score to an empty output: {}", scored.join(", ")),
            )
        });
    Ok(evaluation.higher_is_better.ok_or(evaluation.detail))
}
