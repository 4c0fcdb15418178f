//! Encoding of hot rows: one blob a table and commit.
//!
//! Arrow IPC spends over 2 kB of offsets and padding on one row of a wide table; this encoding spends one bit a column
//! and the bytes of the values, and decodes straight into builders, so that many one-row commits become one batch.
//! A blob starts with a flag byte; the rest, zstd-compressed when that is smaller, is row after row: a bitmap of the
//! columns that are not NULL, then their values. Text and lists carry varint lengths, integers are zigzag varints,
//! floats and timestamps are 8 little-endian bytes. Which columns a blob holds is told by its layout.

use std::cell::RefCell;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, Int64Type, TimestampMicrosecondType};

use crate::column::ColumnBuilder;
use crate::error::{Result, StoreError};
use crate::spec::{ColumnType, TableSpec};

const PLAIN: u8 = 0;
const ZSTD: u8 = 1;
/// Smaller blobs are not worth the call.
const COMPRESS_FROM: usize = 256;
const LEVEL: i32 = 1;
/// No blob decodes to more; a larger length in a frame header is damage.
const MAX_DECODED: usize = 1 << 31;

thread_local! {
    static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
}

/// Columns of a blob, in the order they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    columns: Vec<(String, ColumnType)>,
}

impl Layout {
    pub(crate) fn of(spec: &TableSpec) -> Self {
        Self {
            columns: spec.columns.iter().map(|c| (c.name.clone(), c.column_type)).collect(),
        }
    }

    /// Text form that is kept in the database: `name type` pairs, one a line.
    pub(crate) fn to_text(&self) -> String {
        self.columns
            .iter()
            .map(|(name, ty)| format!("{name} {}", ty.as_str()))
            .collect::<Vec<_>>()
            .join("\n")
    }

    pub(crate) fn parse(table: &str, text: &str) -> Result<Self> {
        let columns: Option<Vec<_>> = text
            .lines()
            .map(|line| {
                let (name, ty) = line.split_once(' ')?;
                Some((name.to_owned(), ColumnType::parse(ty)?))
            })
            .collect();
        columns
            .map(|columns| Self { columns })
            .ok_or_else(|| StoreError::Corrupt {
                subject: format!("layout of table {table}"),
                reason: format!("not a layout: {text:?}"),
            })
    }

    pub(crate) fn columns(&self) -> impl Iterator<Item = (&str, ColumnType)> {
        self.columns.iter().map(|(name, ty)| (name.as_str(), *ty))
    }
}

/// Encodes the rows of a batch of the table's public schema.
pub(crate) fn encode(batch: &RecordBatch) -> Vec<u8> {
    let mut raw = Vec::with_capacity(64 + batch.get_array_memory_size() / 2);
    raw.push(PLAIN);
    for row in 0..batch.num_rows() {
        let bitmap = raw.len();
        raw.resize(bitmap + batch.num_columns().div_ceil(8), 0);
        for (index, column) in batch.columns().iter().enumerate() {
            if column.is_valid(row) {
                raw[bitmap + index / 8] |= 1 << (index % 8);
                encode_cell(column, row, &mut raw);
            }
        }
    }
    if raw.len() < COMPRESS_FROM {
        return raw;
    }
    match compress(&raw[1..]) {
        Some(packed) if packed.len() + 1 < raw.len() => {
            let mut blob = Vec::with_capacity(packed.len() + 1);
            blob.push(ZSTD);
            blob.extend_from_slice(&packed);
            blob
        }
        _ => raw,
    }
}

fn compress(raw: &[u8]) -> Option<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|slot| {
        if slot.is_none() {
            *slot = zstd::bulk::Compressor::new(LEVEL).ok();
        }
        slot.as_mut()?.compress(raw).ok()
    })
}

