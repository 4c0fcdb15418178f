//! Rotary factors of Llama 3.
//!
//! llama.cpp writes them as a tensor, a factor for each frequency; Hugging Face writes the rule they follow. The rule has one number
//! that differs between models, and it is the largest factor.

use std::f64::consts::TAU;

use serde_json::{Value, json};

use super::metadata::Metadata;
use crate::error::{LmError, Result};

const LOW_FREQUENCY_FACTOR: f64 = 1.0;
const HIGH_FREQUENCY_FACTOR: f64 = 4.0;
const ORIGINAL_CONTEXT: f64 = 8192.0;

/// The rule that the factors follow.
///
/// # Errors
/// When they follow another one.
pub(super) fn llama3(metadata: &Metadata, factors: &[f32], theta: f64, head_size: u64) -> Result<Value> {
    let factor = f64::from(factors.iter().copied().fold(1.0, f32::max));
    let pairs = head_size / 2;
    let follows = factors.len() as u64 == pairs
        && factors.iter().zip(0..pairs).all(|(found, pair)| {
            let expected = expected(factor, theta.powf(-(2.0 * pair as f64) / head_size as f64));
            (f64::from(*found) - expected).abs() <= 1e-3 * expected
        });
    if !follows {
        return Err(LmError::Unsupported(format!(
            "{}: the rotary factors in 'rope_freqs.weight' are not those of Llama 3; load the model from a Hugging Face folder",
            metadata.path().display()
        )));
    }
    Ok(json!({
        "rope_type": "llama3",
        "factor": factor,
        "low_freq_factor": LOW_FREQUENCY_FACTOR,
        "high_freq_factor": HIGH_FREQUENCY_FACTOR,
        "original_max_position_embeddings": ORIGINAL_CONTEXT as u64,
    }))
}

/// By how much a frequency is divided.
fn expected(factor: f64, frequency: f64) -> f64 {
    let wavelength = TAU / frequency;
    if wavelength < ORIGINAL_CONTEXT / HIGH_FREQUENCY_FACTOR {
        1.0
    } else if wavelength > ORIGINAL_CONTEXT / LOW_FREQUENCY_FACTOR {
        factor
    } else {
        let smooth =
            (ORIGINAL_CONTEXT / wavelength - LOW_FREQUENCY_FACTOR) / (HIGH_FREQUENCY_FACTOR - LOW_FREQUENCY_FACTOR);
        1.0 / ((1.0 - smooth) / factor + smooth)
    }
}
