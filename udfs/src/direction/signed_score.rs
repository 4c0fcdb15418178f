//! Scores with their sign turned so that higher is better.

/// The score with its sign turned so that higher is better; nothing for a score that is not finite.
pub fn signed_score(score: f64, higher_is_better: bool) -> Option<f64> {
    score
        .is_finite()
        .then_some(if higher_is_better { score } else { -score })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::signed_score;

    #[test]
    fn turns_the_sign() {
        assert_eq!(signed_score(2.5, true), Some(2.5));
        assert_eq!(signed_score(2.5, false), Some(-2.5));
        assert_eq!(signed_score(f64::NAN, true), None);
        assert_eq!(signed_score(f64::NEG_INFINITY, false), None);
    }
}
