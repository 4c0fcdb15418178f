//! Probabilities from utilities.

use arrow::array::Float64Array;

/// `exp(x / temperature)` divided by its sum over the valid values; NULL and values that are not finite get NULL.
///
/// At temperature 0 the choice is greedy: the highest value gets 1, equal ones share it. `temperature` must be finite
/// and not below zero.
pub fn softmax(values: &Float64Array, temperature: f64) -> Float64Array {
    let highest = values
        .iter()
        .flatten()
        .filter(|value| value.is_finite())
        .fold(f64::NEG_INFINITY, f64::max);
    let weight = |value: f64| {
        if value == highest {
            1.0
        } else if temperature > 0.0 {
            ((value - highest) / temperature).exp()
        } else {
            0.0
        }
    };
    let weights: Vec<Option<f64>> = values
        .iter()
        .map(|value| value.filter(|value| value.is_finite()).map(weight))
        .collect();
    let total: f64 = weights.iter().flatten().sum();
    weights
        .into_iter()
        .map(|weight| weight.map(|weight| weight / total))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use arrow::array::Float64Array;

    use super::softmax;

    #[test]
    fn greedy_shares_ties() {
        let values = Float64Array::from(vec![Some(2.0), Some(1.0), Some(2.0), None, Some(f64::NAN)]);
        assert_eq!(
            softmax(&values, 0.0),
            Float64Array::from(vec![Some(0.5), Some(0.0), Some(0.5), None, None])
        );
    }

    #[test]
    fn extremes() {
        let values = Float64Array::from(vec![f64::MAX, f64::MIN]);
        assert_eq!(softmax(&values, 1e-300), Float64Array::from(vec![1.0, 0.0]));
        let close = softmax(&Float64Array::from(vec![0.0, 1.0]), 1.0);
        assert!((close.value(1) - 0.731_058_578_630_004_9).abs() < 1e-15);
    }
}