fn encode_cell(column: &ArrayRef, row: usize, out: &mut Vec<u8>) {
    use arrow::datatypes::DataType;
    match column.data_type() {
        DataType::Utf8 => put_bytes(out, column.as_string::<i32>().value(row).as_bytes()),
        DataType::Int64 => {
            let value = column.as_primitive::<Int64Type>().value(row);
            put_varint(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
        }
        DataType::Float64 => out.extend_from_slice(&column.as_primitive::<Float64Type>().value(row).to_le_bytes()),
        DataType::Boolean => out.push(column.as_boolean().value(row).into()),
        DataType::Timestamp(..) => {
            out.extend_from_slice(
                &column
                    .as_primitive::<TimestampMicrosecondType>()
                    .value(row)
                    .to_le_bytes(),
            );
        }
        // Batches have been brought to the table's schema, so what remains is the list type.
        _ => {
            let items = column.as_list::<i32>().value(row);
            let items = items.as_string::<i32>();
            put_varint(out, items.len() as u64);
            for index in 0..items.len() {
                // Length plus one, so that 0 can stand for NULL.
                if items.is_valid(index) {
                    put_varint(out, items.value(index).len() as u64 + 1);
                    out.extend_from_slice(items.value(index).as_bytes());
                } else {
                    put_varint(out, 0);
                }
            }
        }
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Decodes blobs of one layout into builders of the present spec.
#[derive(Debug)]
pub(crate) struct Decoder {
    types: Vec<ColumnType>,
    /// Position in the spec of each layout column.
    targets: Vec<usize>,
    /// Spec columns that the layout lacks: they were added later and are NULL.
    missing: Vec<usize>,
}

impl Decoder {
    /// `None` when the spec lacks a column of the layout.
    pub(crate) fn new(layout: &Layout, spec: &TableSpec) -> Option<Self> {
        let targets: Vec<usize> = layout
            .columns
            .iter()
            .map(|(name, _)| spec.column_index(name))
            .collect::<Option<_>>()?;
        Some(Self {
            types: layout.columns.iter().map(|(_, ty)| *ty).collect(),
            missing: (0..spec.columns.len()).filter(|i| !targets.contains(i)).collect(),
            targets,
        })
    }

    /// Appends the rows of a blob. `None` means that the blob is damaged; the builders may then hold part of it.
    pub(crate) fn decode(&self, blob: &[u8], rows: usize, builders: &mut [ColumnBuilder]) -> Option<()> {
        let (flag, data) = blob.split_first()?;
        let unpacked;
        let mut input = match *flag {
            PLAIN => data,
            ZSTD => {
                let size = zstd::zstd_safe::get_frame_content_size(data).ok().flatten()?;
                let size = usize::try_from(size).ok().filter(|size| *size <= MAX_DECODED)?;
                unpacked = zstd::bulk::decompress(data, size).ok()?;
                unpacked.as_slice()
            }
            _ => return None,
        };
        for _ in 0..rows {
            let bitmap = take(&mut input, self.types.len().div_ceil(8))?;
            for (index, ty) in self.types.iter().enumerate() {
                let builder = builders.get_mut(self.targets[index])?;
                if bitmap[index / 8] & (1 << (index % 8)) == 0 {
                    builder.append_null();
                } else {
                    decode_cell(*ty, &mut input, builder)?;
                }
            }
            for index in &self.missing {
                builders.get_mut(*index)?.append_null();
            }
        }
        input.is_empty().then_some(())
    }
}

fn decode_cell(ty: ColumnType, input: &mut &[u8], builder: &mut ColumnBuilder) -> Option<()> {
    match (ty, builder) {
        (ColumnType::Text, ColumnBuilder::Text(b)) => b.append_value(take_text(input)?),
        (ColumnType::Int, ColumnBuilder::Int(b)) => {
            let value = take_varint(input)?;
            b.append_value((value >> 1).cast_signed() ^ -((value & 1).cast_signed()));
        }
        (ColumnType::Float, ColumnBuilder::Float(b)) => b.append_value(f64::from_le_bytes(take_array(input)?)),
        (ColumnType::Bool, ColumnBuilder::Bool(b)) => b.append_value(take(input, 1)?[0] != 0),
        (ColumnType::Timestamp, ColumnBuilder::Timestamp(b)) => b.append_value(i64::from_le_bytes(take_array(input)?)),
        (ColumnType::List, ColumnBuilder::List(b)) => {
            for _ in 0..take_varint(input)? {
                match take_varint(input)? {
                    0 => b.values().append_null(),
                    length => {
                        let bytes = take(input, usize::try_from(length - 1).ok()?)?;
                        b.values().append_value(std::str::from_utf8(bytes).ok()?);
                    }
                }
            }
            b.append(true);
        }
        _ => return None,
    }
    Some(())
}

fn take<'a>(input: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (head, tail) = input.split_at_checked(length)?;
    *input = tail;
    Some(head)
}

fn take_array(input: &mut &[u8]) -> Option<[u8; 8]> {
    take(input, 8)?.try_into().ok()
}

fn take_text<'a>(input: &mut &'a [u8]) -> Option<&'a str> {
    let length = usize::try_from(take_varint(input)?).ok()?;
    std::str::from_utf8(take(input, length)?).ok()
}

