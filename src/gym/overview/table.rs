//! Tables of delimited text.

use super::FileOverview;
use super::columns::{ColumnStats, described};
use super::read::{Part, Reader};
use crate::gym::table::Table;

/// Rows whose values are looked at.
const MOST_ROWS: usize = 50_000;
/// Cells that are looked at, so that a wide table costs no more than a long one.
const MOST_CELLS: usize = 4_000_000;

pub(super) fn describe(path: &str, out: &mut FileOverview, reader: &mut Reader) -> Result<(), String> {
    let Part { mut bytes, is_whole } = reader.part(path)?;
    if bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF") {
        return Err("not read: the file is UTF-16".to_owned());
    }
    if bytes.contains(&0) {
        return Err("not read: the file holds NUL bytes, so it is no text".to_owned());
    }
    if !is_whole {
        let end = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(bytes.len(), |at| at + 1);
        bytes.truncate(end);
    }
    let read = bytes.len();
    let table = Table::from_bytes(bytes);
    let names = table.columns().to_vec();
    out.columns = Some(names.len() as i64);
    out.rows_exact = is_whole;
    out.rows = Some(if is_whole {
        table.len() as i64
    } else if path.ends_with(".gz") {
        // How much a packed file holds is not known before its end.
        out.note = Some(format!("only the first {} rows were read", table.len()));
        table.len() as i64
    } else {
        let rows = table.len() as f64 * out.bytes as f64 / read.max(1) as f64;
        out.note = Some(format!("only the first {} rows were read", table.len()));
        rows.round() as i64
    });
    let (shown, left_out) = described((0..names.len()).collect::<Vec<_>>());
    let mut stats: Vec<ColumnStats> = shown.iter().map(|column| ColumnStats::new(&names[*column])).collect();
    let rows = table.len().min(MOST_ROWS).min(MOST_CELLS / names.len().max(1));
    for row in 0..rows {
        let values = table.row(row);
        for (stat, column) in stats.iter_mut().zip(&shown) {
            stat.add(values.get(*column).map_or("", |value| value));
        }
    }
    if rows < table.len() && out.note.is_none() {
        out.note = Some(format!("column facts are of the first {rows} rows"));
    }
    out.column_facts = stats.into_iter().map(ColumnStats::finish).collect();
    out.columns_left_out = left_out;
    Ok(())
}
