//! Blocks of 256 numbers, in groups of 16 or 32 that have scales of their own, themselves quantised.

use super::half_at;

/// 16 pairs of a scale and a minimum in 4 bits each, 64 bytes with two bits of a number, the scales' scale, the minima's scale.
pub(super) fn q2_k(block: &[u8], values: &mut [f32]) {
    let (pairs, quants) = (&block[..16], &block[16..80]);
    let (scale, minimum) = (half_at(block, 80), half_at(block, 82));
    for (group, values) in values.chunks_exact_mut(16).enumerate() {
        let scale = scale * f32::from(pairs[group] & 15);
        let minimum = minimum * f32::from(pairs[group] >> 4);
        let (bytes, shift) = two_bits(quants, group);
        for (value, byte) in values.iter_mut().zip(bytes) {
            *value = scale * f32::from((byte >> shift) & 3) - minimum;
        }
    }
}

/// 32 bytes with third bits, 64 bytes with two bits of a number, 16 scales in 6 bits, the scales' scale. A third bit that is not set
/// takes 4 off.
pub(super) fn q3_k(block: &[u8], values: &mut [f32]) {
    let (third, quants, packed) = (&block[..32], &block[32..96], &block[96..108]);
    let scale = half_at(block, 108);
    for (group, values) in values.chunks_exact_mut(16).enumerate() {
        let low = packed[group % 8] >> (4 * (group / 8)) & 15;
        let high = packed[8 + group % 4] >> (2 * (group / 4)) & 3;
        let scale = scale * f32::from((low | high << 4) as i8 - 32);
        let (bytes, shift) = two_bits(quants, group);
        let third = &third[16 * (group % 2)..];
        for ((value, byte), third) in values.iter_mut().zip(bytes).zip(third) {
            let missing = (!third >> (group / 2) & 1) << 2;
            *value = scale * f32::from((byte >> shift & 3) as i8 - missing as i8);
        }
    }
}

/// Where the lowest two bits of a group of 16 are: its bytes, and how far they are to be shifted. 32 bytes hold 8 groups.
fn two_bits(quants: &[u8], group: usize) -> (&[u8], usize) {
    let bytes = &quants[32 * (group / 8) + 16 * (group % 2)..];
    (&bytes[..16], 2 * (group % 8 / 2))
}

/// The scales' scale, the minima's scale, 8 pairs of a scale and a minimum in 6 bits each, 128 bytes of nibbles.
pub(super) fn q4_k(block: &[u8], values: &mut [f32]) {
    let (scale, minimum) = (half_at(block, 0), half_at(block, 2));
    for (group, values) in values.chunks_exact_mut(32).enumerate() {
        let (scale, minimum) = scaled_pair(&block[4..16], group, scale, minimum);
        for (value, byte) in values.iter_mut().zip(&block[16 + 32 * (group / 2)..]) {
            let nibble = byte >> (4 * (group % 2)) & 15;
            *value = scale * f32::from(nibble) - minimum;
        }
    }
}

/// As `q4_k`, with 32 bytes of fifth bits before the nibbles.
pub(super) fn q5_k(block: &[u8], values: &mut [f32]) {
    let (scale, minimum) = (half_at(block, 0), half_at(block, 2));
    for (group, values) in values.chunks_exact_mut(32).enumerate() {
        let (scale, minimum) = scaled_pair(&block[4..16], group, scale, minimum);
        let bytes = block[48 + 32 * (group / 2)..].iter().zip(&block[16..48]);
        for (value, (byte, fifth)) in values.iter_mut().zip(bytes) {
            let nibble = byte >> (4 * (group % 2)) & 15;
            *value = scale * f32::from(nibble | (fifth >> group & 1) << 4) - minimum;
        }
    }
}

/// Scale and minimum of a group. Of the first four groups the six bits are together, of the last four the upper two are in the
/// bytes of the first ones.
fn scaled_pair(packed: &[u8], group: usize, scale: f32, minimum: f32) -> (f32, f32) {
    let place = group % 4;
    let (six_scale, six_minimum) = if group < 4 {
        (packed[place] & 63, packed[4 + place] & 63)
    } else {
        let low = packed[8 + place];
        (
            low & 15 | packed[place] >> 2 & 48,
            low >> 4 | packed[4 + place] >> 2 & 48,
        )
    };
    (scale * f32::from(six_scale), minimum * f32::from(six_minimum))
}

/// 128 bytes of nibbles, 64 bytes with the upper two bits, 16 signed scales, the scales' scale; the values are centred by 32.
pub(super) fn q6_k(block: &[u8], values: &mut [f32]) {
    let (low, high, scales) = (&block[..128], &block[128..192], &block[192..208]);
    let scale = half_at(block, 208);
    for (group, values) in values.chunks_exact_mut(32).enumerate() {
        let (part, place) = (group / 4, group % 4);
        let low = &low[64 * part + 32 * (place % 2)..];
        let high = &high[32 * part..];
        for (index, value) in values.iter_mut().enumerate() {
            let nibble = low[index] >> (4 * (place / 2)) & 15;
            let upper = high[index] >> (2 * place) & 3;
            let scale = scale * f32::from(scales[2 * group + index / 16] as i8);
            *value = scale * f32::from((nibble | upper << 4) as i8 - 32);
        }
    }
}
