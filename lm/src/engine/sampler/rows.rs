//! What is computed over a whole row, in lanes, so that the compiler makes vector instructions of it.

use crate::error::{LmError, Result};

/// Values that are worked on side by side.
const LANES: usize = 16;

/// The highest logit, and the first token that has it.
pub(super) fn highest(logits: &[f32]) -> Result<(u32, f32)> {
    let mut highest = [f32::NEG_INFINITY; LANES];
    let mut nans = [0_u32; LANES];
    let (groups, rest) = logits.as_chunks::<LANES>();
    for group in groups {
        for lane in 0..LANES {
            nans[lane] |= u32::from(group[lane].is_nan());
            highest[lane] = if group[lane] > highest[lane] {
                group[lane]
            } else {
                highest[lane]
            };
        }
    }
    let has_nan = nans.iter().any(|nan| *nan > 0) || rest.iter().any(|logit| logit.is_nan());
    let highest = highest.iter().chain(rest).copied().fold(f32::NEG_INFINITY, f32::max);
    if has_nan || !highest.is_finite() {
        let what = if has_nan { "are not numbers" } else { "are infinite" };
        return Err(LmError::Model(format!(
            "its logits {what}; the weights may be damaged, or the number format too narrow for them"
        )));
    }
    let first = logits.iter().position(|logit| *logit == highest).unwrap_or(0);
    Ok((first as u32, highest))
}

/// What turns logits into log-probabilities when it is taken off.
pub(super) fn log_sum_exp(logits: &[f32], weights: &mut Vec<f32>) -> Result<f32> {
    let (_, highest) = highest(logits)?;
    weigh(weights, logits, highest, 1.0);
    Ok((f64::from(highest) + sum(weights).ln()) as f32)
}

/// Weights of tokens at a temperature, of which `scale` is the inverse; that of the highest logit is 1.
pub(super) fn weigh(weights: &mut Vec<f32>, logits: &[f32], highest: f32, scale: f32) {
    weights.clear();
    weights.extend(logits.iter().map(|logit| exp((logit - highest) * scale)));
}

/// Sum of weights.
pub(super) fn sum(weights: &[f32]) -> f64 {
    let mut sums = [0.0_f64; LANES];
    let (groups, rest) = weights.as_chunks::<LANES>();
    for group in groups {
        for lane in 0..LANES {
            sums[lane] += f64::from(group[lane]);
        }
    }
    sums.iter().sum::<f64>() + rest.iter().map(|weight| f64::from(*weight)).sum::<f64>()
}

/// The exponential of a number that is not above 0, to two units in the last place. Below the smallest normal number it is 0.
///
/// The number is split into a power of two and a remainder of at most half a binade, whose exponential is a polynomial.
pub(super) fn exp(x: f32) -> f32 {
    /// Adding and taking it off rounds to a whole number.
    const ROUNDING: f32 = 12_582_912.0;
    /// ln 2 in two parts, the first one with trailing zeros, so that its multiples are exact.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    /// The logarithm of the smallest normal number.
    const LOWEST: f32 = -87.336_54;
    // Not `max`: a comparison is one instruction.
    let clamped = if x > LOWEST { x } else { LOWEST };
    // The whole number is in the low bits, too; a conversion would cost several instructions.
    let shifted = clamped * std::f32::consts::LOG2_E + ROUNDING;
    let exponent = shifted.to_bits().wrapping_sub(ROUNDING.to_bits());
    let power = shifted - ROUNDING;
    let remainder = clamped - power * LN_2_HIGH - power * LN_2_LOW;
    let mut value = 1.987_569_1e-4_f32;
    for coefficient in [
        1.398_199_9e-3,
        8.333_452e-3,
        4.166_579_6e-2,
        0.166_666_65,
        0.5,
        1.0,
        1.0,
    ] {
        value = value * remainder + coefficient;
    }
    let result = value * f32::from_bits(exponent.wrapping_add(127) << 23);
    if x > LOWEST { result } else { 0.0 }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn exponentials_are_right_to_two_units_in_the_last_place() {
        let mut x = 0.0_f32;
        while x > -87.0 {
            let exact = f64::from(x).exp();
            assert!(
                (f64::from(exp(x)) / exact - 1.0).abs() < 2.4e-7,
                "exp({x}) = {}",
                exp(x)
            );
            x -= 0.000_97;
        }
        assert_eq!(exp(0.0), 1.0);
        assert_eq!((exp(-100.0), exp(f32::MIN), exp(f32::NEG_INFINITY)), (0.0, 0.0, 0.0));
        assert!(exp(-87.3) > 0.0);
    }

    #[test]
    fn whole_rows_agree_with_one_value_after_the_other() {
        for width in [1, 5, 16, 17, 300] {
            let row: Vec<f32> = (0..width)
                .map(|number| ((number * 37) % 101) as f32 / 10.0 - 5.0)
                .collect();
            let best = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let first = row.iter().position(|logit| *logit == best).unwrap();
            assert_eq!(highest(&row).unwrap(), (first as u32, best));
            let total: f64 = row.iter().map(|logit| f64::from(*logit).exp()).sum();
            assert!((f64::from(log_sum_exp(&row, &mut Vec::new()).unwrap()) - total.ln()).abs() < 1e-6);
            let plain: f64 = row.iter().map(|logit| f64::from(*logit)).sum();
            assert!((sum(&row) - plain).abs() < 1e-9);
        }
    }
}
