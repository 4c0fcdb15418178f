//! Parquet files: the schema and counts of the footer, and the first rows.

use std::panic::{AssertUnwindSafe, catch_unwind};

use datafusion::parquet::file::reader::{FileReader, SerializedFileReader};
use datafusion::parquet::file::statistics::Statistics;

use super::columns::described;
use super::read::Reader;
use super::{ColumnOverview, FileOverview, NAME_CHARS, SAMPLE_CHARS, line};

/// First rows that samples are taken from.
const SAMPLES: usize = 3;
/// A first row group of more bytes is not unpacked.
const MOST_BYTES: i64 = 64 << 20;

pub(super) fn describe(path: &str, out: &mut FileOverview, reader: &mut Reader) -> Result<(), String> {
    let file = reader.open(path)?;
    // The reader trusts the sizes that a file states, and a hostile one must not end the process.
    match catch_unwind(AssertUnwindSafe(|| read(file, out))) {
        Ok(result) => result,
        Err(_) => Err("no valid Parquet file".to_owned()),
    }
}

fn read(file: std::fs::File, out: &mut FileOverview) -> Result<(), String> {
    let wrong = |error: datafusion::parquet::errors::ParquetError| format!("no valid Parquet file: {error}");
    let reader = SerializedFileReader::new(file).map_err(wrong)?;
    let metadata = reader.metadata();
    let schema = metadata.file_metadata().schema_descr();
    let rows = metadata.file_metadata().num_rows();
    out.rows = Some(rows);
    out.rows_exact = true;
    out.columns = Some(schema.num_columns() as i64);
    let missing = |column: usize| -> Option<f64> {
        let nulls: Option<u64> = metadata
            .row_groups()
            .iter()
            .map(|group| group.column(column).statistics().and_then(Statistics::null_count_opt))
            .sum();
        nulls.filter(|_| rows > 0).map(|nulls| nulls as f64 / rows as f64)
    };
    let columns: Vec<ColumnOverview> = schema
        .columns()
        .iter()
        .enumerate()
        .map(|(place, column)| ColumnOverview {
            name: line(&column.path().string(), NAME_CHARS),
            kind: match column.logical_type_ref() {
                Some(logical) => line(&format!("{logical:?}"), SAMPLE_CHARS).to_lowercase(),
                None => column.physical_type().to_string().to_lowercase(),
            },
            missing: missing(place),
            ..ColumnOverview::default()
        })
        .collect();
    let (columns, left_out) = described(columns);
    out.column_facts = columns;
    out.columns_left_out = left_out;
    let is_small = metadata
        .row_groups()
        .first()
        .is_some_and(|group| group.total_byte_size() <= MOST_BYTES);
    if !is_small {
        return Ok(());
    }
    for row in reader.get_row_iter(None).map_err(wrong)?.take(SAMPLES) {
        let row = row.map_err(wrong)?;
        for (name, value) in row.get_column_iter() {
            let name = line(name, NAME_CHARS);
            if let Some(column) = out.column_facts.iter_mut().find(|column| column.name == name) {
                column
                    .samples
                    .push(line(value.to_string().trim_matches('"'), SAMPLE_CHARS));
            }
        }
    }
    Ok(())
}
