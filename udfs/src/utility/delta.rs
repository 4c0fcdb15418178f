//! Scales the gains of a group over their parents to 0..1.

use std::str::FromStr;

use arrow::array::Float64Array;
use thiserror::Error;

use super::normalize::{blend, rank_norm};

/// How gains are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeltaMode {
    /// Gain divided by the largest one.
    Minmax,
    /// Rank among all gains of the group, zeros included.
    Rank,
    /// Weighted mean of both.
    Hybrid,
}

/// A name that is no mode of scaling gains.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("positive_delta_norm: unknown mode '{0}'; use 'minmax', 'rank' or 'hybrid'")]
pub struct UnknownDeltaMode(String);

impl FromStr for DeltaMode {
    type Err = UnknownDeltaMode;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "minmax" => Ok(Self::Minmax),
            "rank" => Ok(Self::Rank),
            "hybrid" => Ok(Self::Hybrid),
            _ => Err(UnknownDeltaMode(name.to_owned())),
        }
    }
}

/// Scaled gains: what is not above zero gets 0, NULL and values that are not finite get NULL.
///
/// `weights` holds each row's weight of the min-max part; only the hybrid mode reads it.
pub fn positive_delta_norm(deltas: &Float64Array, mode: DeltaMode, weights: &Float64Array) -> Float64Array {
    match mode {
        DeltaMode::Minmax => share_of_largest(deltas),
        DeltaMode::Rank => positive_rank(deltas),
        DeltaMode::Hybrid => blend(&share_of_largest(deltas), &positive_rank(deltas), weights),
    }
}

fn share_of_largest(deltas: &Float64Array) -> Float64Array {
    let largest = deltas
        .iter()
        .flatten()
        .filter(|delta| delta.is_finite())
        .fold(0.0, f64::max);
    deltas
        .iter()
        .map(|delta| {
            delta
                .filter(|delta| delta.is_finite())
                .map(|delta| if delta > 0.0 { delta / largest } else { 0.0 })
        })
        .collect()
}

/// Losses rank as zeros do: gains are told apart, their absence is not.
fn positive_rank(deltas: &Float64Array) -> Float64Array {
    let gains: Float64Array = deltas
        .iter()
        .map(|delta| delta.map(|delta| if delta.is_finite() { delta.max(0.0) } else { delta }))
        .collect();
    rank_norm(&gains)
        .iter()
        .zip(&gains)
        .map(|(rank, gain)| Some(if gain? > 0.0 { rank? } else { rank.map(|_| 0.0)? }))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use arrow::array::Float64Array;

    use super::{DeltaMode, positive_delta_norm};

    #[test]
    fn zeros_count_in_ranks_but_get_zero() {
        let deltas = Float64Array::from(vec![Some(0.2), Some(0.0), Some(-3.0), Some(0.4), None, Some(f64::NAN)]);
        let weights = Float64Array::from(vec![0.5; 6]);
        let rank = positive_delta_norm(&deltas, DeltaMode::Rank, &weights);
        assert_eq!(
            rank,
            Float64Array::from(vec![Some(1.0 - 1.0 / 3.0), Some(0.0), Some(0.0), Some(1.0), None, None])
        );
        let minmax = positive_delta_norm(&deltas, DeltaMode::Minmax, &weights);
        assert_eq!(
            minmax,
            Float64Array::from(vec![Some(0.5), Some(0.0), Some(0.0), Some(1.0), None, None])
        );
        assert_eq!(
            "exp".parse::<DeltaMode>().unwrap_err().to_string(),
            "positive_delta_norm: unknown mode 'exp'; use 'minmax', 'rank' or 'hybrid'"
        );
    }
}
