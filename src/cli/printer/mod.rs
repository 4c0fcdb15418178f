//! The only writer of results: rows in the chosen format to standard output, everything else to standard error.

mod cell;
mod csv;
mod json;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod wrap;

use std::io::Write;
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::ipc::writer::StreamWriter;
use clap::ValueEnum;
use futures::StreamExt;

use super::error::CliError;
use super::output::standard_output;
use super::terminal::{Look, Terminal, note};
use crate::engine::{Notice, QueryOutput};

pub use text::{counted, dollars, duration, log_end, numbered, score, thousands, unified_diff, wrapped};

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// Aligned columns for reading.
    #[default]
    Table,
    /// One JSON array of row objects.
    Json,
    /// CSV with a header.
    Csv,
    /// Arrow IPC stream.
    Arrow,
}

/// Writes results to standard output.
pub struct Printer {
    out: Box<dyn Write + Send>,
    format: Format,
    terminal: Terminal,
    /// Standard error, for the notes.
    stderr: Terminal,
    /// Whether row counts and times are noted.
    notes: bool,
    arrow_results: usize,
    json_results: usize,
}

/// One format's writer of one result.
trait RowWriter {
    fn batch(&mut self, out: &mut dyn Write, batch: &RecordBatch) -> Result<(), CliError>;
    fn finish(&mut self, out: &mut dyn Write) -> Result<(), CliError>;

    /// Whether a value was not shown whole.
    fn is_cut(&self) -> bool {
        false
    }
}

impl Printer {
    /// A printer to standard output. Arrow is binary and refused on a terminal.
    pub fn stdout(format: Format, terminal: Terminal, stderr: Terminal) -> Result<Self, CliError> {
        if format == Format::Arrow && terminal.is_interactive() {
            return Err(CliError::Usage(
                "--format arrow writes binary data: send it to a file or a pipe, not to a terminal".to_owned(),
            ));
        }
        Ok(Self::new(standard_output(), format, terminal, stderr))
    }

    /// A printer to any writer.
    pub fn new(out: Box<dyn Write + Send>, format: Format, terminal: Terminal, stderr: Terminal) -> Self {
        Self {
            out,
            format,
            terminal,
            stderr,
            notes: true,
            arrow_results: 0,
            json_results: 0,
        }
    }

    /// How rows are written.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Chooses how rows are written from now on.
    pub fn set_format(&mut self, format: Format) -> Result<(), CliError> {
        if format == Format::Arrow && self.terminal.is_interactive() {
            return Err(CliError::Usage(
                "arrow is binary and cannot be shown on a terminal".to_owned(),
            ));
        }
        self.format = format;
        Ok(())
    }

    /// Whether row counts and times are noted.
    pub fn set_notes(&mut self, notes: bool) {
        self.notes = notes;
    }

    /// The terminal behind the output.
    pub fn terminal(&self) -> Terminal {
        self.terminal
    }

    /// Writes the rows of a result as they come; returns their number.
    pub async fn print(&mut self, output: QueryOutput) -> Result<usize, CliError> {
        self.print_since(output, Instant::now()).await
    }

    /// The same for a statement that was begun earlier; the time that is noted counts from there.
    pub async fn print_since(&mut self, output: QueryOutput, started: Instant) -> Result<usize, CliError> {
        let QueryOutput {
            schema,
            mut stream,
            notices,
        } = output;
        for notice in &notices {
            match notice {
                Notice::Info(text) if self.notes && self.format == Format::Table => {
                    note(self.stderr.paint(Look::Dim, text));
                }
                Notice::Info(_) => {}
                Notice::Warning(text) => warn(self.stderr, text),
            }
        }
        if schema.fields().is_empty() {
            // A statement without a result may still have work to do.
            while let Some(batch) = stream.next().await {
                batch?;
            }
            return Ok(0);
        }
        let mut writer = self.writer(&schema)?;
        let mut rows = 0;
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            rows += batch.num_rows();
            writer.batch(&mut self.out, &batch)?;
        }
        writer.finish(&mut self.out)?;
        self.out.flush()?;
        if self.notes && self.format == Format::Table {
            let count = counted(u64::try_from(rows).unwrap_or(u64::MAX), "row");
            let seconds = started.elapsed().as_secs_f64();
            let cut = if writer.is_cut() {
                "; … stands for text left out, --format csv or json shows all"
            } else {
                ""
            };
            note(self.stderr.paint(Look::Dim, format!("({count}, {seconds:.3} s{cut})")));
        }
        Ok(rows)
    }

    /// Writes a text as it is.
    pub fn text(&mut self, text: &str) -> Result<(), CliError> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()?;
        Ok(())
    }

    /// Writes a line of text.
    pub fn line(&mut self, text: impl std::fmt::Display) -> Result<(), CliError> {
        writeln!(self.out, "{text}")?;
        self.out.flush()?;
        Ok(())
    }

    /// Ends a command: a JSON reader gets an array even where no statement had a result.
    pub fn finish(&mut self) -> Result<(), CliError> {
        if self.format == Format::Json && self.json_results == 0 {
            writeln!(self.out, "[]")?;
        }
        self.out.flush()?;
        Ok(())
    }

    fn writer(&mut self, schema: &SchemaRef) -> Result<Box<dyn RowWriter + Send>, CliError> {
        Ok(match self.format {
            Format::Table => Box::new(table::TableWriter::new(schema, self.terminal)),
            Format::Json => {
                self.json_results += 1;
                Box::new(json::JsonWriter::new())
            }
            Format::Csv => Box::new(csv::CsvWriter::new(schema)),
            Format::Arrow => {
                self.arrow_results += 1;
                if self.arrow_results > 1 {
                    return Err(CliError::Usage(
                        "--format arrow holds one result, and these statements have several: run them one by one"
                            .to_owned(),
                    ));
                }
                Box::new(ArrowWriter(Some(StreamWriter::try_new(Vec::new(), schema)?)))
            }
        })
    }
}

/// Says on standard error why a result may not be what was meant.
pub fn warn(stderr: Terminal, text: &str) {
    note(format!("{} {text}", stderr.paint(Look::Yellow, "note:")));
}

/// Arrow IPC stream: encoded batch by batch into a buffer that is passed on at once.
struct ArrowWriter(Option<StreamWriter<Vec<u8>>>);

impl ArrowWriter {
    fn pass_on(&mut self, out: &mut dyn Write) -> Result<(), CliError> {
        if let Some(writer) = &mut self.0 {
            out.write_all(writer.get_ref())?;
            writer.get_mut().clear();
        }
        Ok(())
    }
}

impl RowWriter for ArrowWriter {
    fn batch(&mut self, out: &mut dyn Write, batch: &RecordBatch) -> Result<(), CliError> {
        if let Some(writer) = &mut self.0 {
            writer.write(batch)?;
        }
        self.pass_on(out)
    }

    fn finish(&mut self, out: &mut dyn Write) -> Result<(), CliError> {
        if let Some(writer) = &mut self.0 {
            writer.finish()?;
        }
        self.pass_on(out)
    }
}
