//! What must hold on a store at every moment, and at the end of its runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::AsArray;
use clade::engine::{Engine, Session};

use crate::engine::fixture::{number, rows, session, table};
use crate::engine::metered::TOKENS;

/// Queries that find what must not exist. Each sees one snapshot, so they hold while others write.
const ALWAYS_EMPTY: [(&str, &str); 11] = [
    (
        "nodes that are there twice",
        "SELECT node_id FROM evo.nodes GROUP BY 1 HAVING count(*) > 1",
    ),
    (
        "steps that are there twice",
        "SELECT run_id, step FROM evo.nodes GROUP BY 1, 2 HAVING count(*) > 1",
    ),
    (
        "nodes without their finished attempt",
        "SELECT n.node_id FROM evo.nodes n LEFT JOIN evo.attempts a
             ON a.attempt_id = n.attempt_id AND a.node_id = n.node_id AND a.status = 'done'
         WHERE a.attempt_id IS NULL",
    ),
    (
        "finished attempts without their node",
        "SELECT a.attempt_id FROM evo.attempts a LEFT JOIN evo.nodes n ON n.attempt_id = a.attempt_id
         WHERE a.status = 'done' AND n.node_id IS NULL",
    ),
    (
        "nodes without a generation",
        "SELECT n.node_id FROM evo.nodes n LEFT JOIN evo.generations g ON g.attempt_id = n.attempt_id
         WHERE g.generation_id IS NULL",
    ),
    (
        "nodes without their job",
        "SELECT n.node_id FROM evo.nodes n LEFT JOIN sandbox.jobs j ON j.job_id = n.job_id
         WHERE j.job_id IS NULL AND n.duplicate_of IS NULL AND n.code IS NOT NULL",
    ),
    (
        "jobs without their node",
        "SELECT j.job_id FROM sandbox.jobs j LEFT JOIN evo.nodes n ON n.job_id = j.job_id
         WHERE j.split = 'validation' AND n.node_id IS NULL",
    ),
    (
        "parents without an edge",
        "SELECT n.node_id FROM (SELECT node_id, parent_id AS parent FROM evo.nodes
                                UNION ALL SELECT node_id, parent2_id FROM evo.nodes) n
         LEFT JOIN evo.edges e ON e.child_id = n.node_id AND e.parent_id = n.parent
         WHERE n.parent IS NOT NULL AND e.child_id IS NULL",
    ),
    (
        "edges that are there twice or lead nowhere",
        "SELECT e.child_id, e.parent_id FROM evo.edges e
         LEFT JOIN evo.nodes c ON c.node_id = e.child_id LEFT JOIN evo.nodes p ON p.node_id = e.parent_id
         GROUP BY 1, 2 HAVING count(*) > 1 OR count(c.node_id) = 0 OR count(p.node_id) = 0",
    ),
    (
        "programs whose parents came later",
        "SELECT n.node_id FROM evo.nodes n JOIN evo.nodes p ON p.node_id = n.parent_id WHERE p.step >= n.step",
    ),
    (
        "replies that were paid twice",
        "SELECT attempt_id FROM evo.generations WHERE NOT cached AND coalesce(error_class, 'candidate') = 'candidate'
         GROUP BY 1 HAVING count(*) > 1",
    ),
];

/// Budgets that do not agree with the rows. They are read while nobody writes.
const BUDGETS: [(&str, &str); 3] = [
    (
        "steps spent that are no nodes",
        "SELECT b.scope, b.spent, n.nodes FROM system.budgets b
         LEFT JOIN (SELECT run_id, count(*) AS nodes FROM evo.nodes GROUP BY 1) n ON n.run_id = b.scope
         WHERE b.resource = 'steps' AND b.spent <> coalesce(n.nodes, 0)",
    ),
    (
        "jobs spent that are no jobs",
        "SELECT b.scope, b.spent, j.jobs FROM system.budgets b
         LEFT JOIN (SELECT run_id, count(*) AS jobs FROM sandbox.jobs
                    WHERE split = 'validation' AND attempt_id IS NOT NULL GROUP BY 1) j ON j.run_id = b.scope
         WHERE b.resource = 'jobs' AND b.spent <> coalesce(j.jobs, 0)",
    ),
    (
        "tokens spent that no reply has",
        "SELECT b.scope, b.spent, g.tokens FROM system.budgets b
         LEFT JOIN (SELECT run_id, sum(booked_tokens) AS tokens FROM evo.generations
                    WHERE NOT cached GROUP BY 1) g ON g.run_id = b.scope
         WHERE b.resource = 'tokens' AND b.spent <> coalesce(g.tokens, 0)",
    ),
];

