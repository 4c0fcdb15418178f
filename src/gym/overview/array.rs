//! NumPy arrays: type and shape as their header states them.

use super::read::{Part, Reader};
use super::{FileOverview, line};

const MAGIC: &[u8] = b"\x93NUMPY";

pub(super) fn describe(path: &str, out: &mut FileOverview, reader: &mut Reader) -> Result<(), String> {
    let Part { bytes, .. } = reader.header(path)?;
    out.summary = Some(header(&bytes).ok_or("no valid NumPy header")?);
    Ok(())
}

/// `<f4, shape (100, 3)` of the header's dictionary.
fn header(bytes: &[u8]) -> Option<String> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (length, start): (usize, usize) = match rest.first()? {
        1 => (usize::from(u16::from_le_bytes([*rest.get(2)?, *rest.get(3)?])), 4),
        _ => {
            let length: [u8; 4] = rest.get(2..6)?.try_into().ok()?;
            (usize::try_from(u32::from_le_bytes(length)).ok()?, 6)
        }
    };
    let text = String::from_utf8_lossy(rest.get(start..start.checked_add(length)?)?);
    let after = |key: &str| {
        text.split_once(key)
            .map(|(_, rest)| rest.trim_start_matches([':', ' ', '\'', '"']))
    };
    let kind = after("'descr'")?.split(['\'', '"']).next()?;
    let shape = after("'shape'")?.split_inclusive(')').next()?;
    Some(format!("values of type {}, shape {}", line(kind, 20), line(shape, 80)))
}
