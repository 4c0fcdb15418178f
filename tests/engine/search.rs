//! Searches: the same seed gives the same nodes, budgets hold, a killed or drained run goes on where it was.

use std::sync::atomic::Ordering;

use clade::engine::OpenMode;

use super::fixture::{Fixture, number, rows, session, table};
use super::instant::{Instant, Scripted};

const FINGERPRINT: &str = "SELECT n.step, n.generation, n.operator, n.code_hash, n.status, n.score, p.step AS parent_step, q.step AS parent2_step,
        n.family_count_before, n.admitted, n.delta_vs_parent
 FROM evo.nodes n LEFT JOIN evo.nodes p ON p.node_id = n.parent_id LEFT JOIN evo.nodes q ON q.node_id = n.parent2_id
 ORDER BY n.step";

async fn search(workers: u32, mode: &str, seed: u32, shuffle: bool) -> String {
    let fixture = Fixture::with(
        Scripted::default(),
        Instant {
            shuffle,
            ..Instant::default()
        },
    );
    let engine = fixture.create().await;
    let session = session(&engine);
    // Without an id: every run has ids of its own, and they must not decide anything.
    let sql = format!("EVOLVE TASK 'toy' WITH (steps => 40, workers => {workers}, seed => {seed}, mode => '{mode}')");
    rows(&session, &sql).await.unwrap();
    assert_eq!(number(&session, "SELECT count(*) FROM evo.nodes").await, 40);
    table(&session, FINGERPRINT).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn generation_mode_gives_the_same_nodes_whatever_the_workers() {
    let one = search(1, "generation", 7, false).await;
    assert_eq!(one, search(4, "generation", 7, true).await);
    assert_ne!(one, search(4, "generation", 8, true).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn async_mode_with_one_worker_gives_the_same_nodes() {
    assert_eq!(search(1, "async", 7, false).await, search(1, "async", 7, false).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_finished_graded_and_its_budgets_are_exact() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let session = session(&engine);
    rows(
        &session,
        "EVOLVE TASK 'toy' WITH (steps => 25, workers => 3, seed => 1, id => 'r')",
    )
    .await
    .unwrap();
    assert_eq!(
        number(
            &session,
            "SELECT count(*) FROM evo.runs WHERE status = 'finished' AND stop_reason = 'steps'"
        )
        .await,
        1
    );
    assert_eq!(
        number(
            &session,
            "SELECT count(*) FROM bench.grades WHERE run_id = 'r' AND valid AND medal IS NOT NULL"
        )
        .await,
        1
    );
    assert_eq!(
        number(&session, "SELECT count(*) FROM evo.attempts WHERE status <> 'done'").await,
        0
    );
    assert_eq!(
        number(
            &session,
            "SELECT count(*) FROM evo.statements WHERE status = 'done' AND attempts = 25"
        )
        .await,
        1
    );
    let spent = "SELECT CAST(spent AS BIGINT) FROM system.budgets WHERE scope = 'r' AND resource = ";
    assert_eq!(number(&session, &format!("{spent}'steps'")).await, 25);
    let jobs = number(&session, "SELECT count(*) FROM sandbox.jobs WHERE split = 'validation'").await;
    assert_eq!(number(&session, &format!("{spent}'jobs'")).await, jobs);
    assert_eq!(
        number(&session, "SELECT count(*) FROM system.budgets WHERE reserved > 0").await,
        0
    );
    assert_eq!(number(&session, "SELECT count(*) FROM sandbox.leases").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_budget_stops_the_run_and_is_never_overspent() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let session = session(&engine);
    rows(
        &session,
        "EVOLVE TASK 'toy' WITH (steps => 40, workers => 4, seed => 3, max_jobs => 7, id => 'r')",
    )
    .await
    .unwrap();
    assert_eq!(
        number(&session, "SELECT count(*) FROM sandbox.jobs WHERE split = 'validation'").await,
        7
    );
    assert_eq!(
        number(
            &session,
            "SELECT count(*) FROM evo.runs WHERE stop_reason = 'jobs' AND status = 'finished'"
        )
        .await,
        1
    );
    assert_eq!(number(&session, "SELECT count(*) FROM sandbox.leases").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_of_the_provider_are_tried_again_and_use_no_step() {
    let fixture = Fixture::with(
        Scripted {
            faults_before_success: 3,
            ..Scripted::default()
        },
        Instant::default(),
    );
    let engine = fixture.create().await;
    let session = session(&engine);
    rows(
        &session,
        "EVOLVE TASK 'toy' WITH (steps => 5, workers => 1, seed => 3, id => 'r')",
    )
    .await
    .unwrap();
    assert_eq!(number(&session, "SELECT count(*) FROM evo.nodes").await, 5);
    assert_eq!(fixture.model.calls.load(Ordering::SeqCst), 8);
    assert_eq!(number(&session, "SELECT max(tries) FROM evo.attempts").await, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drained_run_resumes_and_ends_as_if_nothing_had_happened() {
    let whole = search(1, "generation", 11, false).await;
    let fixture = Fixture::shuffled();
    let engine = fixture.create().await;
    let client = session(&engine);
    let sql = "EVOLVE TASK 'toy' WITH (steps => 40, workers => 3, seed => 11, mode => 'generation', id => 'r') ASYNC";
    rows(&client, sql).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(120)).await;
    engine.scheduler().kill();
    engine.close().await;
    let done = number(&client, "SELECT count(*) FROM evo.nodes").await;
    assert!(done < 40, "the kill came too late to test anything");
    drop((client, engine));
    let engine = fixture.open(OpenMode::Existing).await.unwrap();
    let client = session(&engine);
    rows(&client, "RESUME RUN 'r'").await.unwrap();
    assert_eq!(table(&client, FINGERPRINT).await, whole);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_does_not_exist_cannot_be_resumed() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let session = session(&engine);
    assert_eq!(
        table(&session, "RESUME RUN 'nope'").await,
        "error: there is no run 'nope': this store has none yet"
    );
}

async fn on_a_machine_that_loses(jobs: usize) -> (Fixture, std::sync::Arc<clade::engine::Engine>) {
    let fixture = Fixture::with(
        Scripted::default(),
        Instant {
            unconfirmed_before_success: jobs,
            ..Instant::default()
        },
    );
    let engine = fixture.create().await;
    let sql = "EVOLVE TASK 'toy' WITH (steps => 12, workers => 1, seed => 1)";
    rows(&session(&engine), sql).await.unwrap();
    (fixture, engine)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_could_not_be_confirmed_is_run_again_and_takes_no_step() {
    let (_fixture, engine) = on_a_machine_that_loses(3).await;
    let session = session(&engine);
    let nodes = "SELECT count(*) FROM evo.nodes";
    assert_eq!(number(&session, nodes).await, 12);
    let lost = "SELECT count(*) FROM evo.nodes WHERE status = 'sandbox_unconfirmed'";
    assert_eq!(number(&session, lost).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_can_run_nothing_stops_the_search() {
    let (_fixture, engine) = on_a_machine_that_loses(usize::MAX).await;
    let session = session(&engine);
    let run = table(&session, "SELECT status, steps_done, error FROM evo.runs").await;
    for part in ["failed", "5 attempts in a row failed", "no user namespace"] {
        assert!(run.contains(part), "{run}");
    }
    let lost = "SELECT count(*) FROM evo.nodes WHERE status = 'sandbox_unconfirmed' AND error_class = 'infra'";
    assert_eq!(number(&session, lost).await, 5);
}
