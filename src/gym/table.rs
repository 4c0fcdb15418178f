//! A delimited text file kept byte for byte: fields are ranges of the file, so a part of a table is written again
//! exactly as it was (quotes, number formats, encoding, line ends).

use std::borrow::Cow;
use std::io::{Read, Write};
use std::ops::Range;
use std::path::Path;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::gym::error::{GymError, io};

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// A table with a header.
#[derive(Debug, Clone)]
pub struct Table {
    bytes: Vec<u8>,
    delimiter: u8,
    newline: &'static [u8],
    bom: bool,
    utf8: bool,
    header: Option<Range<usize>>,
    columns: Vec<String>,
    records: Vec<Range<usize>>,
}

impl Table {
    /// Reads a table; `.gz` files are unpacked.
    pub fn read(path: &Path) -> Result<Self, GymError> {
        let mut bytes = Vec::new();
        let mut file = std::fs::File::open(path).map_err(io("open", path))?;
        if is_gzip(path) {
            MultiGzDecoder::new(file)
                .read_to_end(&mut bytes)
                .map_err(io("unpack", path))?;
        } else {
            file.read_to_end(&mut bytes).map_err(io("read", path))?;
        }
        if bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF") {
            return Err(GymError::table(path, "the file is UTF-16; convert it to UTF-8"));
        }
        Ok(Self::from_bytes(bytes))
    }

    /// Makes a table of text in memory.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        let bom = bytes.starts_with(BOM);
        let start = if bom { BOM.len() } else { 0 };
        let delimiter = find_delimiter(&bytes, start);
        let (mut records, newline) = split_records(&bytes, start, delimiter);
        let header = if records.is_empty() {
            None
        } else {
            Some(records.remove(0))
        };
        let utf8 = std::str::from_utf8(&bytes).is_ok();
        let mut table = Self {
            bytes,
            delimiter,
            newline,
            bom,
            utf8,
            header: header.clone(),
            columns: Vec::new(),
            records,
        };
        if let Some(range) = header {
            table.columns = table.texts(range).map(Cow::into_owned).collect();
        }
        table
    }

    /// Names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Position of a column.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c == name)
    }

    /// Whether there is a header line.
    pub fn has_header(&self) -> bool {
        self.header.is_some()
    }

    /// Number of data rows; blank lines are no rows.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are no data rows.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Number of fields of a row.
    pub fn width(&self, row: usize) -> usize {
        self.spans(self.records[row].clone()).count()
    }

    /// Text of one field; `None` when the row is too short.
    pub fn value(&self, row: usize, column: usize) -> Option<Cow<'_, str>> {
        self.spans(self.records[row].clone())
            .nth(column)
            .map(|s| self.decode(s))
    }

    /// Texts of a column; a field that a short row lacks is empty.
    pub fn column(&self, column: usize) -> Vec<Cow<'_, str>> {
        (0..self.len())
            .map(|row| self.value(row, column).unwrap_or(Cow::Borrowed("")))
            .collect()
    }

    /// Texts of a row.
    pub fn row(&self, row: usize) -> Vec<Cow<'_, str>> {
        self.texts(self.records[row].clone()).collect()
    }

    /// A table of the same format with other rows and columns.
    pub fn writer(&self) -> TableWriter<'_> {
        TableWriter {
            table: self,
            out: if self.bom { BOM.to_vec() } else { Vec::new() },
        }
    }

    fn texts(&self, record: Range<usize>) -> impl Iterator<Item = Cow<'_, str>> {
        self.spans(record).map(|s| self.decode(s))
    }

    fn spans(&self, record: Range<usize>) -> Fields<'_> {
        Fields {
            bytes: &self.bytes,
            delimiter: self.delimiter,
            next: Some(record.start),
            end: record.end,
        }
    }

    fn decode(&self, span: Range<usize>) -> Cow<'_, str> {
        let raw = &self.bytes[span];
        match unquote(raw) {
            Cow::Borrowed(b) => self.text(b),
            Cow::Owned(b) => Cow::Owned(self.text(&b).into_owned()),
        }
    }

    /// Text of bytes: UTF-8 if the whole file is, else Latin-1.
    fn text<'b>(&self, bytes: &'b [u8]) -> Cow<'b, str> {
        if self.utf8 {
            String::from_utf8_lossy(bytes)
        } else {
            Cow::Owned(bytes.iter().map(|b| char::from(*b)).collect())
        }
    }
}

/// Builds the text of a part of a table.
#[derive(Debug)]
pub struct TableWriter<'a> {
    table: &'a Table,
    out: Vec<u8>,
}

