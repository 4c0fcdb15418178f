//! Aligned columns for reading. On a terminal, cells that are too wide go over several lines; ids and numbers stay whole, so
//! that they can be pasted. Where that leaves nothing to read, and for one wide row, a row stands as a record.

use std::io::Write;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::RowWriter;
use super::cell::{Cells, NULL, is_right_aligned, one_line, truncated, width};
use super::text::plain_text;
use super::wrap::{Lines, wrap};
use crate::cli::error::CliError;
use crate::cli::terminal::{Look, Terminal};

/// Rows that are looked at before the widths of the columns are fixed.
const SAMPLE: usize = 1_000;

/// Columns narrower than this cannot be read.
const NARROWEST: usize = 8;

/// Longest id that a column is kept whole for.
const LONGEST_ID: usize = 64;

/// Most lines of a cell.
const MOST_LINES: usize = 4;

/// One row that is wider than this stands as a record even where no terminal sets a limit.
const WIDE_ROW: usize = 120;

/// Between two columns.
const SEPARATOR: &str = " │ ";

/// Writes a table.
pub(super) struct TableWriter {
    terminal: Terminal,
    names: Vec<String>,
    kinds: Vec<Kind>,
    /// Rows held back until the widths are known.
    held: Vec<Vec<Option<String>>>,
    /// The value of a result of one column as it is, while there is only one row.
    only: Option<String>,
    layout: Option<Layout>,
    rows: usize,
    is_cut: bool,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A number: at the right edge, never broken.
    Number,
    /// An id: never broken.
    Id,
    /// Anything else.
    Text,
}

/// How rows are laid out.
enum Layout {
    /// Columns of these widths.
    Columns(Vec<usize>),
    /// One line a column.
    Records {
        /// The widest name.
        widest: usize,
        /// Most lines of a value.
        lines: usize,
    },
}

impl TableWriter {
    pub fn new(schema: &SchemaRef, terminal: Terminal) -> Self {
        let kind = |name: &str, is_number: bool| match name {
            _ if is_number => Kind::Number,
            _ if name == "id" || name.ends_with("_id") => Kind::Id,
            _ => Kind::Text,
        };
        Self {
            terminal,
            names: schema
                .fields()
                .iter()
                .map(|field| one_line(field.name()).into_owned())
                .collect(),
            kinds: schema
                .fields()
                .iter()
                .map(|field| kind(field.name(), is_right_aligned(field.data_type())))
                .collect(),
            held: Vec::new(),
            only: None,
            layout: None,
            rows: 0,
            is_cut: false,
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
        let layout = self.layout(&natural);
        if let Layout::Columns(widths) = &layout {
            self.write_header(out, widths)?;
        }
        self.layout = Some(layout);
        for row in std::mem::take(&mut self.held) {
            self.write_row(out, &row)?;
        }
        Ok(())
    }

    /// Columns of their natural widths where they fit; a record for one row; narrower columns where they can still be read;
    /// else records.
    fn layout(&self, natural: &[usize]) -> Layout {
        let is_one = self.held.len() == 1;
        let records = Layout::Records {
            widest: self.names.iter().map(|name| width(name)).max().unwrap_or(0),
            lines: if is_one { usize::MAX } else { MOST_LINES },
        };
        let taken = 2 + width(SEPARATOR) * natural.len().saturating_sub(1);
        let limit = match self.terminal.width {
            Some(columns) => columns,
            None if is_one => WIDE_ROW,
            None => usize::MAX,
        };
        let room = limit.saturating_sub(taken);
        if natural.iter().sum::<usize>() <= room {
            return Layout::Columns(natural.to_vec());
        }
        if is_one {
            return records;
        }
        narrowed(&self.kinds, natural, room).map_or(records, Layout::Columns)
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
            line.push_str(&aligned(&painted, pad, self.kinds[column], column + 1 == widths.len()));
        }
        let rule: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
        writeln!(out, "{}\n{}", line.trim_end(), rule.join("┼"))?;
        Ok(())
    }

    fn write_row(&mut self, out: &mut dyn Write, row: &[Option<String>]) -> Result<(), CliError> {
        self.rows += 1;
        match self.layout.take() {
            Some(Layout::Records { widest, lines }) => {
                self.write_record(out, row, widest, lines)?;
                self.layout = Some(Layout::Records { widest, lines });
            }
            Some(Layout::Columns(widths)) => {
                self.write_cells(out, row, &widths)?;
                self.layout = Some(Layout::Columns(widths));
            }
            None => {}
        }
        Ok(())
    }

