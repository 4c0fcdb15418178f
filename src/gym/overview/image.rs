//! Size of pictures, from their headers.

use super::FileOverview;
use super::read::{Part, Reader};

/// Width, height and, where the header tells, channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ImageSize {
    pub width: u32,
    pub height: u32,
    pub channels: Option<u8>,
}

pub(super) fn describe(path: &str, out: &mut FileOverview, reader: &mut Reader) -> Result<(), String> {
    let size = read(path, reader)?.ok_or("its header was not understood")?;
    out.width = Some(i64::from(size.width));
    out.height = Some(i64::from(size.height));
    out.channels = size.channels.map(i64::from);
    Ok(())
}

pub(super) fn read(path: &str, reader: &mut Reader) -> Result<Option<ImageSize>, String> {
    let Part { bytes, .. } = reader.header(path)?;
    Ok(size(&bytes))
}

fn size(bytes: &[u8]) -> Option<ImageSize> {
    png(bytes)
        .or_else(|| jpeg(bytes))
        .or_else(|| gif(bytes))
        .or_else(|| bmp(bytes))
        .or_else(|| webp(bytes))
        .or_else(|| tiff(bytes))
}

fn be16(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn le16(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn png(bytes: &[u8]) -> Option<ImageSize> {
    bytes.strip_prefix(b"\x89PNG\r\n\x1a\n")?;
    let channels = match bytes.get(25)? {
        0 => 1,
        2 | 3 => 3,
        4 => 2,
        _ => 4,
    };
    Some(ImageSize {
        width: be32(bytes, 16)?,
        height: be32(bytes, 20)?,
        channels: Some(channels),
    })
}

/// Goes from marker to marker to the frame header.
fn jpeg(bytes: &[u8]) -> Option<ImageSize> {
    bytes.strip_prefix(b"\xFF\xD8")?;
    let mut at = 2;
    loop {
        while bytes.get(at)? != &0xFF {
            at += 1;
        }
        let marker = *bytes.get(at + 1)?;
        at += 2;
        match marker {
            0xFF => at -= 1,
            0x00 | 0x01 | 0xD0..=0xD9 => {}
            0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF => {
                return Some(ImageSize {
                    height: be16(bytes, at + 3)?,
                    width: be16(bytes, at + 5)?,
                    channels: bytes.get(at + 7).copied(),
                });
            }
            _ => at += usize::try_from(be16(bytes, at)?).ok()?.max(2),
        }
    }
}

fn gif(bytes: &[u8]) -> Option<ImageSize> {
    bytes.strip_prefix(b"GIF8")?;
    Some(ImageSize {
        width: le16(bytes, 6)?,
        height: le16(bytes, 8)?,
        channels: Some(3),
    })
}

fn bmp(bytes: &[u8]) -> Option<ImageSize> {
    bytes.strip_prefix(b"BM")?;
    let height = le32(bytes, 22)?.cast_signed().unsigned_abs();
    Some(ImageSize {
        width: le32(bytes, 18)?,
        height,
        channels: Some(match le16(bytes, 28)? {
            1..=8 => 1,
            32 => 4,
            _ => 3,
        }),
    })
}

fn webp(bytes: &[u8]) -> Option<ImageSize> {
    bytes.strip_prefix(b"RIFF")?;
    if bytes.get(8..12)? != b"WEBP" {
        return None;
    }
    let (width, height) = match bytes.get(12..16)? {
        b"VP8 " => (le16(bytes, 26)? & 0x3FFF, le16(bytes, 28)? & 0x3FFF),
        b"VP8L" => {
            let bits = le32(bytes, 21)?;
            ((bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1)
        }
        b"VP8X" => {
            let three = |at: usize| Some(le16(bytes, at)? | u32::from(*bytes.get(at + 2)?) << 16);
            (three(24)? + 1, three(27)? + 1)
        }
        _ => return None,
    };
    Some(ImageSize {
        width,
        height,
        channels: None,
    })
}

/// Reads a number at a place.
type Field = fn(&[u8], usize) -> Option<u32>;

/// Width and height of the first directory.
fn tiff(bytes: &[u8]) -> Option<ImageSize> {
    let (short, long): (Field, Field) = match bytes.get(..4)? {
        b"II*\0" => (le16, le32),
        b"MM\0*" => (be16, be32),
        _ => return None,
    };
    let directory = usize::try_from(long(bytes, 4)?).ok()?;
    let (mut width, mut height, mut channels) = (None, None, None);
    for entry in 0..usize::try_from(short(bytes, directory)?).ok()?.min(200) {
        let at = directory + 2 + entry * 12;
        let value = |at: usize| match short(bytes, at + 2)? {
            3 => short(bytes, at + 8),
            _ => long(bytes, at + 8),
        };
        match short(bytes, at)? {
            256 => width = value(at),
            257 => height = value(at),
            277 => channels = value(at).and_then(|number| u8::try_from(number).ok()),
            _ => {}
        }
    }
    Some(ImageSize {
        width: width?,
        height: height?,
        channels,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn dimensions(bytes: &[u8]) -> Option<(u32, u32, Option<u8>)> {
        size(bytes).map(|size| (size.width, size.height, size.channels))
    }

    #[test]
    fn headers_tell_the_size() {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        png.extend([0, 0, 0, 28, 0, 0, 0, 32, 8, 2, 0, 0, 0]);
        assert_eq!(dimensions(&png), Some((28, 32, Some(3))));
        let jpeg = b"\xFF\xD8\xFF\xE0\0\x04ab\xFF\xFF\xC0\0\x11\x08\0\x40\0\x80\x03";
        assert_eq!(dimensions(jpeg), Some((128, 64, Some(3))));
        assert_eq!(dimensions(b"GIF89a\x05\0\x07\0"), Some((5, 7, Some(3))));
        let mut tiff = b"II*\0\x08\0\0\0\x02\0".to_vec();
        tiff.extend([0, 1, 3, 0, 1, 0, 0, 0, 9, 0, 0, 0]);
        tiff.extend([1, 1, 4, 0, 1, 0, 0, 0, 11, 0, 0, 0]);
        assert_eq!(dimensions(&tiff), Some((9, 11, None)));
        let mut webp = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0".to_vec();
        webp.extend([9, 0, 0, 19, 0, 0]);
        assert_eq!(dimensions(&webp), Some((10, 20, None)));
    }

    #[test]
    fn broken_headers_are_no_fault() {
        for bytes in [
            b"".as_slice(),
            b"\x89PNG\r\n\x1a\n",
            b"\xFF\xD8",
            b"\xFF\xD8\xFF\xE0\0\0",
            b"II*\0\xFF\xFF\xFF\xFF",
            b"MM\0*\0\0\0\x08",
            b"RIFF\0\0\0\0WEBPVP8X",
            b"BM",
            b"text",
        ] {
            assert_eq!(dimensions(bytes), None, "{bytes:?}");
        }
    }
}
