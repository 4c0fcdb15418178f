//! The generated reference page of the tables.

use std::path::Path;

use super::fixture::Fixture;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_of_the_tables_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/tables.md");
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let page = engine.tables_page().await.unwrap();
    if std::env::var("UPDATE_DOCS").as_deref() == Ok("1") {
        std::fs::write(&path, &page).unwrap();
        return;
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "{} is stale; run this test with UPDATE_DOCS=1 to write it",
        path.display()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_table_is_documented_and_every_column_that_is_no_computation_of_a_view() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let tables: Vec<(String, Vec<String>)> = engine
        .tables()
        .map(|(schema, tables)| (schema.to_owned(), tables))
        .collect();
    let views = super::fixture::rows(
        &super::fixture::session(&engine),
        "SELECT concat(table_schema, '.', table_name) FROM information_schema.tables WHERE table_type = 'VIEW'",
    )
    .await
    .unwrap();
    let views = arrow::util::pretty::pretty_format_batches(&views).unwrap().to_string();
    for (schema, tables) in tables {
        for table in tables {
            let found = engine.describe(&schema, &table).await.unwrap().unwrap();
            assert!(found.doc.is_some_and(|doc| !doc.is_empty()), "{schema}.{table}");
            if views.contains(&format!(" {schema}.{table} ")) {
                continue;
            }
            for column in found.columns {
                let comment = column.comment.unwrap_or_default();
                assert!(!comment.is_empty(), "{schema}.{table}.{}", column.name);
            }
        }
    }
}