/// Where the text of a cell comes from.
#[derive(Debug, Clone)]
pub enum Cell<'a> {
    /// The bytes of a field, from a row and a column of a table.
    Field(&'a Table, usize, usize),
    /// New text, quoted where needed.
    Text(Cow<'a, str>),
}

impl<'a> TableWriter<'a> {
    /// Writes the header as it is.
    pub fn header(&mut self) {
        if let Some(range) = self.table.header.clone() {
            self.out.extend_from_slice(&self.table.bytes[range]);
            self.out.extend_from_slice(self.table.newline);
        }
    }

    /// Writes a row of the table as it is.
    pub fn copy(&mut self, row: usize) {
        self.out
            .extend_from_slice(&self.table.bytes[self.table.records[row].clone()]);
        self.out.extend_from_slice(self.table.newline);
    }

    /// Writes a row of cells.
    pub fn row<'c>(&mut self, cells: impl IntoIterator<Item = Cell<'c>>) {
        for (n, cell) in cells.into_iter().enumerate() {
            if n > 0 {
                self.out.push(self.table.delimiter);
            }
            match cell {
                Cell::Field(source, row, column)
                    if source.delimiter == self.table.delimiter && source.utf8 == self.table.utf8 =>
                {
                    if let Some(span) = source.spans(source.records[row].clone()).nth(column) {
                        self.out.extend_from_slice(&source.bytes[span]);
                    }
                }
                Cell::Field(source, row, column) => {
                    self.text(&source.value(row, column).unwrap_or_default());
                }
                Cell::Text(text) => self.text(&text),
            }
        }
        self.out.extend_from_slice(self.table.newline);
    }

    fn text(&mut self, text: &str) {
        let delimiter = char::from(self.table.delimiter);
        let quoted = text.contains(['"', '\n', '\r']) || text.contains(delimiter);
        let text: Cow<'_, str> = if quoted {
            format!("\"{}\"", text.replace('"', "\"\"")).into()
        } else {
            text.into()
        };
        if self.table.utf8 {
            self.out.extend_from_slice(text.as_bytes());
        } else {
            self.out
                .extend(text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')));
        }
    }

    /// The text.
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// Writes the text to a file, packed when its name ends in `.gz`.
    pub fn save(self, path: &Path) -> Result<(), GymError> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(io("create", parent))?;
        }
        if is_gzip(path) {
            let file = std::fs::File::create(path).map_err(io("create", path))?;
            let mut encoder = GzEncoder::new(file, Compression::default());
            encoder.write_all(&self.out).map_err(io("write", path))?;
            encoder.finish().map_err(io("write", path))?;
            Ok(())
        } else {
            std::fs::write(path, &self.out).map_err(io("write", path))
        }
    }
}

/// Fields of one record, as ranges of the file with their quotes.
struct Fields<'a> {
    bytes: &'a [u8],
    delimiter: u8,
    next: Option<usize>,
    end: usize,
}

impl Iterator for Fields<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let start = self.next?;
        let mut at = start;
        let mut quoted = self.bytes[..self.end].get(at) == Some(&b'"');
        if quoted {
            at += 1;
        }
        while at < self.end {
            let byte = self.bytes[at];
            if quoted {
                if byte == b'"' {
                    if self.bytes[..self.end].get(at + 1) == Some(&b'"') {
                        at += 1;
                    } else {
                        quoted = false;
                    }
                }
            } else if byte == self.delimiter {
                self.next = Some(at + 1);
                return Some(start..at);
            }
            at += 1;
        }
        self.next = None;
        Some(start..self.end)
    }
}

fn unquote(raw: &[u8]) -> Cow<'_, [u8]> {
    let Some(inner) = raw.strip_prefix(b"\"") else {
        return Cow::Borrowed(raw);
    };
    let mut out = Vec::with_capacity(inner.len());
    let mut quoted = true;
    let mut at = 0;
    while at < inner.len() {
        if quoted && inner[at] == b'"' {
            if inner.get(at + 1) == Some(&b'"') {
                at += 1;
                out.push(b'"');
            } else {
                quoted = false;
            }
        } else {
            out.push(inner[at]);
        }
        at += 1;
    }
    Cow::Owned(out)
}

