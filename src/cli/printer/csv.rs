//! CSV with a header; NULL is an empty field.

use std::io::Write;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::RowWriter;
use super::cell::Cells;
use crate::cli::error::CliError;

/// Writes CSV.
pub(super) struct CsvWriter {
    header: Option<Vec<String>>,
}

impl CsvWriter {
    pub fn new(schema: &SchemaRef) -> Self {
        Self {
            header: Some(schema.fields().iter().map(|field| field.name().clone()).collect()),
        }
    }

    fn write_header(&mut self, writer: &mut csv::Writer<&mut dyn Write>) -> Result<(), CliError> {
        if let Some(header) = self.header.take() {
            writer.write_record(header)?;
        }
        Ok(())
    }
}

impl RowWriter for CsvWriter {
    fn batch(&mut self, out: &mut dyn Write, batch: &RecordBatch) -> Result<(), CliError> {
        let mut writer = csv::Writer::from_writer(out);
        self.write_header(&mut writer)?;
        let cells = Cells::exact(batch)?;
        for row in 0..batch.num_rows() {
            for column in 0..batch.num_columns() {
                writer.write_field(cells.value(row, column)?.unwrap_or_default())?;
            }
            writer.write_record(None::<&[u8]>)?;
        }
        writer.flush()?;
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write) -> Result<(), CliError> {
        let mut writer = csv::Writer::from_writer(out);
        self.write_header(&mut writer)?;
        writer.flush()?;
        Ok(())
    }
}
