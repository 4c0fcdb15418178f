//! One JSON array of row objects, written as the rows come.

use std::io::Write;

use arrow::array::RecordBatch;
use arrow::json::WriterBuilder;
use arrow::json::writer::LineDelimited;

use super::RowWriter;
use crate::cli::error::CliError;

/// Writes a JSON array, one row a line. NULL and numbers that JSON does not know (NaN, infinities) are `null`.
pub(super) struct JsonWriter {
    rows: usize,
}

impl JsonWriter {
    pub fn new() -> Self {
        Self { rows: 0 }
    }
}

impl RowWriter for JsonWriter {
    fn batch(&mut self, out: &mut dyn Write, batch: &RecordBatch) -> Result<(), CliError> {
        let mut writer = WriterBuilder::new()
            .with_explicit_nulls(true)
            .build::<_, LineDelimited>(Vec::new());
        writer.write(batch)?;
        writer.finish()?;
        // A newline inside a text is escaped, so each line is one row.
        for line in writer
            .into_inner()
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            out.write_all(if self.rows == 0 { b"[\n" } else { b",\n" })?;
            out.write_all(line)?;
            self.rows += 1;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write) -> Result<(), CliError> {
        out.write_all(if self.rows == 0 { b"[]\n" } else { b"\n]\n" })?;
        Ok(())
    }
}
