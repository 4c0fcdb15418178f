//! The header of a safetensors file.
//!
//! Eight bytes with the length of the header, the header in JSON (for each tensor its number format, shape and place), and the
//! data of the tensors one after the other.

use std::fmt;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::Value;

use crate::error::Result;
use crate::load::files::format_error;

/// The longest header that is read: what the format's own library allows.
const MAX_HEADER_BYTES: u64 = 100_000_000;

/// A tensor as the header has it.
#[derive(Debug)]
pub(super) struct Entry {
    pub name: String,
    /// Number format, as the file names it.
    pub dtype: String,
    pub shape: Vec<i64>,
    /// Its bytes, from the beginning of the file.
    pub bytes: Range<usize>,
}

#[derive(Deserialize)]
struct Described {
    dtype: String,
    shape: Vec<i64>,
    data_offsets: (u64, u64),
}

/// The header's keys in order. A map would hide that a name is there twice.
struct Keys(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct KeysVisitor;
        impl<'de> Visitor<'de> for KeysVisitor {
            type Value = Keys;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object with the tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Keys, A::Error> {
                let mut keys = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    keys.push(entry);
                }
                Ok(Keys(keys))
            }
        }
        deserializer.deserialize_map(KeysVisitor)
    }
}

/// Bits of one number of a format.
fn bits(dtype: &str) -> Option<u64> {
    Some(match dtype {
        "F4" => 4,
        "BOOL" | "U8" | "I8" | "F8_E4M3" | "F8_E5M2" | "F8_E8M0" => 8,
        "U16" | "I16" | "F16" | "BF16" => 16,
        "U32" | "I32" | "F32" => 32,
        "U64" | "I64" | "F64" | "C64" => 64,
        _ => return None,
    })
}

/// Reads the header of a file.
pub(super) fn entries(path: &Path, file: &[u8]) -> Result<Vec<Entry>> {
    let length = file
        .first_chunk::<8>()
        .map(|bytes| u64::from_le_bytes(*bytes))
        .ok_or_else(|| {
            format_error(
                path,
                format!("has {} bytes, too few for a safetensors file", file.len()),
            )
        })?;
    if length > MAX_HEADER_BYTES {
        return Err(format_error(
            path,
            format!("says its header has {length} bytes; this is not a safetensors file"),
        ));
    }
    let start = 8 + length as usize;
    let header = file.get(8..start).ok_or_else(|| {
        format_error(
            path,
            format!(
                "is cut off: its header ends at byte {start}, the file has {} bytes",
                file.len()
            ),
        )
    })?;
    let header = std::str::from_utf8(header).map_err(|_| format_error(path, "has a header that is not UTF-8"))?;
    let Keys(keys) = serde_json::from_str(header)
        .map_err(|error| format_error(path, format!("has a header that is not right: {error}")))?;

    let mut entries = Vec::with_capacity(keys.len());
    for (name, value) in keys {
        if name != "__metadata__" {
            entries.push(entry(path, name, value, start, file.len())?);
        }
    }
    let mut names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format_error(path, format!("has the tensor '{}' twice", pair[0])));
    }
    Ok(entries)
}

fn entry(path: &Path, name: String, value: Value, start: usize, file_bytes: usize) -> Result<Entry> {
    let described: Described = serde_json::from_value(value).map_err(|error| {
        format_error(
            path,
            format!("describes the tensor '{name}' in a way that is not right: {error}"),
        )
    })?;
    let Described {
        dtype,
        shape,
        data_offsets: (from, to),
    } = described;
    let bits = bits(&dtype).ok_or_else(|| {
        format_error(
            path,
            format!("has the tensor '{name}' in the unknown number format '{dtype}'"),
        )
    })?;
    let needed = shape
        .iter()
        .try_fold(bits, |product, size| product.checked_mul(u64::try_from(*size).ok()?))
        .ok_or_else(|| {
            format_error(
                path,
                format!("has the tensor '{name}' with the shape {shape:?}, which cannot be"),
            )
        })?
        .div_ceil(8);
    if to.checked_sub(from) != Some(needed) {
        let problem = format!(
            "has the tensor '{name}' at bytes {from} to {to}, but {dtype} with the shape {shape:?} has {needed}"
        );
        return Err(format_error(path, problem));
    }
    let end = (start as u64)
        .checked_add(to)
        .filter(|end| *end <= file_bytes as u64)
        .ok_or_else(|| {
            let ends = (start as u64).saturating_add(to);
            format_error(
                path,
                format!("is cut off: the tensor '{name}' ends at byte {ends}, the file has {file_bytes} bytes"),
            )
        })?;
    Ok(Entry {
        name,
        dtype,
        shape,
        bytes: start + from as usize..end as usize,
    })
}
