//! Who conducts a run: one process at a time, and never twice within one.

use std::sync::Arc;

use clade::dialect::{Evolve, EvolveOptions};
use clade::engine::Engine;
use clade::suite::{SuiteRequest, resume, start};

use super::bed::{Bed, Reply};
use crate::engine::fixture::{number, rows, run_session, session, table};

/// Another process takes everything over, as it does when this one was stopped for longer than its lease.
async fn taken_over(engine: &Arc<Engine>, lease_until: i64) {
    let other = "elsewhere/boot/1/1";
    engine
        .store()
        .control(move |tx| {
            tx.execute(
                "UPDATE attempt_queue SET owner = ?1, lease_until = ?2, tries = tries + 1 WHERE state = 'claimed'",
                (other, lease_until),
            )?;
            tx.execute(
                "UPDATE run_leases SET owner = ?1, lease_until = ?2",
                (other, lease_until),
            )
        })
        .await
        .unwrap();
}

/// optuna #5470: a trial was marked as failed while it was alive, and its late result crashed the process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_result_is_a_row_and_no_crash() {
    let bed = Bed::new([Reply::Seeded, Reply::Hold, Reply::Seeded]);
    let engine = bed.create().await;
    let client = session(&engine);
    rows(
        &client,
        "EVOLVE TASK 'toy' WITH (steps => 5, workers => 1, seed => 1, id => 'r') ASYNC",
    )
    .await
    .unwrap();
    bed.model.holds().await;
    taken_over(&engine, i64::MAX).await;
    bed.model.let_go();
    engine.close().await;
    let late = table(&client, "SELECT status, late, error FROM evo.attempts WHERE late").await;
    assert!(late.contains("abandoned") && late.contains("came too late"), "{late}");
    // What the other process does with the run is its own affair.
    assert_eq!(number(&client, "SELECT count(*) FROM evo.nodes").await, 1);
    let touched = "SELECT count(*) FROM evo.runs WHERE status <> 'running'";
    assert_eq!(number(&client, touched).await, 0);
    let attempts = table(
        &client,
        "SELECT step, status, late, tries, error FROM evo.attempts ORDER BY step",
    )
    .await;
    let planned = "SELECT count(*) FROM evo.attempts WHERE NOT late";
    assert_eq!(number(&client, planned).await, 2, "{attempts}");
    let refused = table(&client, "RESUME RUN 'r'").await;
    assert!(refused.contains("is being conducted by process elsewhere"), "{refused}");

    // It dies as well.
    taken_over_and_lapsed(&engine).await;
    rows(&client, "RESUME RUN 'r'").await.unwrap();
    let ended = "SELECT count(*) FROM evo.runs WHERE status = 'finished' AND stop_reason = 'steps'";
    assert_eq!(number(&client, ended).await, 1);
    assert_eq!(number(&client, "SELECT count(DISTINCT step) FROM evo.nodes").await, 5);
    assert_eq!(number(&client, "SELECT max(step) FROM evo.nodes").await, 5);
    assert_eq!(number(&client, "SELECT count(*) FROM sandbox.leases").await, 0);
}

async fn taken_over_and_lapsed(engine: &Arc<Engine>) {
    engine
        .store()
        .control(|tx| {
            tx.execute("UPDATE attempt_queue SET lease_until = 1 WHERE state = 'claimed'", [])?;
            tx.execute("UPDATE run_leases SET lease_until = 1", [])
        })
        .await
        .unwrap();
}

