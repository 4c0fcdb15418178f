//! The final selection by both protocols, runs on the final data more than once, and the grades of incumbents.

use clade::engine::OpenMode;

use crate::engine::fixture::{Fixture, add_task, instant, number, open_store, rows, session, table};
use crate::engine::instant::{Instant, Scripted};

/// A store whose programs print the opposite of the score they get.
fn boasting() -> Fixture {
    Fixture::with(
        Scripted::default(),
        Instant {
            reports_opposite: true,
            ..Instant::default()
        },
    )
}

const SEARCH: &str = "EVOLVE TASK 'toy' WITH (steps => 20, workers => 1, seed => 5, id => 'r'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_protocol_goes_by_its_own_score() {
    for (protocol, extreme) in [("evaluator", "max"), ("self_reported", "min")] {
        let fixture = boasting();
        let engine = fixture.create().await;
        let session = session(&engine);
        rows(&session, &format!("{SEARCH}, final_selection => '{protocol}')"))
            .await
            .unwrap();
        let chosen = format!(
            "SELECT count(*) FROM evo.runs r JOIN evo.nodes n ON n.node_id = r.final_node_id
             WHERE n.score = (SELECT {extreme}(score) FROM evo.nodes WHERE status = 'success')"
        );
        assert_eq!(number(&session, &chosen).await, 1, "{protocol}");
        let grade = table(&session, "SELECT role, repeat, selection FROM bench.grades").await;
        assert!(grade.contains(&format!("| final | 1      | {protocol}")), "{grade}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_evaluator_is_the_default_and_a_run_without_a_score_is_drawn() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let session = session(&engine);
    // Programs of this model print nothing of themselves.
    rows(&session, &format!("{SEARCH}, final_selection => 'self_reported')"))
        .await
        .unwrap();
    let drawn = "SELECT count(*) FROM bench.grades WHERE selection = 'draw'";
    assert_eq!(number(&session, drawn).await, 1);
    rows(
        &session,
        "EVOLVE TASK 'toy' WITH (steps => 9, workers => 1, seed => 5, id => 'd')",
    )
    .await
    .unwrap();
    let default = "SELECT count(*) FROM bench.grades WHERE run_id = 'd' AND selection = 'evaluator'";
    assert_eq!(number(&session, default).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_chosen_program_is_run_as_often_as_asked_and_the_first_counts() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let session = session(&engine);
    rows(&session, &format!("{SEARCH}, submit_repeats => 3)"))
        .await
        .unwrap();
    for (count, sql) in [
        (3, "SELECT count(*) FROM bench.grades WHERE role = 'final' AND valid"),
        (3, "SELECT count(DISTINCT repeat) FROM bench.grades"),
        (3, "SELECT count(*) FROM bench.submissions"),
        (3, "SELECT count(*) FROM sandbox.jobs WHERE split = 'final'"),
        (1, "SELECT count(*) FROM bench.report"),
        (3, "SELECT submissions FROM bench.report"),
        (
            1,
            "SELECT count(*) FROM bench.report r JOIN bench.grades g ON g.graded_at = r.graded_at WHERE g.repeat = 1",
        ),
        (
            1,
            "SELECT count(*) FROM bench.report WHERE mean_test_score = test_score AND std_test_score = 0",
        ),
    ] {
        assert_eq!(number(&session, sql).await, count, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn incumbents_are_graded_on_request_and_the_curve_ends_with_the_final_node() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let session = session(&engine);
    rows(&session, &format!("{SEARCH}, grade_incumbents => true)"))
        .await
        .unwrap();
    let incumbents = number(
        &session,
        "SELECT count(*) FROM evo.board_score_history WHERE is_incumbent",
    )
    .await;
    assert!(incumbents > 1);
    for (count, sql) in [
        (incumbents, "SELECT count(*) FROM bench.grades"),
        (
            incumbents - 1,
            "SELECT count(*) FROM bench.grades WHERE role = 'incumbent'",
        ),
        (
            incumbents,
            "SELECT count(*) FROM bench.medal_curve WHERE test_medal = validation_medal",
        ),
        (1, "SELECT count(*) FROM bench.report"),
        (
            1,
            "SELECT count(*) FROM (SELECT node_id FROM bench.medal_curve ORDER BY step DESC LIMIT 1) c
             JOIN bench.report r ON r.node_id = c.node_id",
        ),
        (
            0,
            "SELECT count(*) FROM (SELECT sandbox_seconds - lag(sandbox_seconds) OVER (ORDER BY step) AS more
             FROM bench.medal_curve) c WHERE more < 0",
        ),
    ] {
        assert_eq!(number(&session, sql).await, count, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fault_after_the_first_run_leaves_the_grade() {
    let sandbox = std::sync::Arc::new(Instant {
        final_jobs: Some(1),
        ..Instant::default()
    });
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let models = vec![std::sync::Arc::new(Scripted::default()) as _];
    let settings = ["search.max_tries=1"];
    let engine = open_store(&store, &settings, models, instant(sandbox), OpenMode::Create)
        .await
        .unwrap();
    add_task(&engine, "toy").await;
    let session = session(&engine);
    rows(&session, &format!("{SEARCH}, submit_repeats => 3)"))
        .await
        .unwrap();
    let run = table(
        &session,
        "SELECT status, error FROM evo.runs WHERE final_node_id IS NOT NULL",
    )
    .await;
    assert!(run.contains("finished") && run.contains("final run: "), "{run}");
    assert_eq!(
        number(&session, "SELECT count(*) FROM bench.grades WHERE valid").await,
        1
    );
}