async fn check(session: &Session, queries: &[(&str, &str)]) {
    for (what, sql) in queries {
        let found: usize = rows(session, sql)
            .await
            .unwrap_or_else(|error| panic!("{what}: {error}"))
            .iter()
            .map(|batch| batch.num_rows())
            .sum();
        assert_eq!(found, 0, "{what}:\n{}", table(session, sql).await);
    }
}

/// What holds whatever others do.
pub async fn always(engine: &Arc<Engine>) {
    check(&session(engine), &ALWAYS_EMPTY).await;
}

/// What holds while nobody writes.
pub async fn at_rest(engine: &Arc<Engine>) {
    always(engine).await;
    check(&session(engine), &BUDGETS).await;
}

/// What holds when a run has ended.
pub async fn ended(engine: &Arc<Engine>, run_id: &str, steps: i64) {
    at_rest(engine).await;
    let session = session(engine);
    let expect = async |count: i64, sql: &str| {
        let sql = sql.replace("$run", &format!("'{run_id}'"));
        assert_eq!(number(&session, &sql).await, count, "{sql}");
    };
    let run = "FROM evo.runs WHERE run_id = $run AND status = 'finished' AND stop_reason = 'steps'";
    expect(1, &format!("SELECT count(*) {run}")).await;
    expect(steps, &format!("SELECT max(steps_done) {run}")).await;
    expect(steps, "SELECT count(*) FROM evo.nodes WHERE run_id = $run").await;
    expect(steps, "SELECT max(step) FROM evo.nodes WHERE run_id = $run").await;
    expect(
        0,
        "SELECT count(*) FROM evo.attempts WHERE run_id = $run AND status <> 'done'",
    )
    .await;
    expect(
        1,
        "SELECT count(*) FROM evo.statements WHERE run_id = $run AND status = 'done'",
    )
    .await;
    expect(1, "SELECT count(*) FROM bench.grades WHERE run_id = $run").await;
    expect(1, "SELECT count(*) FROM bench.submissions WHERE run_id = $run").await;
    expect(0, "SELECT count(*) FROM sandbox.leases WHERE run_id = $run").await;
    expect(
        0,
        "SELECT count(*) FROM system.budgets WHERE scope = $run AND reserved <> 0",
    )
    .await;
    expect(0, "SELECT count(*) FROM system.problems").await;
    let tokens = "SELECT CAST(coalesce(sum(spent), 0) AS BIGINT) FROM system.budgets
                  WHERE scope = $run AND resource = 'tokens'";
    let paid = number(
        &session,
        &format!("SELECT count(*) FROM evo.runs WHERE run_id = '{run_id}' AND model = 'metered'"),
    )
    .await;
    expect(paid * steps * TOKENS, tokens).await;
    let scope = run_id.to_owned();
    let reservations: i64 = engine
        .store()
        .control_read(move |conn| {
            conn.query_row("SELECT count(*) FROM reservations WHERE scope = ?1", [scope], |row| {
                row.get(0)
            })
        })
        .await
        .unwrap();
    assert_eq!(reservations, 0, "reservations are left");
}

/// Ids of all nodes.
pub async fn node_ids(engine: &Arc<Engine>) -> BTreeSet<String> {
    rows(&session(engine), "SELECT arrow_cast(node_id, 'Utf8') FROM evo.nodes")
        .await
        .unwrap()
        .iter()
        .flat_map(|batch| {
            batch
                .column(0)
                .as_string::<i32>()
                .iter()
                .flatten()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect()
}

/// All that a seed decides of a run, with its outcome.
pub async fn fingerprint(engine: &Arc<Engine>, run_id: &str) -> String {
    let session = session(engine);
    let nodes = format!(
        "SELECT n.step, n.generation, n.operator, n.code_hash, n.status, n.score, p.step AS parent_step,
                q.step AS parent2_step, n.family_count_before, n.admitted, n.delta_vs_parent, d.step AS duplicate_step
         FROM evo.nodes n LEFT JOIN evo.nodes p ON p.node_id = n.parent_id
         LEFT JOIN evo.nodes q ON q.node_id = n.parent2_id LEFT JOIN evo.nodes d ON d.node_id = n.duplicate_of
         WHERE n.run_id = '{run_id}' ORDER BY n.step"
    );
    let outcome = format!(
        "SELECT r.best_score, r.best_step, f.step AS final_step, g.score, g.medal, g.valid
         FROM evo.runs r JOIN evo.nodes f ON f.node_id = r.final_node_id JOIN bench.grades g ON g.run_id = r.run_id
         WHERE r.run_id = '{run_id}'"
    );
    format!("{}\n{}", table(&session, &nodes).await, table(&session, &outcome).await)
}
