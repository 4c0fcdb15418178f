//! Bounded reading of a table: enough rows to tell what its columns are.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use csv::StringRecord;

/// Most rows read from one file.
const MAX_ROWS: usize = 20_000;
/// Most bytes read from one file.
const MAX_BYTES: u64 = 32 << 20;
/// Texts that pandas reads as missing.
const MISSING: &[&str] = &[
    "", "NA", "N/A", "n/a", "NaN", "nan", "-nan", "-NaN", "NULL", "null", "None", "<NA>", "#N/A", "#NA",
];

/// How a CSV file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Format {
    /// Field separator.
    pub(crate) separator: char,
    /// False when the file is not UTF-8 and was read as Latin-1.
    pub(crate) utf8: bool,
}

/// The first rows of a CSV file.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    /// Column names.
    pub(crate) columns: Vec<String>,
    /// How the file is written.
    pub(crate) format: Format,
    /// Number of rows, estimated when the file is longer than what is read.
    pub(crate) row_count: usize,
    /// True when all rows were read.
    pub(crate) complete: bool,
    index: HashMap<String, usize>,
    rows: Vec<StringRecord>,
}

impl Table {
    /// Reads the start of a file.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes)?;
        let whole_file = bytes.len() as u64 == size;
        let (text, utf8) = decode(bytes, whole_file);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let separator = separator(text.lines().next().unwrap_or_default());
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(separator as u8)
            .flexible(true)
            .from_reader(text.as_bytes());
        let columns: Vec<String> = reader.headers()?.iter().map(str::to_owned).collect();
        let mut rows = Vec::new();
        let mut used = 0;
        for record in reader.records() {
            let record = record?;
            used = record.position().map_or(used, csv::Position::byte);
            if rows.len() == MAX_ROWS {
                break;
            }
            rows.push(record);
        }
        let complete = whole_file && rows.len() < MAX_ROWS;
        if !whole_file {
            rows.pop(); // The last one may be cut off.
        }
        let row_count = if complete {
            rows.len()
        } else {
            (size as f64 * rows.len() as f64 / used.max(1) as f64) as usize
        };
        let index = columns
            .iter()
            .cloned()
            .enumerate()
            .map(|(at, name)| (name, at))
            .collect();
        Ok(Self {
            columns,
            format: Format { separator, utf8 },
            row_count,
            complete,
            index,
            rows,
        })
    }

    /// Whether the table has this column.
    pub(crate) fn has(&self, column: &str) -> bool {
        self.index.contains_key(column)
    }

    /// Values of a column that are not missing, in row order.
    pub(crate) fn values<'a>(&'a self, column: &str) -> impl Iterator<Item = &'a str> + 'a {
        let at = self.index.get(column).copied().unwrap_or(usize::MAX);
        self.rows
            .iter()
            .filter_map(move |row| row.get(at))
            .filter(|value| !MISSING.contains(value))
    }

    /// Whether whole rows repeat.
    pub(crate) fn repeats_rows(&self) -> bool {
        let mut seen = HashSet::new();
        self.rows.iter().any(|row| !seen.insert(row.iter().collect::<Vec<_>>()))
    }

    /// Number of rows that were read.
    pub(crate) fn rows_read(&self) -> usize {
        self.rows.len()
    }
}

fn decode(bytes: Vec<u8>, whole: bool) -> (String, bool) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, true),
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let cut_off = !whole && error.as_bytes().len() - valid < 4;
            let bytes = error.into_bytes();
            if cut_off {
                (String::from_utf8_lossy(&bytes[..valid]).into_owned(), true)
            } else {
                (bytes.into_iter().map(char::from).collect(), false)
            }
        }
    }
}

fn separator(header: &str) -> char {
    let count = |separator: char| header.matches(separator).count();
    let mut best = ',';
    for candidate in [';', '\t', '|'] {
        if count(candidate) > count(best) {
            best = candidate;
        }
    }
    best
}
