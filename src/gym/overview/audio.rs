//! Length of sounds, where a header tells: WAV, FLAC and AIFF.

use super::FileOverview;
use super::read::{Part, Reader};

/// What a header says of a sound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sound {
    pub channels: u16,
    pub sample_rate: u32,
    pub seconds: f64,
}

pub(super) fn describe(path: &str, out: &mut FileOverview, reader: &mut Reader) -> Result<(), String> {
    let size = u64::try_from(out.bytes).unwrap_or(0);
    let sound = read(path, size, reader)?.ok_or("its header does not tell the length")?;
    out.channels = Some(i64::from(sound.channels));
    out.sample_rate = Some(i64::from(sound.sample_rate));
    out.seconds = Some(sound.seconds);
    Ok(())
}

/// Reads a header; `size` is that of the file, for a data chunk that claims more than there is.
pub(super) fn read(path: &str, size: u64, reader: &mut Reader) -> Result<Option<Sound>, String> {
    let Part { bytes, .. } = reader.header(path)?;
    let sound = wav(&bytes, size).or_else(|| flac(&bytes)).or_else(|| aiff(&bytes));
    Ok(sound.filter(|sound| sound.seconds.is_finite()))
}

/// Chunks of a RIFF or IFF file: name, place and length of the content.
fn chunks(bytes: &[u8], length: fn([u8; 4]) -> u32) -> impl Iterator<Item = (&[u8], usize, u32)> {
    let mut at = 12usize;
    std::iter::from_fn(move || {
        let name = bytes.get(at..at + 4)?;
        let size = length(bytes.get(at + 4..at + 8)?.try_into().ok()?);
        let content = at + 8;
        // Chunks begin at even places.
        at = content
            .checked_add(usize::try_from(size).ok()?)?
            .checked_next_multiple_of(2)?;
        Some((name, content, size))
    })
}

fn wav(bytes: &[u8], file_size: u64) -> Option<Sound> {
    bytes.strip_prefix(b"RIFF")?;
    if bytes.get(8..12)? != b"WAVE" {
        return None;
    }
    let u16_at = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let u32_at = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let mut format = None;
    for (name, at, size) in chunks(bytes, u32::from_le_bytes) {
        match name {
            b"fmt " => format = Some((u16_at(at + 2)?, u32_at(at + 4)?, u32_at(at + 8)?)),
            b"data" => {
                let (channels, sample_rate, bytes_per_second) = format?;
                let length = u64::from(size).min(file_size.saturating_sub(at as u64));
                return (bytes_per_second > 0).then(|| Sound {
                    channels,
                    sample_rate,
                    seconds: length as f64 / f64::from(bytes_per_second),
                });
            }
            _ => {}
        }
    }
    None
}

fn flac(bytes: &[u8]) -> Option<Sound> {
    let info = bytes.strip_prefix(b"fLaC")?.get(4..22)?;
    let bits = u64::from_be_bytes(info.get(10..18)?.try_into().ok()?);
    let sample_rate = (bits >> 44) as u32;
    let samples = bits & 0xF_FFFF_FFFF;
    (sample_rate > 0 && samples > 0).then(|| Sound {
        channels: ((bits >> 41) & 7) as u16 + 1,
        sample_rate,
        seconds: samples as f64 / f64::from(sample_rate),
    })
}

fn aiff(bytes: &[u8]) -> Option<Sound> {
    bytes.strip_prefix(b"FORM")?;
    if !matches!(bytes.get(8..12)?, b"AIFF" | b"AIFC") {
        return None;
    }
    let (_, at, _) = chunks(bytes, u32::from_be_bytes).find(|(name, ..)| name == b"COMM")?;
    let field = bytes.get(at..at + 18)?;
    let frames = u32::from_be_bytes(field.get(2..6)?.try_into().ok()?);
    // The rate is a float of 80 bits; rates are whole numbers.
    let exponent = i32::from(u16::from_be_bytes(field.get(8..10)?.try_into().ok()?) & 0x7FFF) - 16383;
    let mantissa = u64::from_be_bytes(field.get(10..18)?.try_into().ok()?);
    let rate = mantissa as f64 / 2f64.powi(63 - exponent);
    (1.0..1e7).contains(&rate).then(|| Sound {
        channels: u16::from_be_bytes([field[0], field[1]]),
        sample_rate: rate.round() as u32,
        seconds: f64::from(frames) / rate,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn wav_of(rate: u32, channels: u16, data: u32) -> Vec<u8> {
        let mut bytes = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0".to_vec();
        bytes.extend(channels.to_le_bytes());
        bytes.extend(rate.to_le_bytes());
        bytes.extend((rate * u32::from(channels) * 2).to_le_bytes());
        bytes.extend([4, 0, 16, 0]);
        bytes.extend(b"data");
        bytes.extend(data.to_le_bytes());
        bytes
    }

    #[test]
    fn headers_tell_the_length() {
        let sound = wav(&wav_of(16_000, 1, 48_000), 48_044).unwrap();
        assert_eq!((sound.channels, sound.sample_rate, sound.seconds), (1, 16_000, 1.5));
        // A stream that was cut off claims more than there is.
        assert_eq!(wav(&wav_of(16_000, 1, u32::MAX), 32_044).unwrap().seconds, 1.0);
        let mut flac_bytes = b"fLaC\0\0\0\x22".to_vec();
        flac_bytes.extend([0; 10]);
        flac_bytes.extend(((44_100u64 << 44) | (1 << 41) | (15 << 36) | 88_200).to_be_bytes());
        let sound = flac(&flac_bytes).unwrap();
        assert_eq!((sound.channels, sound.sample_rate, sound.seconds), (2, 44_100, 2.0));
        let mut aiff_bytes = b"FORM\0\0\0\0AIFFCOMM\0\0\0\x12\0\x01\0\0\x1f\x40\0\x10".to_vec();
        aiff_bytes.extend([0x40, 0x0B, 0xFA, 0, 0, 0, 0, 0, 0, 0]);
        let sound = aiff(&aiff_bytes).unwrap();
        assert_eq!((sound.channels, sound.sample_rate, sound.seconds), (1, 8_000, 1.0));
    }

    #[test]
    fn broken_headers_are_no_fault() {
        for bytes in [
            b"".as_slice(),
            b"RIFF",
            b"RIFF\0\0\0\0WAVEfmt \xFF\xFF\xFF\xFF",
            b"fLaC",
            b"FORM\0\0\0\0AIFF",
        ] {
            assert!(wav(bytes, 0).or_else(|| flac(bytes)).or_else(|| aiff(bytes)).is_none());
        }
        assert!(wav(&wav_of(0, 0, 10), 54).is_none());
    }
}
