//! One value as text.

use std::borrow::Cow;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::cli::error::CliError;

/// What stands for NULL in a table.
pub(super) const NULL: &str = "NULL";

/// Formats values of one batch.
pub(super) struct Cells<'a> {
    columns: Vec<(&'a dyn Array, ArrayFormatter<'a>)>,
}

impl<'a> Cells<'a> {
    /// Values as people read them.
    pub fn readable(batch: &'a RecordBatch) -> Result<Self, CliError> {
        const OPTIONS: FormatOptions<'static> = FormatOptions::new()
            .with_display_error(true)
            .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.3f"))
            .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.3fZ"));
        Self::new(batch, &OPTIONS)
    }

    /// Values as programs read them: full precision, RFC 3339.
    pub fn exact(batch: &'a RecordBatch) -> Result<Self, CliError> {
        const OPTIONS: FormatOptions<'static> = FormatOptions::new();
        Self::new(batch, &OPTIONS)
    }

    fn new(batch: &'a RecordBatch, options: &'a FormatOptions<'static>) -> Result<Self, CliError> {
        let columns = batch
            .columns()
            .iter()
            .map(|column| Ok((column.as_ref(), ArrayFormatter::try_new(column.as_ref(), options)?)))
            .collect::<Result<_, CliError>>()?;
        Ok(Self { columns })
    }

    /// The value of a row and column; none for NULL.
    pub fn value(&self, row: usize, column: usize) -> Result<Option<String>, CliError> {
        let (array, formatter) = &self.columns[column];
        if array.is_null(row) {
            return Ok(None);
        }
        Ok(Some(formatter.value(row).try_to_string()?))
    }
}

/// Whether values of a type stand at the right edge.
pub(super) fn is_right_aligned(data_type: &DataType) -> bool {
    data_type.is_numeric()
}

/// The text on one line, with nothing in it that moves the cursor or changes colours.
pub(super) fn one_line(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| c.is_control()) {
        return Cow::Borrowed(text);
    }
    let text = text.replace("\r\n", "\n");
    Cow::Owned(
        text.chars()
            .map(|c| match c {
                '\n' => '↵',
                '\t' => ' ',
                // Pictures of the control characters.
                '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('·'),
                c if c.is_control() => '·',
                c => c,
            })
            .collect(),
    )
}

/// Columns a text takes on a terminal.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// The text, cut to a number of columns with an ellipsis.
pub(super) fn truncated(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let room = columns.saturating_sub(1);
    let mut used = 0;
    let mut cut = String::new();
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide > room {
            break;
        }
        used += wide;
        cut.push(c);
    }
    cut.push('…');
    Cow::Owned(cut)
}
