//! The engine keeps the plans of its queries: on a later snapshot they give what a new plan gives.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::util::pretty::pretty_format_batches;
use clade::policy::shipped;

use super::fixture::{Fixture, rows, run_session, session, table};

/// Rows in an order of their own: a query without ORDER BY promises none.
fn lines(batches: &[RecordBatch]) -> Vec<String> {
    let text = pretty_format_batches(batches).unwrap().to_string();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_plan_reads_the_snapshot_it_is_executed_on() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let queries = &engine.scheduler().services().queries;
    let empty = engine.store().snapshot(None).await.unwrap();
    let client = session(&engine);
    rows(
        &client,
        "EVOLVE TASK 'toy' WITH (steps => 40, seed => 5, grade => false)",
    )
    .await
    .unwrap();
    let runs = rows(&client, "SELECT run_id FROM evo.runs").await.unwrap();
    let run = arrow::array::AsArray::as_string::<i32>(runs[0].column(0))
        .value(0)
        .to_owned();
    let mut changed = 0;
    let analyst = run_session(&engine, &run);
    for policy in shipped() {
        let kept = async |at| queries.rows(policy.sql, &[], Some(&run), at).await.unwrap();
        // The plan is made where the run has no node at all.
        let before = lines(kept(Some(Arc::clone(&empty))).await.batches());
        let (one, other) = tokio::join!(kept(None), kept(None));
        let anew = lines(
            &rows(&analyst, &format!("SELECT * FROM policies.{}", policy.name))
                .await
                .unwrap(),
        );
        assert!(!anew.is_empty(), "{}", policy.name);
        assert_eq!(lines(one.batches()), anew, "{}", policy.name);
        assert_eq!(lines(other.batches()), anew, "{}: two at once", policy.name);
        assert_eq!(
            lines(kept(Some(Arc::clone(&empty))).await.batches()),
            before,
            "{}",
            policy.name
        );
        changed += usize::from(before != anew);
    }
    assert_eq!(changed, shipped().len());
    // What is computed when it is read is not kept either.
    let spent = "SELECT resource, spent FROM system.budgets ORDER BY scope, resource";
    let first = pretty_format_batches(queries.rows(spent, &[], None, None).await.unwrap().batches())
        .unwrap()
        .to_string();
    rows(
        &client,
        "EVOLVE TASK 'toy' WITH (steps => 3, seed => 6, grade => false)",
    )
    .await
    .unwrap();
    let second = pretty_format_batches(queries.rows(spent, &[], None, None).await.unwrap().batches())
        .unwrap()
        .to_string();
    assert_ne!(first, second);
    assert_eq!(second, table(&client, spent).await);
}
