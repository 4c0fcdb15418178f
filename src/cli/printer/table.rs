//! Aligned columns for reading, cut to the terminal's width; rows that are too wide even so stand as records.

use std::io::Write;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::RowWriter;
use super::cell::{Cells, NULL, is_right_aligned, one_line, truncated, width};
use crate::cli::error::CliError;
use crate::cli::terminal::{Look, Terminal};

/// Rows that are looked at before the widths of the columns are fixed.
const SAMPLE: usize = 1_000;

/// Columns narrower than this cannot be read.
const NARROWEST: usize = 8;

/// Between two columns.
const SEPARATOR: &str = " │ ";

/// Writes a table.
pub(super) struct TableWriter {
    terminal: Terminal,
    names: Vec<String>,
    right: Vec<bool>,
    /// Rows held back until the widths are known.
    held: Vec<Vec<Option<String>>>,
    layout: Option<Layout>,
    rows: usize,
}

/// How rows are laid out.
enum Layout {
    /// Columns of these widths.
    Columns(Vec<usize>),
    /// One line a column; the widest name.
    Records(usize),
}

impl TableWriter {
    pub fn new(schema: &SchemaRef, terminal: Terminal) -> Self {
        Self {
            terminal,
            names: schema
                .fields()
                .iter()
                .map(|field| one_line(field.name()).into_owned())
                .collect(),
            right: schema
                .fields()
                .iter()
                .map(|field| is_right_aligned(field.data_type()))
                .collect(),
            held: Vec::new(),
            layout: None,
            rows: 0,
        }
    }

    /// Fixes the layout by the rows that are held, and writes them.
    fn start(&mut self, out: &mut dyn Write) -> Result<(), CliError> {
        let natural: Vec<usize> = (0..self.names.len())
            .map(|column| {
                let cells = self
                    .held
                    .iter()
                    .map(|row| row[column].as_deref().map_or(width(NULL), width));
                cells.chain([width(&self.names[column])]).max().unwrap_or(0)
            })
            .collect();
        let layout = layout(&self.names, natural, self.terminal.width);
        if let Layout::Columns(widths) = &layout {
            self.write_header(out, widths)?;
        }
        self.layout = Some(layout);
        for row in std::mem::take(&mut self.held) {
            self.write_row(out, &row)?;
        }
        Ok(())
    }

    fn write_header(&self, out: &mut dyn Write, widths: &[usize]) -> Result<(), CliError> {
        let mut line = String::from(" ");
        for (column, name) in self.names.iter().enumerate() {
            if column > 0 {
                line.push_str(SEPARATOR);
            }
            let text = truncated(name, widths[column]);
            let pad = widths[column] - width(&text);
            let painted = self.terminal.paint(Look::Bold, &text);
            line.push_str(&aligned(&painted, pad, self.right[column], column + 1 == widths.len()));
        }
        let rule: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
        writeln!(out, "{}\n{}", line.trim_end(), rule.join("┼"))?;
        Ok(())
    }

    fn write_row(&mut self, out: &mut dyn Write, row: &[Option<String>]) -> Result<(), CliError> {
        self.rows += 1;
        match &self.layout {
            Some(Layout::Records(widest)) => self.write_record(out, row, *widest),
            Some(Layout::Columns(widths)) => {
                let mut line = String::from(" ");
                for (column, value) in row.iter().enumerate() {
                    if column > 0 {
                        line.push_str(SEPARATOR);
                    }
                    // Without a terminal nothing is cut: a later row may be wider than the sample.
                    let limit = if self.terminal.is_interactive() {
                        widths[column]
                    } else {
                        usize::MAX
                    };
                    let text = truncated(value.as_deref().unwrap_or(NULL), limit);
                    let pad = widths[column].saturating_sub(width(&text));
                    let painted = self.painted(value.is_none(), &text);
                    line.push_str(&aligned(&painted, pad, self.right[column], column + 1 == row.len()));
                }
                writeln!(out, "{}", line.trim_end())?;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn write_record(&self, out: &mut dyn Write, row: &[Option<String>], widest: usize) -> Result<(), CliError> {
        let title = format!("─[ row {} ]", self.rows);
        let rule = "─".repeat(widest.saturating_sub(width(&title)) + 12);
        writeln!(out, "{}", self.terminal.paint(Look::Dim, format!("{title}{rule}")))?;
        let room = self
            .terminal
            .width
            .map_or(usize::MAX, |columns| columns.saturating_sub(widest + 4).max(NARROWEST));
        for (name, value) in self.names.iter().zip(row) {
            let text = truncated(value.as_deref().unwrap_or(NULL), room);
            let pad = " ".repeat(widest - width(name));
            let name = self.terminal.paint(Look::Bold, name);
            writeln!(out, " {name}{pad}{SEPARATOR}{}", self.painted(value.is_none(), &text))?;
        }
        Ok(())
    }

    fn painted(&self, is_null: bool, text: &str) -> String {
        if is_null {
            self.terminal.paint(Look::Dim, text)
        } else {
            text.to_owned()
        }
    }
}

impl RowWriter for TableWriter {
    fn batch(&mut self, out: &mut dyn Write, batch: &RecordBatch) -> Result<(), CliError> {
        let cells = Cells::readable(batch)?;
        for row in 0..batch.num_rows() {
            let values = (0..batch.num_columns())
                .map(|column| Ok(cells.value(row, column)?.map(|value| one_line(&value).into_owned())))
                .collect::<Result<Vec<_>, CliError>>()?;
            if self.layout.is_some() {
                self.write_row(out, &values)?;
                continue;
            }
            self.held.push(values);
            if self.held.len() == SAMPLE {
                self.start(out)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write) -> Result<(), CliError> {
        if self.layout.is_none() { self.start(out) } else { Ok(()) }
    }
}

/// A cell with its padding; the last one of a line needs none behind it.
fn aligned(text: &str, pad: usize, right: bool, last: bool) -> String {
    let pad = " ".repeat(pad);
    match (right, last) {
        (true, _) => format!("{pad}{text}"),
        (false, true) => text.to_owned(),
        (false, false) => format!("{text}{pad}"),
    }
}

/// Columns of their natural widths where they fit, cut where they must be, records where that leaves nothing to read.
fn layout(names: &[String], natural: Vec<usize>, room: Option<usize>) -> Layout {
    let Some(room) = room else {
        return Layout::Columns(natural);
    };
    let room = room.saturating_sub(2 + width(SEPARATOR) * natural.len().saturating_sub(1));
    if natural.iter().sum::<usize>() <= room {
        return Layout::Columns(natural);
    }
    let least: usize = natural.iter().map(|width| (*width).min(NARROWEST)).sum();
    if least > room {
        return Layout::Records(names.iter().map(|name| width(name)).max().unwrap_or(0));
    }
    // The widest columns give way first: find the cap at which everything fits.
    let total = |cap: usize| natural.iter().map(|width| (*width).min(cap)).sum::<usize>();
    let (mut fits, mut too_wide) = (NARROWEST, room + 1);
    while too_wide - fits > 1 {
        let middle = usize::midpoint(fits, too_wide);
        if total(middle) <= room {
            fits = middle
        } else {
            too_wide = middle
        }
    }
    let mut widths: Vec<usize> = natural.iter().map(|width| (*width).min(fits)).collect();
    let mut spare = room - widths.iter().sum::<usize>();
    for (width, natural) in widths.iter_mut().zip(&natural) {
        if spare > 0 && *width < *natural {
            *width += 1;
            spare -= 1;
        }
    }
    Layout::Columns(widths)
}