    fn write_cells(&mut self, out: &mut dyn Write, row: &[Option<String>], widths: &[usize]) -> Result<(), CliError> {
        let cells: Vec<Lines> = row
            .iter()
            .zip(widths)
            .map(|(value, columns)| self.broken(value.as_deref(), *columns, MOST_LINES))
            .collect();
        let height = cells.iter().map(|cell| cell.lines.len()).max().unwrap_or(1);
        for line_no in 0..height {
            let mut line = String::from(" ");
            for (column, cell) in cells.iter().enumerate() {
                if column > 0 {
                    line.push_str(SEPARATOR);
                }
                let text = cell.lines.get(line_no).map_or("", String::as_str);
                let pad = widths[column].saturating_sub(width(text));
                let painted = self.painted(row[column].is_none(), text);
                line.push_str(&aligned(&painted, pad, self.kinds[column], column + 1 == row.len()));
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        self.is_cut |= cells.iter().any(|cell| cell.is_cut);
        Ok(())
    }

    fn write_record(
        &mut self,
        out: &mut dyn Write,
        row: &[Option<String>],
        widest: usize,
        lines: usize,
    ) -> Result<(), CliError> {
        // A single record needs no title.
        if lines == MOST_LINES {
            let title = format!("─[ row {} ]", self.rows);
            let rule = "─".repeat(widest.saturating_sub(width(&title)) + 12);
            writeln!(out, "{}", self.terminal.paint(Look::Dim, format!("{title}{rule}")))?;
        }
        let room = self
            .terminal
            .width
            .map_or(usize::MAX, |columns| columns.saturating_sub(widest + 4).max(NARROWEST));
        for (name, value) in self.names.iter().zip(row) {
            let cell = self.broken(value.as_deref(), room, lines);
            let pad = " ".repeat(widest - width(name));
            let mut name = format!("{}{pad}", self.terminal.paint(Look::Bold, name));
            for text in &cell.lines {
                let text = self.painted(value.is_none(), text);
                writeln!(out, "{}", format!(" {name}{SEPARATOR}{text}").trim_end())?;
                name = " ".repeat(widest);
            }
            self.is_cut |= cell.is_cut;
        }
        Ok(())
    }

    /// The lines of a cell. Without a terminal nothing is broken: a later row may be wider than the sample.
    fn broken(&self, value: Option<&str>, columns: usize, most: usize) -> Lines {
        let columns = if self.terminal.is_interactive() {
            columns
        } else {
            usize::MAX
        };
        wrap(value.unwrap_or(NULL), columns, most)
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
                .map(|column| cells.value(row, column))
                .collect::<Result<Vec<_>, CliError>>()?;
            self.only = match values.as_slice() {
                [value] if self.held.is_empty() && self.layout.is_none() => value.clone(),
                _ => None,
            };
            let values: Vec<_> = values
                .into_iter()
                .map(|value| value.map(|value| one_line(&value).into_owned()))
                .collect();
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
        // One text of several lines, such as a program, is written as it is.
        if let Some(text) = self.only.take().filter(|text| text.trim_end().contains('\n')) {
            out.write_all(plain_text(&text).as_bytes())?;
            return Ok(());
        }
        if self.layout.is_none() { self.start(out) } else { Ok(()) }
    }

    fn is_cut(&self) -> bool {
        self.is_cut
    }
}

/// A cell with its padding; the last one of a line needs none behind it.
fn aligned(text: &str, pad: usize, kind: Kind, last: bool) -> String {
    let pad = " ".repeat(pad);
    match (kind, last) {
        (Kind::Number, _) => format!("{pad}{text}"),
        (_, true) => text.to_owned(),
        (_, false) => format!("{text}{pad}"),
    }
}

/// Widths that fit into the room, the widest columns of text giving way first; none when there is nothing to read then.
fn narrowed(kinds: &[Kind], natural: &[usize], room: usize) -> Option<Vec<usize>> {
    let is_whole = |column: usize| match kinds[column] {
        Kind::Number => true,
        Kind::Id => natural[column] <= LONGEST_ID,
        Kind::Text => false,
    };
    let capped = |cap: usize| -> Vec<usize> {
        let widths = natural.iter().enumerate();
        widths
            .map(|(column, width)| if is_whole(column) { *width } else { (*width).min(cap) })
            .collect()
    };
    let total = |cap: usize| capped(cap).iter().sum::<usize>();
    if total(NARROWEST) > room {
        return None;
    }
    // The largest cap at which everything fits.
    let (mut fits, mut too_wide) = (NARROWEST, room + 1);
    while too_wide - fits > 1 {
        let middle = usize::midpoint(fits, too_wide);
        if total(middle) <= room {
            fits = middle;
        } else {
            too_wide = middle;
        }
    }
    let mut widths = capped(fits);
    let mut spare = room - widths.iter().sum::<usize>();
    for (width, natural) in widths.iter_mut().zip(natural) {
        if spare > 0 && *width < *natural {
            *width += 1;
            spare -= 1;
        }
    }
    Some(widths)
}