fn take_varint(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = take(input, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::rows::Rows;
    use crate::spec::Specs;
    use crate::value::Value;
    use std::sync::Arc;

    fn edges(rows: usize, text: &str) -> (Arc<TableSpec>, RecordBatch) {
        let spec = Arc::clone(Specs::builtin().unwrap().get("evo.edges").unwrap());
        let mut batch = Rows::for_spec(&spec);
        for row in 0..rows {
            let id = format!("{text}{row}");
            let columns = ["task_id", "parent_id", "child_id", "role", "operator"];
            let delta = ("delta", Value::Float(row as f64));
            batch
                .push(
                    columns
                        .map(|c| (c, Value::from(id.as_str())))
                        .into_iter()
                        .chain([delta]),
                )
                .unwrap();
        }
        (spec, batch.finish().unwrap())
    }

    fn decode_all(spec: &TableSpec, blob: &[u8], rows: usize) -> Option<Vec<ArrayRef>> {
        let mut builders: Vec<_> = spec
            .columns
            .iter()
            .map(|c| ColumnBuilder::new(c.column_type, 0))
            .collect();
        Decoder::new(&Layout::of(spec), spec)
            .unwrap()
            .decode(blob, rows, &mut builders)?;
        Some(builders.iter_mut().map(ColumnBuilder::finish).collect())
    }

    #[test]
    fn damaged_blobs_are_noticed_and_never_panic() {
        for (rows, text) in [(2, "x"), (20, "a longer name of a node that is worth compressing ")] {
            let (spec, batch) = edges(rows, text);
            let blob = encode(&batch);
            assert_eq!(decode_all(&spec, &blob, rows).unwrap(), batch.columns());
            assert!(decode_all(&spec, &blob, rows + 1).is_none());
            assert!(decode_all(&spec, &blob, rows - 1).is_none());
            for length in 0..blob.len() {
                assert!(decode_all(&spec, &blob[..length], rows).is_none());
            }
            for place in 0..blob.len() {
                let mut damaged = blob.clone();
                damaged[place] ^= 0x41;
                // A flipped bit inside a value cannot be told; anything else must be, and nothing may panic.
                let _ = decode_all(&spec, &damaged, rows);
            }
        }
    }

    #[test]
    fn a_node_without_its_texts_is_small() {
        let (_, batch) = edges(1, "0123456789abcdef");
        assert!(encode(&batch).len() < 120);
        let layout = Layout::of(Specs::builtin().unwrap().get("evo.nodes").unwrap());
        assert_eq!(Layout::parse("evo.nodes", &layout.to_text()).unwrap(), layout);
        assert!(Layout::parse("evo.nodes", "id blob").is_err());
    }
}
