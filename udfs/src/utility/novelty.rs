//! Novelty of a method family.

/// `1 / sqrt(1 + count)` for a family that was seen `count` times before; nothing for a count below zero.
pub fn novelty(count: f64) -> Option<f64> {
    (count.is_finite() && count >= 0.0).then(|| 1.0 / (1.0 + count).sqrt())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::novelty;

    #[test]
    fn falls_with_the_count() {
        assert_eq!(novelty(0.0), Some(1.0));
        assert_eq!(novelty(3.0), Some(0.5));
        assert_eq!(novelty(-1.0), None);
        assert_eq!(novelty(f64::NAN), None);
    }
}
