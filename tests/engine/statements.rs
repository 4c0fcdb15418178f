//! Acting statements: what they do, and what a user reads when they are refused.

use std::sync::atomic::Ordering;

use clade::engine::{OpenMode, SessionOptions};

use super::fixture::{Fixture, number, rows, session, table};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expand_turns_rows_into_nodes_and_runs_once_under_its_id() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let session = session(&engine);
    let draft = "SELECT 'toy' AS task_id EXPAND WITH draft (samples => 4, seed => 2, id => 'first')";
    let once = rows(&session, draft).await.unwrap();
    assert_eq!(once.iter().map(|batch| batch.num_rows()).sum::<usize>(), 4);
    let calls = fixture.model.calls.load(Ordering::SeqCst);
    let again = rows(&session, draft).await.unwrap();
    assert_eq!(again.iter().map(|batch| batch.num_rows()).sum::<usize>(), 4);
    assert_eq!(
        fixture.model.calls.load(Ordering::SeqCst),
        calls,
        "a statement run again repeats nothing"
    );
    assert_eq!(number(&session, "SELECT count(*) FROM evo.nodes").await, 4);

    let improve = "SELECT node_id AS parent_id FROM evo.nodes WHERE NOT is_buggy ORDER BY signed_score DESC LIMIT 2";
    rows(&session, &format!("{improve} EXPAND WITH improve (seed => 3)"))
        .await
        .unwrap();
    assert_eq!(
        number(&session, "SELECT count(*) FROM evo.nodes WHERE operator = 'improve'").await,
        2
    );
    assert_eq!(number(&session, "SELECT count(*) FROM evo.edges").await, 2);
    let function = format!("SELECT status FROM expand(({improve}), 'improve', seed => 4)");
    rows(&session, &function).await.unwrap();
    assert_eq!(
        number(&session, "SELECT count(*) FROM evo.nodes WHERE operator = 'improve'").await,
        4
    );
    assert_eq!(
        number(&session, "SELECT count(*) FROM evo.prompts_used WHERE role = 'parent'").await,
        4
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_expand_runs_nothing() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let session = session(&engine);
    let explained = table(
        &session,
        "EXPLAIN SELECT 'toy' AS task_id EXPAND WITH draft (samples => 3)",
    )
    .await;
    assert!(
        explained.contains("prompt_bytes") && explained.contains("toy"),
        "{explained}"
    );
    assert_eq!(fixture.model.calls.load(Ordering::SeqCst), 0);
    assert_eq!(number(&session, "SELECT count(*) FROM evo.attempts").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input_rows_are_refused_before_anything_is_written() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let session = session(&engine);
    rows(
        &session,
        "SELECT 'toy' AS task_id EXPAND WITH draft (samples => 12, seed => 1, id => 's')",
    )
    .await
    .unwrap();
    let healthy = "SELECT node_id AS parent_id FROM evo.nodes WHERE NOT is_buggy ORDER BY step LIMIT 1";
    let failed = "SELECT node_id AS parent_id FROM evo.nodes WHERE is_buggy ORDER BY step LIMIT 1";
    let twice =
        "SELECT node_id AS parent_id, node_id AS parent2_id FROM evo.nodes WHERE NOT is_buggy ORDER BY step LIMIT 1";
    let cases = [
        (
            "SELECT 'nope' AS parent_id EXPAND WITH improve".to_owned(),
            "parent_id 'nope' is no node of this store",
        ),
        (
            "SELECT 'nope' AS task_id EXPAND WITH draft".to_owned(),
            "there is no such task; the store has toy",
        ),
        (
            format!("{healthy} EXPAND WITH debug"),
            "is healthy: there is nothing to debug; use improve",
        ),
        (
            format!("{failed} EXPAND WITH improve"),
            "has failed: it can be debugged, not taken for improve",
        ),
        (
            format!("{twice} EXPAND WITH crossover"),
            "crossover needs two different parents",
        ),
        (
            "SELECT 'toy' AS task_id EXPAND WITH draft USING MODEL gpt".to_owned(),
            "unknown model 'gpt'",
        ),
        (
            "SELECT 'toy' AS task_id EXPAND WITH draft IN SANDBOX vm".to_owned(),
            "unknown sandbox 'vm'",
        ),
        (
            "SELECT 'toy' AS task_id EXPAND WITH draft (id => 's')".to_owned(),
            "there is another statement 's' already",
        ),
        (
            "SELECT 'toy' AS task_id FROM range(0, 1000) EXPAND WITH draft (samples => 10000)".to_owned(),
            "asks for 10000000 attempts, but a statement may plan 1000000 at most",
        ),
        (
            "EVOLVE TASK 'toy' WITH POLICY nope".to_owned(),
            "there is no policy 'nope'",
        ),
        ("EVOLVE TASK 'nope'".to_owned(), "there is no such task"),
        (
            "SET clade.snapshot = 'soon'; SELECT 1".to_owned(),
            "it takes the number of a snapshot",
        ),
    ];
    let before = number(&session, "SELECT count(*) FROM evo.attempts").await;
    for (sql, message) in cases {
        let answer = table(&super::fixture::session(&engine), &sql).await;
        assert!(answer.contains(message), "{sql}\n{answer}");
    }
    assert_eq!(number(&session, "SELECT count(*) FROM evo.attempts").await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_are_checked_used_and_superseded() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let session = session(&engine);
    rows(
        &session,
        "CREATE POLICY newest COMMENT 'the newest node' AS
         SELECT CASE WHEN best.node_id IS NULL THEN 'draft' ELSE 'improve' END AS operator, best.node_id AS parent_id
         FROM (SELECT 1) AS one
         LEFT JOIN (SELECT node_id FROM run.candidates ORDER BY step DESC LIMIT 1) AS best ON true",
    )
    .await
    .unwrap();
    rows(
        &session,
        "EVOLVE TASK 'toy' WITH POLICY newest WITH (steps => 8, workers => 1, seed => 1, id => 'r')",
    )
    .await
    .unwrap();
    assert_eq!(
        number(&session, "SELECT count(*) FROM evo.nodes WHERE run_id = 'r'").await,
        8
    );
    assert!(
        table(&session, "SHOW CREATE POLICY newest")
            .await
            .contains("CREATE POLICY newest COMMENT 'the newest node' AS")
    );
    assert!(
        table(
            &session,
            "CREATE POLICY newest AS SELECT 'draft' AS operator, CAST(NULL AS VARCHAR) AS parent_id"
        )
        .await
        .contains("already")
    );
    let cheating =
        "CREATE POLICY cheat AS SELECT 'improve' AS operator, node_id AS parent_id, score AS weight FROM bench.grades";
    assert!(
        table(&session, cheating).await.contains("bench"),
        "{}",
        table(&session, cheating).await
    );
    let volatile = "CREATE POLICY dice AS SELECT 'improve' AS operator, node_id AS parent_id, random() AS weight FROM run.candidates";
    assert!(
        table(&session, volatile).await.contains("random"),
        "{}",
        table(&session, volatile).await
    );
    rows(&session, "DROP POLICY newest").await.unwrap();
    assert!(
        table(&session, "DROP POLICY newest")
            .await
            .contains("no policy 'newest'")
    );
    assert!(table(&session, "DROP POLICY openmle_evo").await.contains("shipped"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_without_rows_calls_no_model() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let session = session(&engine);
    rows(
        &session,
        "CREATE POLICY nothing AS SELECT 'draft' AS operator, CAST(NULL AS VARCHAR) AS parent_id WHERE false",
    )
    .await
    .unwrap();
    rows(
        &session,
        "EVOLVE TASK 'toy' WITH POLICY nothing WITH (steps => 8, id => 'r')",
    )
    .await
    .unwrap();
    assert_eq!(fixture.model.calls.load(Ordering::SeqCst), 0);
    assert_eq!(
        number(
            &session,
            "SELECT count(*) FROM evo.runs WHERE stop_reason = 'policy_empty'"
        )
        .await,
        1
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_session_and_a_read_only_store_write_nothing() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let reader = engine.session(&SessionOptions {
        read_only: true,
        run: None,
    });
    for sql in [
        "EVOLVE TASK 'toy'",
        "CHECKPOINT",
        "SELECT 'toy' AS task_id EXPAND WITH draft",
        "CREATE VIEW v AS SELECT 1",
    ] {
        let answer = table(&reader, sql).await;
        assert!(answer.contains("read-only"), "{sql}: {answer}");
    }
    assert_eq!(number(&reader, "SELECT count(*) FROM gym.tasks").await, 1);
    engine.close().await;
    drop((reader, engine));
    let engine = fixture.open(OpenMode::ReadOnly).await.unwrap();
    let answer = table(&session(&engine), "EVOLVE TASK 'toy'").await;
    assert!(answer.contains("read-only"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_does_not_exist_is_an_error() {
    let fixture = Fixture::new();
    let error = fixture.open(OpenMode::Existing).await.unwrap_err();
    assert!(error.to_string().starts_with("no store at "), "{error}");
    assert!(!fixture.store().exists(), "nothing is made by looking");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancel_ends_a_run_for_good() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let session = session(&engine);
    rows(
        &session,
        "EVOLVE TASK 'toy' WITH (steps => 100000, workers => 2, seed => 1, id => 'r') ASYNC",
    )
    .await
    .unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    rows(&session, "CANCEL RUN 'r'").await.unwrap();
    engine.close().await;
    assert_eq!(
        number(&session, "SELECT count(*) FROM evo.runs WHERE status = 'cancelled'").await,
        1
    );
    assert_eq!(number(&session, "SELECT count(*) FROM sandbox.leases").await, 0);
    assert_eq!(
        number(&session, "SELECT count(*) FROM system.budgets WHERE reserved > 0").await,
        0
    );
    assert!(table(&session, "RESUME RUN 'r'").await.contains("has ended"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_is_a_moment_that_can_be_read_again() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let client = session(&engine);
    rows(
        &client,
        "EVOLVE TASK 'toy' WITH (steps => 10, workers => 1, seed => 1, id => 'r')",
    )
    .await
    .unwrap();
    let middle = number(&client, "SELECT snapshot_id FROM evo.attempts WHERE step = 6").await;
    let total = number(&client, "SELECT count(*) FROM evo.nodes").await;
    assert_eq!(total, 10);
    let past = session(&engine);
    rows(&past, &format!("SET clade.snapshot = '{middle}'")).await.unwrap();
    assert_eq!(number(&past, "SELECT count(*) FROM evo.nodes").await, 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trace_of_the_own_policy_agrees_and_of_another_differs() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let client = session(&engine);
    rows(
        &client,
        "EVOLVE TASK 'toy' WITH (steps => 20, workers => 1, seed => 4, id => 'r')",
    )
    .await
    .unwrap();
    let agreed = "SELECT count(*) FROM policy_trace('openmle_evo', 'r') WHERE agrees";
    assert_eq!(number(&client, agreed).await, 20);
    let drafts = "SELECT count(*) FROM policy_trace('best_of_n', 'r') WHERE drawn_operator <> 'draft'";
    assert_eq!(number(&client, drafts).await, 0);
    assert!(
        table(&client, "SELECT * FROM policy_trace('openmle_evo', 'nope')")
            .await
            .contains("there is no run 'nope'")
    );
    assert!(
        table(&client, "SELECT * FROM policy_trace('nope', 'r')")
            .await
            .contains("there is no policy 'nope'")
    );
}
