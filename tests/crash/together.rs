//! Two searches and two analysts on one store at once.

use std::sync::Arc;

use clade::engine::{Engine, OpenMode};

use super::invariants;
use super::process::{Orders, Process, open, orders};
use crate::engine::fixture::{Fixture, number, rows, session, table};

const STEPS: i64 = 40;

fn evolve(run_id: &str, seed: u32) -> String {
    format!(
        "EVOLVE TASK 'toy' WITH (steps => {STEPS}, workers => 2, seed => {seed}, mode => 'generation', id => '{run_id}')"
    )
}

/// Reads until the runs have ended; gives how often it looked while they worked.
async fn analyse(engine: &Arc<Engine>, runs: &[&str]) -> usize {
    let client = session(engine);
    let list: Vec<String> = runs.iter().map(|run| format!("'{run}'")).collect();
    let list = list.join(", ");
    let ended = format!("SELECT count(*) FROM evo.runs WHERE run_id IN ({list}) AND status = 'finished'");
    let (mut looks, mut nodes) = (0, 0);
    while number(&client, &ended).await < runs.len() as i64 {
        invariants::always(engine).await;
        let now = number(&client, "SELECT count(*) FROM evo.nodes").await;
        assert!(now >= nodes, "{nodes} nodes became {now}");
        for sql in [
            "SELECT * FROM evo.best",
            "SELECT operator, avg(score) FROM evo.nodes GROUP BY 1",
        ] {
            let answer = table(&client, sql).await;
            assert!(!answer.starts_with("error"), "{answer}");
        }
        (looks, nodes) = (looks + 1, now);
    }
    looks
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "other tests start it as a process of its own"]
async fn reading_process() {
    let Some(Orders { engine, run_id, .. }) = orders(OpenMode::ReadOnly).await else {
        return;
    };
    let runs: Vec<&str> = run_id.split(',').collect();
    assert!(analyse(&engine, &runs).await > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searches_and_analysts_share_a_store_and_change_nothing_for_each_other() {
    let serial = Fixture::new();
    let engine = serial.create().await;
    let mut expected = Vec::new();
    for (run_id, seed) in [("one", 7), ("two", 8)] {
        rows(&session(&engine), &evolve(run_id, seed)).await.unwrap();
        expected.push(invariants::fingerprint(&engine, run_id).await);
    }
    assert_ne!(expected[0], expected[1]);

    let shared = Fixture::new();
    shared.create().await.close().await;
    let store = shared.store();
    let mut processes = vec![
        Process::reading(&store, "one,two"),
        Process::searching(&store, "one", &evolve("one", 7)),
        Process::searching(&store, "two", &evolve("two", 8)),
    ];
    assert!(processes[0].wait_ready());
    let reader = open(&store, OpenMode::ReadOnly).await;
    assert!(analyse(&reader, &["one", "two"]).await > 0);
    processes.into_iter().for_each(Process::finish);
    for (run_id, expected) in ["one", "two"].into_iter().zip(expected) {
        invariants::ended(&reader, run_id, STEPS).await;
        assert_eq!(invariants::fingerprint(&reader, run_id).await, expected);
    }
}
