//! What `system.queries` says of the statements that were run.

use super::fixture::{Fixture, rows, session, table};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_is_noted_as_it_ended() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let client = session(&engine);
    rows(&client, "SELECT value FROM generate_series(1, 3)").await.unwrap();
    rows(&client, "SELECT 1 / (value - 2) FROM generate_series(1, 3)")
        .await
        .unwrap_err();
    rows(&client, "SELECT nothing").await.unwrap_err();
    drop(
        client
            .execute("SELECT value FROM generate_series(1, 1000000)")
            .await
            .unwrap(),
    );
    // The notes are written behind the statements' backs.
    engine.close().await;
    let notes = table(
        &client,
        "SELECT status, rows, error IS NOT NULL AS failed, sql FROM system.queries ORDER BY started_at",
    )
    .await;
    let line = |sql: &str| {
        let found = notes.lines().find(|line| line.contains(sql));
        found
            .unwrap_or_else(|| panic!("{sql} is not noted:\n{notes}"))
            .to_owned()
    };
    for (sql, words) in [
        ("generate_series(1, 3)", ["done", "3", "false"]),
        ("SELECT 1 /", ["failed", "", "true"]),
        ("SELECT nothing", ["failed", "", "true"]),
        ("1000000", ["abandoned", "0", "false"]),
    ] {
        let line = line(sql);
        assert!(words.iter().all(|word| line.contains(word)), "{line}");
    }
}