/// OpenEvolve PR #24 and #27: every start added the first program again under a new id. Here a second start within one
/// process would plan the steps of the first once more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_conducted_is_not_conducted_twice() {
    let bed = Bed::new([Reply::Seeded, Reply::Hold, Reply::Seeded]);
    let engine = bed.create().await;
    rows(
        &session(&engine),
        "EVOLVE TASK 'toy' WITH (steps => 5, workers => 1, seed => 1, id => 'r') ASYNC",
    )
    .await
    .unwrap();
    bed.model.holds().await;
    let client = run_session(&engine, "r");
    for sql in [
        "RESUME RUN 'r'",
        "SELECT parent_id FROM policies.openmle_evo WHERE operator = 'improve' EXPAND WITH improve",
        "SELECT 'toy' AS task_id FROM run.nodes LIMIT 1 EXPAND WITH draft",
    ] {
        let answer = table(&client, sql).await;
        assert!(
            answer.contains("'r' is being conducted by this process already"),
            "{sql}: {answer}"
        );
    }
    bed.model.let_go();
    engine.close().await;
    assert_eq!(number(&client, "SELECT count(*) FROM evo.nodes").await, 5);
    assert_eq!(number(&client, "SELECT count(DISTINCT step) FROM evo.nodes").await, 5);
    // When it has ended, a statement may add to it, and another after that.
    for step in [6, 7] {
        rows(
            &client,
            "SELECT node_id AS parent_id FROM run.candidates ORDER BY step LIMIT 1 EXPAND WITH improve",
        )
        .await
        .unwrap();
        assert_eq!(number(&client, "SELECT max(step) FROM run.nodes").await, step);
    }
}

/// A suite's process that was stopped for longer than its lease goes on with nothing: the searches that wait are the other's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suite_that_was_taken_over_begins_and_writes_nothing_more() {
    let bed = Bed::new([Reply::Hold, Reply::Seeded]);
    let engine = bed.create().await;
    let client = session(&engine);
    let request = SuiteRequest {
        name: "s".to_owned(),
        definition: None,
        tasks: vec!["toy".to_owned()],
        repeats: 3,
        evolve: Evolve {
            task_id: String::new(),
            policy: None,
            model: None,
            sandbox: None,
            options: EvolveOptions {
                steps: Some(2),
                workers: Some(1),
                ..EvolveOptions::default()
            },
            is_async: false,
        },
        max_workers: None,
    };
    let (ended, ()) = tokio::join!(start(&client, request, &|_| {}), async {
        bed.model.holds().await;
        taken_over(&engine, i64::MAX).await;
        bed.model.let_go();
    });
    let error = ended.unwrap_err().to_string();
    assert!(
        error.starts_with("suite s was taken over by another process"),
        "{error}"
    );
    assert_eq!(number(&client, "SELECT count(*) FROM evo.runs").await, 1);
    let written = "SELECT (SELECT count(*) FROM bench.suite_runs WHERE status <> 'planned')
                   + (SELECT count(*) FROM bench.suites WHERE status <> 'running')";
    assert_eq!(number(&client, written).await, 0);
    let refused = resume(&client, "s", None, &|_| {}).await.unwrap_err().to_string();
    assert!(
        refused.starts_with("suite s is being conducted by process elsewhere/boot/1/1"),
        "{refused}"
    );
    let of_suite = "SELECT count(*) FROM sandbox.leases WHERE kind = 'suite' AND run_id IS NULL";
    assert_eq!(number(&client, of_suite).await, 1);
}

/// A run whose process died took the time that was worked on it, and not ever more until somebody resumes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_of_a_run_that_nobody_conducts_stands_still() {
    let bed = Bed::new([Reply::Hold, Reply::Seeded]);
    let engine = bed.create().await;
    let client = session(&engine);
    rows(&client, "EVOLVE TASK 'toy' WITH (steps => 1, id => 'r') ASYNC")
        .await
        .unwrap();
    bed.model.holds().await;
    taken_over(&engine, 1).await;
    engine.close().await;
    engine
        .store()
        .control(|tx| {
            tx.execute(
                "UPDATE budgets SET spent = 5.5 WHERE scope = 'r' AND resource = 'wall_seconds'",
                [],
            )
        })
        .await
        .unwrap();
    let shown = table(&client, "SHOW RUNS").await;
    assert!(shown.contains("interrupted") && shown.contains("5.5"), "{shown}");
}
