//! Scales the values of a group to 0..1.
//!
//! Values that are NULL or not finite are invalid: they get NULL and do not change the others.

use arrow::array::{Array, Float64Array};

/// Weight of the min-max part when none is given or it is not a number.
pub const DEFAULT_HYBRID_WEIGHT: f64 = 0.5;

/// Value in the middle of the scale, for groups that cannot be told apart.
const NEUTRAL: f64 = 0.5;

/// The finite value at an index.
pub(super) fn finite(values: &Float64Array, index: usize) -> Option<f64> {
    (!values.is_null(index))
        .then(|| values.value(index))
        .filter(|value| value.is_finite())
}

/// `(x - min) / (max - min)`; 0.5 for all when they are equal.
pub fn minmax_norm(values: &Float64Array) -> Float64Array {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values.iter().flatten().filter(|value| value.is_finite()) {
        low = low.min(value);
        high = high.max(value);
    }
    // Huge values are halved first, so that their range stays finite.
    let scale = if (high - low).is_finite() { 1.0 } else { 0.5 };
    let range = high * scale - low * scale;
    (0..values.len())
        .map(|index| {
            let value = finite(values, index)?;
            Some(if range > 0.0 {
                ((value * scale - low * scale) / range).clamp(0.0, 1.0)
            } else {
                NEUTRAL
            })
        })
        .collect()
}

/// Rank among the valid values: the highest gets 1, the lowest 0, equal ones their mean rank; 0.5 for a single one.
pub fn rank_norm(values: &Float64Array) -> Float64Array {
    let mut order: Vec<(f64, usize)> = (0..values.len())
        .filter_map(|index| Some((finite(values, index)?, index)))
        .collect();
    let mut ranks: Vec<Option<f64>> = vec![None; values.len()];
    let count = order.len();
    order.sort_unstable_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
    let mut first = 0;
    while first < count {
        let peers = order[first..]
            .iter()
            .take_while(|entry| entry.0 == order[first].0)
            .count();
        let position = first as f64 + (peers - 1) as f64 / 2.0;
        let rank = if count == 1 {
            NEUTRAL
        } else {
            1.0 - position / (count - 1) as f64
        };
        for (_, index) in &order[first..first + peers] {
            ranks[*index] = Some(rank);
        }
        first += peers;
    }
    ranks.into_iter().collect()
}

/// `w * minmax + (1 - w) * rank` with each row's own weight.
pub fn hybrid_norm(values: &Float64Array, weights: &Float64Array) -> Float64Array {
    blend(&minmax_norm(values), &rank_norm(values), weights)
}

/// Blends two columns row by row. Weights are clipped to 0..1; one that is not a number counts as 0.5; NULL gives NULL.
pub(super) fn blend(minmax: &Float64Array, rank: &Float64Array, weights: &Float64Array) -> Float64Array {
    minmax
        .iter()
        .zip(rank)
        .zip(weights)
        .map(|((minmax, rank), weight)| {
            let weight = weight?;
            let weight = if weight.is_finite() {
                weight.clamp(0.0, 1.0)
            } else {
                DEFAULT_HYBRID_WEIGHT
            };
            Some(weight * minmax? + (1.0 - weight) * rank?)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use arrow::array::Float64Array;

    use super::{hybrid_norm, minmax_norm, rank_norm};

    #[test]
    fn invalid_values_are_left_out() {
        let values = Float64Array::from(vec![
            Some(1.0),
            None,
            Some(f64::NAN),
            Some(3.0),
            Some(f64::INFINITY),
            Some(1.0),
        ]);
        let minmax: Vec<_> = minmax_norm(&values).iter().collect();
        assert_eq!(minmax, [Some(0.0), None, None, Some(1.0), None, Some(0.0)]);
        let rank: Vec<_> = rank_norm(&values).iter().collect();
        assert_eq!(rank, [Some(0.25), None, None, Some(1.0), None, Some(0.25)]);
    }

    #[test]
    fn edges() {
        let one = Float64Array::from(vec![7.0]);
        assert_eq!(minmax_norm(&one).value(0), 0.5);
        assert_eq!(rank_norm(&one).value(0), 0.5);
        let huge = Float64Array::from(vec![f64::MAX, f64::MIN, 0.0]);
        assert_eq!(minmax_norm(&huge), Float64Array::from(vec![1.0, 0.0, 0.5]));
        let weights = Float64Array::from(vec![Some(7.0), Some(f64::NAN), None]);
        assert_eq!(
            hybrid_norm(&huge, &weights),
            Float64Array::from(vec![Some(1.0), Some(0.0), None])
        );
        assert_eq!(minmax_norm(&Float64Array::from(Vec::<f64>::new())).iter().count(), 0);
        assert_eq!(
            rank_norm(&Float64Array::from(vec![0.0, -0.0])),
            Float64Array::from(vec![0.5, 0.5])
        );
    }
}
