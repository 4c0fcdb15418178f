//! The beginning of a GGUF file: metadata, and where which tensor is.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use super::dequant::GgmlType;
use super::metadata::{Metadata, Value};
use crate::error::{LmError, Result};
use crate::load::files::format_error;

/// Lists in lists are allowed by the format; no file has more than one level.
const MAX_DEPTH: usize = 4;

/// A tensor as the header has it.
#[derive(Debug)]
pub(super) struct Entry {
    /// Shape in the order of Hugging Face: the fastest index last.
    pub shape: Vec<i64>,
    pub ggml_type: GgmlType,
    /// Its bytes, from the beginning of the file.
    pub bytes: Range<usize>,
}

/// What a file says of itself.
#[derive(Debug)]
pub(super) struct Header {
    pub metadata: Metadata,
    pub tensors: BTreeMap<String, Entry>,
}

/// Reads the header of a file.
pub(super) fn read(path: &Path, file: &[u8]) -> Result<Header> {
    let mut cursor = Cursor {
        path,
        file,
        position: 0,
    };
    if cursor.take(4, "the magic number")? != b"GGUF" {
        return Err(format_error(path, "is not a GGUF file: it does not begin with 'GGUF'"));
    }
    let version = cursor.u32("the version")?;
    if !matches!(version, 2 | 3) {
        let problem = if matches!(version.swap_bytes(), 2 | 3) {
            "is a GGUF file for big-endian machines, which is not read".to_owned()
        } else {
            format!("is a GGUF file of version {version}; versions 2 and 3 are read")
        };
        return Err(format_error(path, problem));
    }
    let tensor_count = cursor.u64("the number of tensors")?;
    let key_count = cursor.u64("the number of keys")?;

    let mut values = BTreeMap::new();
    for _ in 0..key_count {
        let key = cursor.text("a key")?;
        let value_type = cursor.u32(&key)?;
        let value = cursor.value(value_type, &key, 0)?;
        if values.contains_key(&key) {
            return Err(format_error(path, format!("has the key '{key}' twice")));
        }
        values.insert(key, value);
    }
    let metadata = Metadata::new(path, values);

    let mut placed = Vec::new();
    for _ in 0..tensor_count {
        placed.push(cursor.tensor()?);
    }
    let alignment = metadata.optional::<u32>("general.alignment")?.unwrap_or(32) as usize;
    if !alignment.is_power_of_two() {
        return Err(metadata.fault(format!(
            "'general.alignment' is {alignment}, which is not a power of two"
        )));
    }
    let data = cursor.position.next_multiple_of(alignment);
    let mut tensors = BTreeMap::new();
    for tensor in placed {
        let name = tensor.name.clone();
        let entry = tensor.place(path, file.len(), data)?;
        if tensors.insert(name.clone(), entry).is_some() {
            return Err(format_error(path, format!("has the tensor '{name}' twice")));
        }
    }
    Ok(Header { metadata, tensors })
}

/// A tensor as it is described, before its place was checked.
struct Described {
    name: String,
    shape: Vec<i64>,
    ggml_type: GgmlType,
    offset: u64,
}

impl Described {
    fn place(self, path: &Path, file_bytes: usize, data: usize) -> Result<Entry> {
        let Self {
            name,
            shape,
            ggml_type,
            offset,
        } = self;
        let impossible = || {
            format_error(
                path,
                format!("has the tensor '{name}' with the shape {shape:?}, which cannot be"),
            )
        };
        let elements = shape
            .iter()
            .try_fold(1_usize, |product, size| {
                product.checked_mul(usize::try_from(*size).ok()?)
            })
            .ok_or_else(impossible)?;
        let row = shape.last().map_or(1, |size| *size as usize);
        if row % ggml_type.block_elements() != 0 {
            let problem = format!(
                "has the tensor '{name}' in {} with rows of {row} numbers, which is no multiple of {}",
                ggml_type.name(),
                ggml_type.block_elements()
            );
            return Err(format_error(path, problem));
        }
        let length = (elements / ggml_type.block_elements())
            .checked_mul(ggml_type.block_bytes())
            .ok_or_else(impossible)?;
        let start = usize::try_from(offset).ok().and_then(|offset| offset.checked_add(data));
        let end = start.and_then(|start| start.checked_add(length));
        match (start, end) {
            (Some(start), Some(end)) if end <= file_bytes => Ok(Entry {
                shape,
                ggml_type,
                bytes: start..end,
            }),
            _ => {
                let problem = format!(
                    "is cut off: the tensor '{name}' of {length} bytes begins at byte {}, the file has {file_bytes} bytes",
                    offset.saturating_add(data as u64)
                );
                Err(format_error(path, problem))
            }
        }
    }
}

