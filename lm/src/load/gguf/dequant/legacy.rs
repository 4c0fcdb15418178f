//! Blocks of 32 numbers with one scale, and a minimum in the formats `_1`.
//!
//! The low four bits of number `i` are in the low half of byte `i`, those of number `i + 16` in the high half.

use super::half_at;

/// Scale, 16 bytes of nibbles; the values are centred by 8.
pub(super) fn q4_0(block: &[u8], values: &mut [f32]) {
    let scale = half_at(block, 0);
    for (index, byte) in block[2..18].iter().enumerate() {
        values[index] = scale * (f32::from(byte & 15) - 8.0);
        values[index + 16] = scale * (f32::from(byte >> 4) - 8.0);
    }
}

/// Scale, minimum, 16 bytes of nibbles.
pub(super) fn q4_1(block: &[u8], values: &mut [f32]) {
    let (scale, minimum) = (half_at(block, 0), half_at(block, 2));
    for (index, byte) in block[4..20].iter().enumerate() {
        values[index] = scale * f32::from(byte & 15) + minimum;
        values[index + 16] = scale * f32::from(byte >> 4) + minimum;
    }
}

/// Scale, 32 fifth bits, 16 bytes of nibbles; the values are centred by 16.
pub(super) fn q5_0(block: &[u8], values: &mut [f32]) {
    let scale = half_at(block, 0);
    five_bits(&block[2..22], values, |value| scale * (value - 16.0));
}

/// Scale, minimum, 32 fifth bits, 16 bytes of nibbles.
pub(super) fn q5_1(block: &[u8], values: &mut [f32]) {
    let (scale, minimum) = (half_at(block, 0), half_at(block, 2));
    five_bits(&block[4..24], values, |value| scale * value + minimum);
}

fn five_bits(bytes: &[u8], values: &mut [f32], scaled: impl Fn(f32) -> f32) {
    let fifth = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let bit = |index: usize| ((fifth >> index) as u8 & 1) << 4;
    for (index, byte) in bytes[4..20].iter().enumerate() {
        values[index] = scaled(f32::from((byte & 15) | bit(index)));
        values[index + 16] = scaled(f32::from((byte >> 4) | bit(index + 16)));
    }
}

/// Scale, 32 signed bytes.
pub(super) fn q8_0(block: &[u8], values: &mut [f32]) {
    let scale = half_at(block, 0);
    for (value, byte) in values.iter_mut().zip(&block[2..34]) {
        *value = f32::from(*byte as i8) * scale;
    }
}