/// Splits a text into records (without line ends), leaving blank lines out; and the text's line end.
fn split_records(bytes: &[u8], start: usize, delimiter: u8) -> (Vec<Range<usize>>, &'static [u8]) {
    let mut records = Vec::new();
    let mut newline: Option<&'static [u8]> = None;
    let (mut begin, mut at, mut quoted, mut field_start) = (start, start, false, true);
    let blank = |range: &Range<usize>| {
        bytes[range.clone()]
            .iter()
            .all(|b| matches!(b, b' ' | b'\t') && *b != delimiter)
    };
    while at < bytes.len() {
        let byte = bytes[at];
        if quoted {
            if byte == b'"' {
                if bytes.get(at + 1) == Some(&b'"') {
                    at += 1;
                } else {
                    quoted = false;
                }
            }
        } else if byte == b'"' && field_start {
            quoted = true;
            field_start = false;
        } else if byte == delimiter {
            field_start = true;
        } else if byte == b'\n' || byte == b'\r' {
            let crlf = byte == b'\r' && bytes.get(at + 1) == Some(&b'\n');
            let record = begin..at;
            if !blank(&record) {
                records.push(record);
                newline.get_or_insert(if crlf {
                    b"\r\n"
                } else if byte == b'\r' {
                    b"\r"
                } else {
                    b"\n"
                });
            }
            at += usize::from(crlf);
            begin = at + 1;
            field_start = true;
        } else {
            field_start = false;
        }
        at += 1;
    }
    let record = begin..bytes.len();
    if begin < bytes.len() && !blank(&record) {
        records.push(record);
    }
    (records, newline.unwrap_or(b"\n"))
}

/// The delimiter that cuts the header into most fields, such that the first rows have as many.
fn find_delimiter(bytes: &[u8], start: usize) -> u8 {
    let head = &bytes[..bytes.len().min(start + 256 * 1024)];
    let mut best = (b',', 1, false);
    for delimiter in [b',', b';', b'\t', b'|'] {
        let (records, _) = split_records(head, start, delimiter);
        let width = |r: &Range<usize>| {
            Fields {
                bytes: head,
                delimiter,
                next: Some(r.start),
                end: r.end,
            }
            .count()
        };
        let Some(header) = records.first().map(&width) else {
            continue;
        };
        // The last record may be cut by the end of the sample.
        let rows = &records[1..records.len().saturating_sub(1).clamp(1, 21)];
        let even = rows.iter().all(|r| width(r) == header);
        if header > 1 && (even && !best.2 || even == best.2 && header > best.1) {
            best = (delimiter, header, even);
        }
    }
    best.0
}

fn is_gzip(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    fn table(text: &str) -> Table {
        Table::from_bytes(text.as_bytes().to_vec())
    }

    #[test]
    fn quotes_newlines_and_blank_lines() {
        let t = table("id,text\r\n\r\n1,\"a \"\"b\"\", c\nd\"\r\n   \r\n2,x\"y\r\n");
        assert_eq!(t.columns(), ["id", "text"]);
        assert_eq!(t.len(), 2);
        assert_eq!(t.value(0, 1).unwrap(), "a \"b\", c\nd");
        assert_eq!(t.value(1, 1).unwrap(), "x\"y");
        let mut w = t.writer();
        w.header();
        w.copy(0);
        w.copy(1);
        assert_eq!(w.out, b"id,text\r\n1,\"a \"\"b\"\", c\nd\"\r\n2,x\"y\r\n");
    }

    #[test]
    fn delimiters_and_latin1() {
        let t = Table::from_bytes(b"a\xF1o;importe;precio\n1;2,5;3,5\n2;1,0;4,0\n".to_vec());
        assert_eq!(t.columns(), ["año", "importe", "precio"]);
        assert_eq!(t.value(1, 1).unwrap(), "1,0");
        assert_eq!(table("a\tb\n1,5\t2\n").columns(), ["a", "b"]);
        assert_eq!(table("only\n1\n").columns(), ["only"]);
        assert_eq!(table("").len(), 0);
        assert!(!table("").has_header());
    }

    #[test]
    fn byte_order_mark_is_no_part_of_the_first_name_and_is_kept() {
        let t = Table::from_bytes(b"\xEF\xBB\xBFid,x\n1,2\n".to_vec());
        assert_eq!(t.columns(), ["id", "x"]);
        let mut w = t.writer();
        w.header();
        assert_eq!(w.out, b"\xEF\xBB\xBFid,x\n");
    }

    #[test]
    fn widths_of_bad_rows() {
        let t = table("id,f,target\n1,2\n3,4,5,6\n");
        assert_eq!((t.width(0), t.width(1)), (2, 4));
        assert_eq!(t.value(0, 2), None);
    }

    proptest! {
        #[test]
        fn whole_rows_survive_byte_for_byte(rows in prop::collection::vec(prop::collection::vec("[a-z,\"\n é]{0,6}", 3), 1..8)) {
            let head = table("a,b,c\nx,y,z\n");
            let mut w = head.writer();
            w.header();
            for row in &rows {
                // A row of blanks would be a blank line only when it has one column.
                w.row(row.iter().map(|v| Cell::Text(v.as_str().into())));
            }
            let text = w.out.clone();
            let back = Table::from_bytes(text.clone());
            prop_assert_eq!(back.len(), rows.len());
            for (n, row) in rows.iter().enumerate() {
                prop_assert_eq!(&back.row(n), row);
            }
            let mut again = back.writer();
            again.header();
            (0..back.len()).for_each(|n| again.copy(n));
            prop_assert_eq!(again.out, text);
        }
    }
}
