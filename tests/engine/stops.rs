//! Work that is ended from outside: by a wall budget, and by CANCEL RUN while a statement adds to the run.

use super::fixture::{number, rows, run_session, session, table};
use crate::peers::bed::{Bed, Reply};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wall_budget_ends_what_is_in_flight_and_the_run_is_graded() {
    let bed = Bed::new([Reply::Seeded, Reply::Seeded, Reply::Seeded, Reply::Hold]);
    let engine = bed.create().await;
    let client = session(&engine);
    // Nobody lets go: without the budget it would never end.
    let sql = "EVOLVE TASK 'toy' WITH (steps => 9, workers => 1, seed => 1, max_wall => '500 ms', id => 'r')";
    rows(&client, sql).await.unwrap();
    let run = table(&client, "SELECT status, stop_reason, steps_done FROM evo.runs").await;
    assert!(run.contains("finished") && run.contains("wall_seconds"), "{run}");
    assert_eq!(number(&client, "SELECT count(*) FROM evo.nodes").await, 3);
    assert_eq!(number(&client, "SELECT count(*) FROM bench.grades").await, 1);
    assert_eq!(number(&client, "SELECT count(*) FROM sandbox.leases").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancel_reaches_the_statement_that_adds_to_a_run() {
    let bed = Bed::new([Reply::Seeded, Reply::Seeded, Reply::Hold, Reply::Hold]);
    let engine = bed.create().await;
    let sql = "EVOLVE TASK 'toy' WITH (steps => 9, workers => 1, seed => 1, id => 'r') ASYNC";
    rows(&session(&engine), sql).await.unwrap();
    bed.model.holds().await;
    engine.scheduler().kill();
    engine.scheduler().idle().await;
    let client = run_session(&engine, "r");
    let status = "SELECT status FROM evo.runs";
    assert!(table(&client, status).await.contains("interrupted"));

    let add = "SELECT 'toy' AS task_id EXPAND WITH draft (id => 'e') ASYNC";
    rows(&client, add).await.unwrap();
    bed.model.holds().await;
    rows(&session(&engine), "CANCEL RUN 'r'").await.unwrap();
    engine.scheduler().idle().await;
    assert!(table(&client, status).await.contains("cancelled"));
    let statement = table(
        &client,
        "SELECT status, error FROM evo.statements WHERE statement_id = 'e'",
    )
    .await;
    assert!(statement.contains("run 'r' was cancelled"), "{statement}");
    assert_eq!(number(&client, "SELECT count(*) FROM sandbox.leases").await, 0);
    assert_eq!(number(&client, "SELECT count(*) FROM evo.nodes").await, 2);
}
