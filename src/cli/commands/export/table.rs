//! `clade export TABLE|SQL`: write a table or the result of a query to a file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;
use futures::{StreamExt, TryStreamExt};

use crate::cli::client::Client;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::new_file::NewFile;
use crate::cli::printer::{Format, Printer, warn};
use crate::cli::sql_text::identifier;
use crate::cli::terminal::{Terminal, note};
use crate::engine::{Notice, QueryOutput};

/// Rows of one row group: small enough for readers that take one whole.
const ROW_GROUP: usize = 100_000;

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Parquet,
    Text(Format),
}

impl Kind {
    fn of(path: &Path) -> Result<Self, CliError> {
        let ending = path
            .extension()
            .map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        match ending.as_deref() {
            Some("parquet") => Ok(Self::Parquet),
            Some("csv") => Ok(Self::Text(Format::Csv)),
            Some("json") => Ok(Self::Text(Format::Json)),
            Some("arrow" | "arrows") => Ok(Self::Text(Format::Arrow)),
            _ => Err(CliError::Usage(format!(
                "--out {}: the file must end in .parquet, .csv, .json or .arrow",
                path.display()
            ))),
        }
    }
}

/// Writes a table or the result of a query to a file.
pub async fn run(source: &str, path: &Path, context: &Context) -> Result<(), CliError> {
    let kind = Kind::of(path)?;
    let client = Client::reader(context).await?;
    let output = plain(client.output(&query(source)).await?)?;
    let mut file = NewFile::create(path)?;
    let rows = match kind {
        Kind::Parquet => {
            for notice in &output.notices {
                if let Notice::Warning(text) = notice {
                    warn(context.stderr, text);
                }
            }
            parquet(output, file.file()).await?
        }
        Kind::Text(format) => {
            let out = file.reopen()?;
            let mut printer = Printer::new(Box::new(BufWriter::new(out)), format, Terminal::PLAIN, context.stderr);
            let rows = printer.print(output).await?;
            printer.finish()?;
            rows
        }
    };
    file.keep()?;
    note(format!("wrote {rows} rows to {}", path.display()));
    Ok(())
}

/// A name of a table is all of its rows; anything else is a query.
fn query(source: &str) -> String {
    let is_name = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$');
    let parts: Vec<&str> = source.trim().split('.').collect();
    if parts.len() <= 3 && parts.iter().all(|part| is_name(part)) {
        let name: Vec<_> = parts.into_iter().map(identifier).collect();
        return format!("SELECT * FROM {}", name.join("."));
    }
    source.to_owned()
}

async fn parquet(output: QueryOutput, file: &mut File) -> Result<usize, CliError> {
    let level = ZstdLevel::default();
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .build();
    let failed =
        |error: datafusion::parquet::errors::ParquetError| CliError::Failed(format!("cannot write Parquet: {error}"));
    let mut writer = ArrowWriter::try_new(BufWriter::new(file), output.schema, Some(properties)).map_err(failed)?;
    let (mut stream, mut rows) = (output.stream, 0);
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        rows += batch.num_rows();
        writer.write(&batch).map_err(failed)?;
    }
    writer.into_inner().map_err(failed)?.flush()?;
    Ok(rows)
}

/// The rows with texts in the type that every reader knows; views and large texts are of no use in a file.
fn plain(output: QueryOutput) -> Result<QueryOutput, CliError> {
    let fields: Vec<Field> = output
        .schema
        .fields()
        .iter()
        .map(|field| field.as_ref().clone().with_data_type(plain_type(field.data_type())))
        .collect();
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    let target = Arc::clone(&schema);
    let rows = output.stream.and_then(move |batch| {
        let batch = cast_batch(&batch, &target);
        async move { batch }
    });
    let stream = datafusion::physical_plan::stream::RecordBatchStreamAdapter::new(Arc::clone(&schema), rows);
    Ok(QueryOutput {
        schema,
        stream: Box::pin(stream),
        notices: output.notices,
    })
}

fn plain_type(data_type: &DataType) -> DataType {
    let inner = |field: &Arc<Field>| Arc::new(field.as_ref().clone().with_data_type(plain_type(field.data_type())));
    match data_type {
        DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
        DataType::BinaryView | DataType::LargeBinary => DataType::Binary,
        DataType::List(field) | DataType::LargeList(field) => DataType::List(inner(field)),
        other => other.clone(),
    }
}

fn cast_batch(batch: &RecordBatch, schema: &SchemaRef) -> datafusion::error::Result<RecordBatch> {
    let columns = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(column, field)| {
            if column.data_type() == field.data_type() {
                Ok(Arc::clone(column))
            } else {
                cast(column, field.data_type())
            }
        })
        .collect::<Result<Vec<ArrayRef>, _>>()?;
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_name_is_a_table_and_the_rest_a_query() {
        assert_eq!(query("evo.nodes"), "SELECT * FROM evo.nodes");
        assert_eq!(query(" clade.evo.nodes "), "SELECT * FROM clade.evo.nodes");
        assert_eq!(query("SELECT 1"), "SELECT 1");
        assert_eq!(query("select a.b from a"), "select a.b from a");
    }

    #[test]
    fn the_ending_chooses_the_format() {
        assert_eq!(Kind::of(Path::new("a/b.PARQUET")).unwrap(), Kind::Parquet);
        assert_eq!(Kind::of(Path::new("b.csv")).unwrap(), Kind::Text(Format::Csv));
        assert!(Kind::of(Path::new("b.xlsx")).is_err());
        assert!(Kind::of(Path::new("b")).is_err());
    }
}
