//! What a user reads of a statement that is refused, by theme. The messages are in `snapshots`.

use std::sync::Arc;

use clade::engine::{Engine, Session};

use super::fixture::{Fixture, number, rows, session};

/// A session with a table, a view and a policy of its own.
async fn client(engine: &Arc<Engine>) -> Session {
    let client = session(engine);
    for sql in [
        "CREATE TABLE mine AS SELECT 1 AS one",
        "CREATE VIEW seen AS SELECT 1 AS one",
        "CREATE POLICY own AS SELECT 'draft' AS operator, CAST(NULL AS VARCHAR) AS parent_id",
    ] {
        rows(&client, sql).await.unwrap();
    }
    client
}

/// The statements with what is said of them.
async fn said(client: &Session, statements: &[&str]) -> String {
    let mut said = Vec::new();
    for sql in statements {
        let error = rows(client, sql).await.expect_err(sql);
        said.push(format!("{sql}\n=> {error}"));
    }
    said.join("\n\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_clade_stay_as_they_are() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let client = client(&engine).await;
    let refused = [
        "DROP TABLE evo.nodes",
        "DROP TABLE IF EXISTS nodes",
        "DROP VIEW run.candidates",
        "DROP VIEW policies.uniform",
        "DROP VIEW policies.own",
        "DELETE FROM evo.nodes",
        "DELETE FROM evo.nodes WHERE score < 0",
        "UPDATE nodes SET score = 1",
        "INSERT INTO clade.gym.tasks (task_id) VALUES ('x')",
        "SELECT 1;\n  INSERT INTO\n    evo.runs SELECT * FROM evo.runs",
        "EXPLAIN DELETE FROM evo.nodes",
        "TRUNCATE TABLE evo.nodes",
        "MERGE INTO evo.nodes USING mine ON true WHEN MATCHED THEN DELETE",
        "CREATE VIEW nodes AS SELECT 1",
        "CREATE OR REPLACE VIEW run.candidates AS SELECT * FROM bench.grades",
        "CREATE TABLE IF NOT EXISTS evo.nodes AS SELECT 1",
        "CREATE EXTERNAL TABLE evo.nodes STORED AS CSV LOCATION 'x.csv'",
        "CREATE VIEW policies.other AS SELECT 1",
        "INSERT INTO policies.own VALUES ('draft', NULL)",
    ];
    insta::assert_snapshot!(said(&client, &refused).await);
    assert_eq!(number(&client, "SELECT count(*) FROM gym.tasks").await, 1);
    assert_eq!(number(&client, "SELECT count(*) FROM policies.own").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_do_not_exist_are_told() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let client = client(&engine).await;
    let refused = [
        "DESCRIBE nope",
        "DESCRIBE gymm.tasks",
        "SHOW COLUMNS FROM evo.nope",
        "DROP TABLE nope",
        "DROP VIEW nope",
        "DROP TABLE seen",
        "DROP VIEW mine",
        "DROP TABLE mine, seen",
        "DELETE FROM nope",
        "INSERT INTO nope VALUES (1)",
        "CREATE TABLE mine AS SELECT 2 AS two",
        "CREATE VIEW mine AS SELECT 2 AS two",
        "CREATE TABLE elsewhere.mine AS SELECT 1",
        "SELECT * FROM nope",
        "CREATE TASK FROM ''",
        "CREATE TASK FROM '/nowhere/at/all'",
    ];
    insta::assert_snapshot!(said(&client, &refused).await);
    // What belongs to the session is its own.
    for sql in [
        "INSERT INTO mine VALUES (2)",
        "CREATE OR REPLACE VIEW seen AS SELECT 2 AS two",
        "DESCRIBE information_schema.tables",
        "DROP TABLE IF EXISTS nope",
        "DROP TABLE mine",
        "DROP VIEW seen",
        "DROP POLICY own",
    ] {
        rows(&client, sql)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn variables_that_do_not_exist_are_told() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let client = client(&engine).await;
    let refused = [
        "SHOW nope",
        "SHOW clade.foo",
        "SET clade.foo = 'x'",
        "SET search.steps = 3",
        "SET clade.model = 'evolver', clade.sandbox = 'native'",
        "SET datafusion.execution.batch_size = 'many'",
        "SET datafusion.execution.nope = 1",
        "RESET clade.foo",
        "SELECT 1;\n\n RESET nope",
        "SET clade.model = 'gpt'",
    ];
    insta::assert_snapshot!(said(&client, &refused).await);
    for sql in [
        "SHOW clade.model",
        "SHOW ALL",
        "SHOW timezone",
        "SHOW datafusion.execution.batch_size VERBOSE",
        "SET TIME ZONE = '+01:00'",
        "SET datafusion.runtime.memory_limit = '1G'",
        "RESET datafusion.execution.batch_size",
        "RESET clade.model",
    ] {
        rows(&client, sql)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_of_other_databases_are_told() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let client = client(&engine).await;
    let refused = [
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "VACUUM",
        "ALTER TABLE evo.nodes ADD COLUMN x INT",
        "SHOW DATABASES",
        "LOCK TABLES evo.nodes WRITE",
        "SELECT 'draft' operator",
        "SELECT 'improve' operator, node_id AS parent_id FROM evo.nodes EXPAND WITH improve",
    ];
    insta::assert_snapshot!(said(&client, &refused).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_written_and_read_with_the_rights_of_the_user() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let client = session(&engine);
    rows(&client, "EVOLVE TASK 'toy' WITH (steps => 3, workers => 1, seed => 1)")
        .await
        .unwrap();
    let path = |name: &str| fixture.folder.path().join(name).display().to_string();
    // CSV has no lists.
    let csv = path("nodes.csv");
    let error = rows(&client, &format!("COPY evo.nodes TO '{csv}'")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "COPY to CSV cannot write the column imports, which is a list: leave it out, write array_to_string(imports, ' ') AS \
         imports, or copy to Parquet or JSON"
    );
    assert!(!std::path::Path::new(&csv).exists());
    let flat = "SELECT node_id, step, array_to_string(imports, ' ') AS imports FROM evo.nodes";
    rows(&client, &format!("COPY ({flat}) TO '{csv}'")).await.unwrap();
    rows(&client, &format!("COPY evo.nodes TO '{}'", path("nodes.parquet")))
        .await
        .unwrap();

    // What was written can be read, by this session and by no policy.
    let external =
        format!("CREATE EXTERNAL TABLE copied STORED AS CSV LOCATION '{csv}' OPTIONS ('format.has_header' 'true')");
    rows(&client, &external).await.unwrap();
    assert_eq!(number(&client, "SELECT count(*) FROM copied").await, 3);
    rows(&client, "CREATE VIEW behind AS SELECT * FROM copied")
        .await
        .unwrap();
    for name in ["copied", "evo.copied", "behind"] {
        let policy = format!("CREATE POLICY p AS SELECT 'improve' AS operator, node_id AS parent_id FROM {name}");
        let error = rows(&client, &policy).await.unwrap_err().to_string();
        assert!(error.contains("made for this session only"), "{name}: {error}");
    }
    let direct = format!("CREATE POLICY p AS SELECT 'improve' AS operator, node_id AS parent_id FROM '{csv}'");
    let error = rows(&client, &direct).await.unwrap_err().to_string();
    assert!(error.contains("not found"), "{error}");
    let reader = engine.session(&clade::engine::SessionOptions {
        read_only: true,
        run: None,
    });
    for sql in [&external, &format!("COPY ({flat}) TO '{}'", path("again.csv"))] {
        let error = rows(&reader, sql).await.unwrap_err().to_string();
        assert!(error.contains("this session is read-only"), "{sql}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_with_a_wrong_constant_is_refused_when_it_is_made() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let client = session(&engine);
    let refused = [
        "CREATE POLICY p AS SELECT 'mutate' AS operator, node_id AS parent_id FROM run.candidates",
        "CREATE POLICY p AS SELECT 'improve' AS operator, node_id AS parent_id, -1 AS weight FROM run.candidates",
        "CREATE POLICY p AS SELECT 'draft' operator, NULL AS parent_id",
    ];
    insta::assert_snapshot!(said(&client, &refused).await);
    assert_eq!(
        number(&client, "SELECT count(*) FROM system.policies WHERE origin = 'own'").await,
        0
    );
}
