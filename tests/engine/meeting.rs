//! Runs and statements that meet: an EXPAND adds to a run, nobody works on a run or statement twice, and what ends leaves nothing
//! in the queue.

use std::sync::Arc;

use clade::engine::Engine;

use super::fixture::{Fixture, add_task, number, rows, run_session, session, table};

const IMPROVE: &str = "SELECT parent_id FROM policies.openmle_evo WHERE operator = 'improve' ORDER BY weight DESC LIMIT 2 EXPAND WITH improve";

/// A run as its row and its budgets show it.
async fn row_of_run(engine: &Arc<Engine>) -> String {
    let client = session(engine);
    let run =
        "SELECT status, steps_done, best_node_id, best_score, final_node_id, stop_reason, finished_at FROM evo.runs";
    let budgets = "SELECT resource, spent, reserved FROM system.budgets WHERE scope = 'r' ORDER BY resource";
    let grade = "SELECT node_id, score FROM bench.grades";
    format!(
        "{}\n{}\n{}",
        table(&client, run).await,
        table(&client, budgets).await,
        table(&client, grade).await
    )
}

async fn nothing_is_held(engine: &Arc<Engine>) {
    let client = session(engine);
    assert_eq!(number(&client, "SELECT count(*) FROM sandbox.leases").await, 0);
    let reserved = "SELECT count(*) FROM system.budgets WHERE reserved > 0";
    assert_eq!(number(&client, reserved).await, 0);
    let planned = "SELECT count(*) FROM evo.attempts WHERE status = 'planned'";
    assert_eq!(number(&client, planned).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expand_adds_to_a_finished_run_and_leaves_its_row_as_it_was() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let evolve = "EVOLVE TASK 'toy' WITH (steps => 10, workers => 1, seed => 1, id => 'r')";
    rows(&session(&engine), evolve).await.unwrap();
    let before = row_of_run(&engine).await;
    let client = run_session(&engine, "r");
    rows(&client, IMPROVE).await.unwrap();
    assert_eq!(number(&client, "SELECT count(*) FROM run.nodes").await, 12);
    assert_eq!(
        number(&client, "SELECT count(DISTINCT step) FROM run.nodes WHERE step <= 12").await,
        12
    );
    assert_eq!(row_of_run(&engine).await, before);
    nothing_is_held(&engine).await;

    add_task(&engine, "other").await;
    let foreign = table(&client, "SELECT 'other' AS task_id EXPAND WITH draft").await;
    assert!(
        foreign.contains("it is of task 'other', but the session's run 'r' is of task 'toy'"),
        "{foreign}"
    );
    nothing_is_held(&engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_was_added_to_still_makes_its_own_steps() {
    let fixture = Fixture::shuffled();
    let engine = fixture.create().await;
    let client = run_session(&engine, "r");
    let evolve = "EVOLVE TASK 'toy' WITH (steps => 60, workers => 2, seed => 3, id => 'r') ASYNC";
    rows(&client, evolve).await.unwrap();
    let improvable = "SELECT count(*) FROM policies.openmle_evo WHERE operator = 'improve'";
    while number(&client, improvable).await == 0 {}
    engine.scheduler().kill();
    engine.scheduler().idle().await;
    let made = number(&client, "SELECT count(*) FROM run.nodes").await;
    assert!(made < 60, "the kill came too late to test anything");
    rows(&client, IMPROVE).await.unwrap();
    let added = number(&client, "SELECT count(*) FROM run.nodes").await - made;
    assert!(added > 0);
    rows(&client, "RESUME RUN 'r'").await.unwrap();
    assert_eq!(number(&client, "SELECT count(*) FROM run.nodes").await, 60 + added);
    assert_eq!(
        number(&client, "SELECT count(DISTINCT step) FROM run.nodes").await,
        60 + added
    );
    assert_eq!(number(&client, "SELECT steps_done FROM evo.runs").await, 60);
    let spent = "SELECT CAST(spent AS BIGINT) FROM system.budgets WHERE scope = 'r' AND resource = 'steps'";
    assert_eq!(number(&client, spent).await, 60);
    nothing_is_held(&engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_works_on_a_run_or_statement_twice() {
    let fixture = Fixture::shuffled();
    let engine = fixture.create().await;
    let client = session(&engine);
    let evolve = "EVOLVE TASK 'toy' WITH (steps => 100000, workers => 1, seed => 1, id => 'r') ASYNC";
    let draft =
        "SELECT 'toy' AS task_id EXPAND WITH draft (samples => 5000, concurrency => 1, seed => 2, id => 'e') ASYNC";
    rows(&client, evolve).await.unwrap();
    rows(&client, draft).await.unwrap();
    let joining = run_session(&engine, "r");
    for (session, sql, id) in [
        (&client, evolve, "'r'"),
        (&client, "RESUME RUN 'r'", "'r'"),
        (&client, draft, "'e'"),
        (&joining, "SELECT 'toy' AS task_id EXPAND WITH draft", "'r'"),
    ] {
        let answer = table(session, sql).await;
        assert!(
            answer.contains(&format!("{id} is being conducted by this process already")),
            "{sql}: {answer}"
        );
    }
    let leases = "SELECT count(*) FROM sandbox.leases WHERE kind = 'run' AND is_live";
    assert_eq!(
        number(&client, leases).await,
        1,
        "a refused statement takes no lease away"
    );
    rows(&client, "CANCEL RUN 'r'").await.unwrap();
    engine.scheduler().kill();
    engine.scheduler().idle().await;
    let known = table(&client, &evolve.replace(" ASYNC", "")).await;
    assert!(known.contains("there is a run 'r' already"), "{known}");
    let other = table(&client, "SELECT 'toy' AS task_id EXPAND WITH draft (id => 'r')").await;
    assert!(other.contains("there is another statement 'r' already"), "{other}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wall_budget_ends_a_run_and_a_statement_and_leaves_nothing_in_the_queue() {
    let fixture = Fixture::shuffled();
    let engine = fixture.create().await;
    let client = session(&engine);
    rows(
        &client,
        "EVOLVE TASK 'toy' WITH (steps => 3000, workers => 1, seed => 1, mode => 'generation', generation_size => 3000,
             max_wall => 4, id => 'r')",
    )
    .await
    .unwrap();
    let ended = "SELECT count(*) FROM evo.runs WHERE status = 'finished' AND stop_reason = 'wall_seconds'
                 AND steps_done < 3000 AND final_node_id IS NOT NULL";
    assert_eq!(number(&client, ended).await, 1);
    nothing_is_held(&engine).await;

    let draft = "SELECT 'toy' AS task_id EXPAND WITH draft (samples => 3000, concurrency => 1, seed => 2, max_wall => 0.3, id => 'e')";
    rows(&client, draft).await.unwrap();
    let ended = "SELECT count(*) FROM evo.statements WHERE statement_id = 'e' AND status = 'failed'
                 AND error = 'the wall budget of the statement is used up'";
    assert_eq!(number(&client, ended).await, 1);
    let booked = "SELECT count(*) FROM system.budgets WHERE scope = 'e' AND resource = 'wall_seconds' AND spent >= 0.3";
    assert_eq!(number(&client, booked).await, 1);
    nothing_is_held(&engine).await;
}
