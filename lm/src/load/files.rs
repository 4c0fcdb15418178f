//! Reading the small files of a checkpoint, and mapping the large ones.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;
use serde_json::{Map, Value};

use crate::error::{LmError, Result};

/// More than any configuration, tokenizer or template has; a larger file is not what its name says.
const MAX_TEXT_BYTES: u64 = 256 << 20;

/// A fault of a file's content.
pub(crate) fn format_error(path: &Path, problem: impl Into<String>) -> LmError {
    LmError::Format {
        path: path.to_owned(),
        problem: problem.into(),
    }
}

/// A fault of reading a file.
pub(crate) fn io_error(path: &Path, source: std::io::Error) -> LmError {
    LmError::Io {
        path: path.to_owned(),
        source,
    }
}

/// The text of a file.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    let bytes = std::fs::metadata(path).map_err(|source| io_error(path, source))?.len();
    if bytes > MAX_TEXT_BYTES {
        return Err(format_error(
            path,
            format!("has {bytes} bytes, at most {MAX_TEXT_BYTES} are read"),
        ));
    }
    let bytes = std::fs::read(path).map_err(|source| io_error(path, source))?;
    String::from_utf8(bytes)
        .map_err(|error| format_error(path, format!("is not UTF-8: byte {}", error.utf8_error().valid_up_to())))
}

/// The JSON object in a file.
pub(crate) fn read_object(path: &Path) -> Result<Map<String, Value>> {
    match serde_json::from_str(&read_text(path)?) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(format_error(path, "is not a JSON object")),
        Err(error) => Err(format_error(path, format!("is not JSON: {error}"))),
    }
}

/// The JSON object in a file that need not be there.
pub(crate) fn read_optional_object(path: &Path) -> Result<Option<Map<String, Value>>> {
    if path.exists() {
        read_object(path).map(Some)
    } else {
        Ok(None)
    }
}

/// A file mapped into memory.
pub(crate) fn map(path: &Path) -> Result<Arc<Mmap>> {
    let file = File::open(path).map_err(|source| io_error(path, source))?;
    let is_file = file.metadata().map_err(|source| io_error(path, source))?.is_file();
    if !is_file {
        return Err(format_error(path, "is not a regular file"));
    }
    // SAFETY: the mapping is only read, and bytes of it become tensors by copying, whatever they are. That nobody shortens the file
    // while a model is being loaded from it is asked of the user, as by every program that maps weights.
    let map = unsafe { Mmap::map(&file) }.map_err(|source| io_error(path, source))?;
    Ok(Arc::new(map))
}
