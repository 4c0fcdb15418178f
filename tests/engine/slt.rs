//! Runs every file of `tests/slt` on a store of its own: task `toy`, one finished run `r` of 30 steps with seed 5.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use clade::engine::{EngineError, Session};
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};

use super::fixture::{Fixture, rows, run_session, session};

struct Client(Arc<Session>);

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct ClientError(#[from] EngineError);

fn cell(column: &dyn Array, row: usize) -> String {
    if column.is_null(row) {
        return "NULL".into();
    }
    if *column.data_type() == DataType::Float64 {
        // Six digits: enough to tell values apart, few enough for every machine.
        let value = column.as_primitive::<arrow::datatypes::Float64Type>().value(row);
        return format!("{value:.6}")
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned();
    }
    let text = ArrayFormatter::try_new(column, &FormatOptions::default())
        .unwrap()
        .value(row)
        .to_string();
    if text.is_empty() { "(empty)".into() } else { text }
}

fn output(batches: &[RecordBatch]) -> DBOutput<DefaultColumnType> {
    let Some(first) = batches.first().filter(|batch| batch.num_columns() > 0) else {
        return DBOutput::StatementComplete(0);
    };
    let types = first
        .schema()
        .fields()
        .iter()
        .map(|field| match field.data_type() {
            DataType::Float64 => DefaultColumnType::FloatingPoint,
            kind if kind.is_integer() => DefaultColumnType::Integer,
            _ => DefaultColumnType::Text,
        })
        .collect();
    let rows = batches
        .iter()
        .flat_map(|batch| {
            (0..batch.num_rows()).map(move |row| batch.columns().iter().map(|column| cell(column, row)).collect())
        })
        .collect();
    DBOutput::Rows { types, rows }
}

#[async_trait::async_trait]
impl AsyncDB for Client {
    type Error = ClientError;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, ClientError> {
        Ok(output(&rows(&self.0, sql).await?))
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        "clade"
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sql_logic_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "slt"));
    files.sort();
    assert!(!files.is_empty(), "there are no files in {}", folder.display());
    for file in files {
        let fixture = Fixture::new();
        let engine = fixture.create().await;
        rows(
            &session(&engine),
            "EVOLVE TASK 'toy' WITH (steps => 30, workers => 1, seed => 5, id => 'r')",
        )
        .await
        .unwrap();
        let client = Arc::new(run_session(&engine, "r"));
        let mut runner = Runner::new(|| {
            let client = Arc::clone(&client);
            async move { Ok(Client(client)) }
        });
        if std::env::var_os("CLADE_UPDATE_SLT").is_some() {
            let validator = sqllogictest::default_validator;
            runner
                .update_test_file(
                    &file,
                    " ",
                    validator,
                    sqllogictest::default_normalizer,
                    sqllogictest::default_column_validator,
                )
                .await
                .unwrap();
        } else if let Err(error) = runner.run_file_async(&file).await {
            panic!("{}: {error}", file.display());
        }
    }
}
