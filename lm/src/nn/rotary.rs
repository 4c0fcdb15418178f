//! Rotary position embedding, with the scalings of long contexts.

use std::f64::consts::PI;

use tch::{Device, Kind, Tensor};

use crate::error::Result;

/// How frequencies are scaled for contexts longer than those of the first training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum RopeScaling {
    /// Not at all.
    None,
    /// All by one factor.
    Linear {
        /// Factor of the context.
        factor: f64,
    },
    /// By wavelength, as Llama 3.1 does.
    Llama3 {
        /// Factor of the context.
        factor: f64,
        /// Low frequencies are scaled wholly.
        low_freq_factor: f64,
        /// High frequencies are not scaled.
        high_freq_factor: f64,
        /// Context of the first training.
        original_positions: f64,
    },
    /// YaRN.
    Yarn {
        /// Factor of the context.
        factor: f64,
        /// Factor of cosine and sine.
        attention_factor: f64,
        /// Rotations above which a dimension is not scaled.
        beta_fast: f64,
        /// Rotations below which a dimension is scaled wholly.
        beta_slow: f64,
        /// Context of the first training.
        original_positions: f64,
        /// Whether borders are rounded to whole dimensions.
        truncate: bool,
    },
}

/// What a configuration says of positions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RopeShape {
    /// Base of the frequencies.
    pub(crate) theta: f64,
    /// Dimensions of a head that are rotated: the first ones.
    pub(crate) dims: i64,
    /// Scaling.
    pub(crate) scaling: RopeScaling,
}

/// Frequencies of a model.
#[derive(Debug)]
pub(crate) struct Rotary {
    frequencies: Tensor,
    scale: f64,
    dims: i64,
}

/// Cosines and sines of the positions of a step.
#[derive(Debug)]
pub(crate) struct Angles {
    cosine: Tensor,
    /// Sines with the sign that the first half of the dimensions needs.
    sine: Tensor,
    dims: i64,
}

impl Rotary {
    /// Frequencies on a device.
    pub(crate) fn new(shape: RopeShape, device: Device) -> Result<Self> {
        let exponents = Tensor::f_arange_start_step(0, shape.dims, 2, (Kind::Float, Device::Cpu))?;
        let periods = Tensor::f_pow_scalar(shape.theta, &exponents.f_div_scalar(shape.dims as f64)?)?;
        let frequencies = periods.f_reciprocal()?;
        let (frequencies, scale) = match shape.scaling {
            RopeScaling::None => (frequencies, 1.0),
            RopeScaling::Linear { factor } => (frequencies.f_div_scalar(factor)?, 1.0),
            RopeScaling::Llama3 {
                factor,
                low_freq_factor,
                high_freq_factor,
                original_positions,
            } => (
                llama3(
                    &frequencies,
                    factor,
                    low_freq_factor,
                    high_freq_factor,
                    original_positions,
                )?,
                1.0,
            ),
            RopeScaling::Yarn {
                factor,
                attention_factor,
                beta_fast,
                beta_slow,
                original_positions,
                truncate,
            } => {
                let border = |rotations: f64| {
                    shape.dims as f64 * (original_positions / (rotations * 2.0 * PI)).ln() / (2.0 * shape.theta.ln())
                };
                let (low, high) = (border(beta_fast), border(beta_slow));
                let (low, high) = if truncate {
                    (low.floor(), high.ceil())
                } else {
                    (low, high)
                };
                let (low, high) = (low.max(0.0), high.min(shape.dims as f64 - 1.0));
                (yarn(&periods, factor, low, high)?, attention_factor)
            }
        };
        Ok(Self {
            frequencies: frequencies.f_to_device(device)?,
            scale,
            dims: shape.dims,
        })
    }

    /// Angles of positions `[n]`.
    pub(crate) fn angles(&self, positions: &Tensor, kind: Kind) -> Result<Angles> {
        let angles = positions
            .f_to_kind(Kind::Float)?
            .f_unsqueeze(1)?
            .f_mul(&self.frequencies)?;
        let mut cosine = angles.f_cos()?;
        let cosine = cosine.f_mul_scalar_(self.scale)?;
        let mut sine = angles.f_sin()?;
        let sine = sine.f_mul_scalar_(self.scale)?;
        let both = |first: &Tensor, second: &Tensor| -> Result<Tensor> {
            Ok(Tensor::f_cat(&[first, second], 1)?.f_unsqueeze(1)?.f_to_kind(kind)?)
        };
        Ok(Angles {
            sine: both(&sine.f_neg()?, &sine)?,
            cosine: both(&cosine, &cosine)?,
            dims: self.dims,
        })
    }
}

impl Angles {
    /// Rotates heads `[n, heads, width]` in place.
    pub(crate) fn apply(&self, heads: &Tensor) -> Result<()> {
        let half = self.dims / 2;
        let mut rotated = heads.f_narrow(2, 0, self.dims)?;
        let swapped = Tensor::f_cat(&[rotated.f_narrow(2, half, half)?, rotated.f_narrow(2, 0, half)?], 2)?;
        let _ = rotated.f_mul_(&self.cosine)?.f_addcmul_(&swapped, &self.sine)?;
        Ok(())
    }
}

fn llama3(frequencies: &Tensor, factor: f64, low: f64, high: f64, positions: f64) -> Result<Tensor> {
    let wavelengths = frequencies.f_reciprocal()?.f_mul_scalar(2.0 * PI)?;
    let long = wavelengths.f_gt(positions / low)?;
    let short = wavelengths.f_lt(positions / high)?;
    let scaled = frequencies.f_div_scalar(factor)?;
    let share = wavelengths
        .f_reciprocal()?
        .f_mul_scalar(positions)?
        .f_sub_scalar(low)?
        .f_div_scalar(high - low)?;
    let mixed = scaled.f_lerp_tensor(frequencies, &share)?;
    Ok(scaled.f_where_self(&long, &frequencies.f_where_self(&short, &mixed)?)?)
}

fn yarn(periods: &Tensor, factor: f64, low: f64, high: f64) -> Result<Tensor> {
    let width = if low == high { 0.001 } else { high - low };
    let steps = Tensor::f_arange(periods.numel() as i64, (Kind::Float, Device::Cpu))?;
    let scaled_share = steps.f_sub_scalar(low)?.f_div_scalar(width)?.f_clamp(0.0, 1.0)?;
    let kept = periods.f_reciprocal()?;
    let scaled = periods.f_mul_scalar(factor)?.f_reciprocal()?;
    Ok(kept.f_lerp_tensor(&scaled, &scaled_share)?)
}
