//! Group G, scores: the evaluator imports nothing of the candidate's, and its errors carry few hidden values.

use clade::sandbox::{ResultState, run_candidate};

use super::rows::{Column, Rows};
use super::words;
use crate::sandbox::support::token;
use crate::sandbox::task::{METRIC, Task};

#[tokio::test(flavor = "multi_thread")]
async fn g36_the_evaluator_imports_nothing_of_the_candidate() {
    let task = Task::new(METRIC);
    let mut rows = Rows::default();
    for backend in task.bench.every() {
        let result = run_candidate(&*backend, &*backend, task.candidate("traps"), &token())
            .await
            .unwrap();
        let log = result.job.as_ref().unwrap().stdout.text();
        assert_eq!(log, "the traps work\n", "in {}", backend.name());
        assert_eq!(result.score, Some(0.5), "{:?} in {}", result.detail, backend.name());
        let column = Column::of(backend.name());
        rows.see(
            column,
            "G36",
            "modules left beside the submission",
            &words::score(&result),
        );
        task.bench.finish(backend);
    }
    rows.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn g37_an_error_of_the_metric_carries_few_answers() {
    let talkative = "class TalkMetrics:\n    def evaluate(self, y_true, y_pred):\n        \
                     raise ValueError(' '.join(y_true['y']))\n";
    let task = Task::new(talkative);
    let rows_of_answers: String = (0..1000).map(|row| format!("{row},secret{row:04}\n")).collect();
    std::fs::write(&task.answers, format!("id,y\n{rows_of_answers}")).unwrap();
    let mut rows = Rows::default();
    for backend in task.bench.every() {
        let result = run_candidate(&*backend, &*backend, task.candidate("good"), &token())
            .await
            .unwrap();
        let detail = result.detail.unwrap();
        assert_eq!(result.state, ResultState::ScoringFailed, "{detail}");
        // The metric did try.
        let given = detail.matches("secret").count();
        assert!(
            (1..=50).contains(&given),
            "{given} of 1000 in {}: {detail}",
            backend.name()
        );
        rows.see(
            Column::of(backend.name()),
            "G37",
            "answers in the metric's error",
            "cut",
        );
        task.bench.finish(backend);
    }
    rows.check();
}
