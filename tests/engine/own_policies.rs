//! The user's own policies that read each other.

use clade::engine::OpenMode;

use super::fixture::{Fixture, number, rows, session, table};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_may_read_another_whatever_their_names() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let client = session(&engine);
    let best = "CREATE POLICY zz AS SELECT 'improve' AS operator, node_id AS parent_id FROM run.candidates";
    rows(&client, best).await.unwrap();
    rows(&client, "CREATE POLICY aa AS SELECT * FROM policies.zz")
        .await
        .unwrap();
    // Another process plans them by name, and aa comes first.
    let other = session(&fixture.open(OpenMode::Existing).await.unwrap());
    assert_eq!(number(&other, "SELECT 1").await, 1);
    let answer = table(&other, "DROP POLICY zz").await;
    assert!(
        answer.contains("policy 'zz' is read by aa: drop that first"),
        "{answer}"
    );

    // A change may break the reader; nobody else is kept from work.
    let changed = "CREATE OR REPLACE POLICY aa AS SELECT operator, parent_id FROM policies.zz";
    rows(&other, changed).await.unwrap();
    let narrower = "CREATE OR REPLACE POLICY zz AS SELECT 'draft' AS operator, CAST(NULL AS VARCHAR) AS parent_id";
    rows(&other, narrower).await.unwrap();
    let third = session(&fixture.open(OpenMode::Existing).await.unwrap());
    assert_eq!(number(&third, "SELECT count(*) FROM policies.aa").await, 1);
    for sql in ["DROP POLICY aa", "DROP POLICY zz"] {
        rows(&third, sql).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_that_no_longer_plans_keeps_nobody_from_work() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let client = session(&engine);
    rows(
        &client,
        "CREATE POLICY mine AS SELECT 'draft' AS operator, CAST(NULL AS VARCHAR) AS parent_id",
    )
    .await
    .unwrap();
    // As a later version of Clade may have left it, which knows more views.
    engine
        .store()
        .control(|tx| tx.execute("UPDATE policies SET sql = 'SELECT * FROM run.later'", []))
        .await
        .unwrap();
    let other = session(&fixture.open(OpenMode::Existing).await.unwrap());
    assert_eq!(number(&other, "SELECT 1").await, 1);
    let answer = table(&other, "SELECT * FROM policies.mine").await;
    assert!(answer.contains("mine"), "{answer}");
    rows(&other, "DROP POLICY mine").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_reads_what_every_session_has() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let client = session(&engine);
    rows(&client, "CREATE TABLE copied AS SELECT * FROM bench.grades")
        .await
        .unwrap();
    rows(&client, "CREATE VIEW mine AS SELECT node_id FROM run.candidates")
        .await
        .unwrap();
    let select = "SELECT 'improve' AS operator, node_id AS parent_id FROM";
    // A copy of the grades is made for the session, and so is a view: both are closed.
    for name in ["copied", "mine"] {
        let answer = table(&client, &format!("CREATE POLICY p AS {select} {name}")).await;
        assert!(answer.contains("made for this session only"), "{name}: {answer}");
    }
    rows(&client, &format!("CREATE POLICY one AS {select} run.candidates"))
        .await
        .unwrap();
    rows(&client, "CREATE POLICY two AS SELECT * FROM policies.one")
        .await
        .unwrap();
    let answer = table(&client, "CREATE OR REPLACE POLICY one AS SELECT * FROM policies.two").await;
    assert!(answer.contains("policy 'one' would read itself"), "{answer}");
    for sql in [
        "DROP VIEW run.candidates",
        "CREATE OR REPLACE VIEW run.candidates AS SELECT * FROM bench.grades",
        "DROP VIEW policies.uniform",
    ] {
        let answer = table(&client, sql).await;
        assert!(answer.contains("is part of Clade"), "{sql}: {answer}");
    }
}
