//! Other programs read the cold files: they are plain Delta Lake tables.
//!
//! `CLADE_TEST_PYTHON` is an interpreter with deltalake, polars and duckdb.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use clade::engine::Engine;
use serde_json::{Value, json};

use crate::engine::fixture::{Fixture, rows, session};

const READERS: [&str; 3] = ["deltalake", "polars", "duckdb"];

/// The interpreter; none when the tests of this module are left out on purpose.
fn python() -> Option<std::path::PathBuf> {
    if std::env::var_os("CLADE_SKIP_READERS").is_some_and(|skip| skip == "1") {
        return None;
    }
    let python = std::env::var_os("CLADE_TEST_PYTHON").expect(
        "set CLADE_TEST_PYTHON to a Python interpreter with deltalake, polars and duckdb: \
         eval \"$(scripts/setup.sh --tests)\" makes one; CLADE_SKIP_READERS=1 leaves these tests out",
    );
    Some(python.into())
}

/// Facts of `evo.nodes` by Clade's own SQL.
async fn facts(engine: &Arc<Engine>) -> Value {
    let sql = "SELECT status, count(*) AS count, sum(step) AS steps, max(score) AS best FROM evo.nodes GROUP BY 1";
    let mut facts = json!({"count": 0, "steps": 0, "best": null, "statuses": {}});
    for batch in rows(&session(engine), sql).await.unwrap() {
        let mut writer = arrow::json::ArrayWriter::new(Vec::new());
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        let list: Value = serde_json::from_slice(&writer.into_inner()).unwrap();
        for row in list.as_array().unwrap() {
            for sum in ["count", "steps"] {
                facts[sum] = (facts[sum].as_i64().unwrap() + row[sum].as_i64().unwrap()).into();
            }
            if let Some(best) = row["best"].as_f64() {
                facts["best"] = facts["best"].as_f64().unwrap_or(f64::MIN).max(best).into();
            }
            facts["statuses"][row["status"].as_str().unwrap()] = row["count"].clone();
        }
    }
    facts
}

fn read(python: &Path, store: &Path, reader: &str) -> Value {
    let output = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers/read.py"))
        .arg(reader)
        .arg(store.join("tables/evo/nodes"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{reader}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_programs_read_the_cold_files_and_agree() {
    let Some(python) = python() else { return };
    let mut fixture = Fixture::new();
    // Polars does not find the files of any Delta table in a folder with a space in its path.
    fixture.folder = tempfile::tempdir().unwrap();
    let engine = fixture.create().await;
    let client = session(&engine);
    // One file, several files, files that replaced others, and both.
    for (seed, after) in [
        "CHECKPOINT",
        "CHECKPOINT",
        "CHECKPOINT; OPTIMIZE evo.nodes",
        "CHECKPOINT",
    ]
    .into_iter()
    .enumerate()
    {
        let evolve = format!("EVOLVE TASK 'toy' WITH (steps => 20, seed => {seed})");
        rows(&client, &evolve).await.unwrap();
        rows(&client, after).await.unwrap();
        let expected = facts(&engine).await;
        assert_eq!(expected["count"], 20 * (seed + 1));
        for reader in READERS {
            assert_eq!(
                read(&python, &fixture.store(), reader),
                expected,
                "{reader} after {after}"
            );
        }
    }
}