/// A place in the file. Nothing is allocated by a length that was not checked against what is left of the file.
struct Cursor<'a> {
    path: &'a Path,
    file: &'a [u8],
    position: usize,
}

impl<'a> Cursor<'a> {
    fn fault(&self, problem: String) -> LmError {
        format_error(self.path, problem)
    }

    fn take(&mut self, length: usize, what: &str) -> Result<&'a [u8]> {
        let left = &self.file[self.position..];
        let taken = left.get(..length).ok_or_else(|| {
            self.fault(format!(
                "is cut off in its header: {what} needs {length} bytes at byte {}, {} are left",
                self.position,
                left.len()
            ))
        })?;
        self.position += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N, what)?);
        Ok(bytes)
    }

    fn u32(&mut self, what: &str) -> Result<u32> {
        self.array(what).map(u32::from_le_bytes)
    }

    fn u64(&mut self, what: &str) -> Result<u64> {
        self.array(what).map(u64::from_le_bytes)
    }

    fn text(&mut self, what: &str) -> Result<String> {
        let length = self.u64(what)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let at = self.position;
        let bytes = self.take(length, what)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| self.fault(format!("{what} at byte {at} is not UTF-8")))
    }

    fn value(&mut self, value_type: u32, key: &str, depth: usize) -> Result<Value> {
        Ok(match value_type {
            0 => Value::Integer(u8::from_le_bytes(self.array(key)?).into()),
            1 => Value::Integer(i8::from_le_bytes(self.array(key)?).into()),
            2 => Value::Integer(u16::from_le_bytes(self.array(key)?).into()),
            3 => Value::Integer(i16::from_le_bytes(self.array(key)?).into()),
            4 => Value::Integer(u32::from_le_bytes(self.array(key)?).into()),
            5 => Value::Integer(i32::from_le_bytes(self.array(key)?).into()),
            6 => Value::Float(f32::from_le_bytes(self.array(key)?).into()),
            7 => Value::Bool(match self.array::<1>(key)? {
                [0] => false,
                [1] => true,
                [other] => return Err(self.fault(format!("the key '{key}' has the truth value {other}"))),
            }),
            8 => Value::Text(self.text(key)?),
            9 => Value::List(self.list(key, depth)?),
            10 => Value::Integer(self.u64(key)?.into()),
            11 => Value::Integer(i64::from_le_bytes(self.array(key)?).into()),
            12 => Value::Float(f64::from_le_bytes(self.array(key)?)),
            other => return Err(self.fault(format!("the key '{key}' has the unknown type {other}"))),
        })
    }

    fn list(&mut self, key: &str, depth: usize) -> Result<Vec<Value>> {
        if depth == MAX_DEPTH {
            return Err(self.fault(format!("the key '{key}' has lists in lists in lists")));
        }
        let element_type = self.u32(key)?;
        let length = self.u64(key)?;
        let left = self.file.len() - self.position;
        // Every element has at least one byte.
        let length = usize::try_from(length)
            .ok()
            .filter(|length| *length <= left)
            .ok_or_else(|| {
                self.fault(format!(
                    "is cut off in its header: the key '{key}' has {length} elements, {left} bytes are left"
                ))
            })?;
        let mut values = Vec::new();
        for _ in 0..length {
            values.push(self.value(element_type, key, depth + 1)?);
        }
        Ok(values)
    }

    fn tensor(&mut self) -> Result<Described> {
        let name = self.text("the name of a tensor")?;
        let dimensions = self.u32(&name)?;
        if dimensions > 4 {
            return Err(self.fault(format!(
                "has the tensor '{name}' with {dimensions} dimensions, at most 4 are read"
            )));
        }
        let mut shape = Vec::new();
        for _ in 0..dimensions {
            let size = self.u64(&name)?;
            let size =
                i64::try_from(size).map_err(|_| self.fault(format!("has the tensor '{name}' with {size} rows")))?;
            shape.push(size);
        }
        shape.reverse();
        let code = self.u32(&name)?;
        let ggml_type = GgmlType::from_code(code).map_err(|known| {
            self.fault(format!(
                "has the tensor '{name}' in {known}; read are {}",
                GgmlType::names()
            ))
        })?;
        let offset = self.u64(&name)?;
        Ok(Described {
            name,
            shape,
            ggml_type,
            offset,
        })
    }
}
