//! Linear decay of a temperature over the generations of a run.

/// On the line from `initial` at generation 0 to `last` at generation `generations`, and flat beyond both ends; nothing
/// when there are no generations or a value is not finite.
pub fn linear_decay(initial: f64, last: f64, generations: f64, generation: f64) -> Option<f64> {
    let is_valid = [initial, last, generations, generation]
        .iter()
        .all(|value| value.is_finite());
    (is_valid && generations > 0.0).then(|| {
        let value = initial - (initial - last) * generation.max(0.0) / generations;
        value.clamp(initial.min(last), initial.max(last))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::linear_decay;

    #[test]
    fn is_a_line_with_flat_ends() {
        assert_eq!(linear_decay(2.0, 1.0, 4.0, 1.0), Some(1.75));
        assert_eq!(linear_decay(2.0, 1.0, 4.0, 9.0), Some(1.0));
        assert_eq!(linear_decay(2.0, 1.0, 4.0, -1.0), Some(2.0));
        assert_eq!(linear_decay(1.0, 2.0, 4.0, 1.0), Some(1.25));
        assert_eq!(linear_decay(1.0, 2.0, 0.0, 1.0), None);
        assert_eq!(linear_decay(f64::NAN, 2.0, 4.0, 1.0), None);
    }
}
