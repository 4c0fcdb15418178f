//! Axes: round ticks, and a range that one poor program cannot stretch.

/// A range of scores on an axis; scores beyond it are drawn at its edge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ScoreRange {
    pub low: f64,
    pub high: f64,
}

/// Share of the scores that the range is made for.
const INNER: f64 = 0.9;

/// How far beyond those a score may be and still stretch the range.
const STRETCH: f64 = 2.0;

/// Free room beyond the poorest and beyond the best score, as shares of the range.
const MARGIN: f64 = 0.06;
const BEST_MARGIN: f64 = 0.12;

impl ScoreRange {
    /// The range of `scores`: the best is always inside, far outliers on the poor side are not.
    pub fn of(scores: &[f64], higher_is_better: bool) -> Self {
        let sign = if higher_is_better { 1.0 } else { -1.0 };
        let mut signed: Vec<f64> = scores.iter().map(|score| score * sign).collect();
        signed.sort_by(|a, b| b.total_cmp(a));
        let (Some(best), Some(worst)) = (signed.first().copied(), signed.last().copied()) else {
            return Self { low: 0.0, high: 1.0 };
        };
        let inner = signed[((signed.len() - 1) as f64 * INNER).floor() as usize];
        let limit = best - (best - inner) * (1.0 + STRETCH);
        // A score that all but one share gives no measure; then nothing is an outlier.
        let poor = if inner < best {
            signed.iter().rev().copied().find(|score| *score >= limit)
        } else {
            None
        };
        let (best, poor) = (best * sign, poor.unwrap_or(worst) * sign);
        let spread = (best - poor).abs();
        let spread = if spread > 0.0 {
            spread
        } else {
            best.abs().max(1.0) * 0.5
        };
        // The label of the best sits beyond it.
        let (best, poor) = (best + sign * spread * BEST_MARGIN, poor - sign * spread * MARGIN);
        Self {
            low: best.min(poor),
            high: best.max(poor),
        }
    }

    /// The score, moved to the edge when it is beyond.
    pub fn clamp(&self, score: f64) -> f64 {
        score.clamp(self.low, self.high)
    }

    /// Whether the score is within.
    pub fn contains(&self, score: f64) -> bool {
        (self.low..=self.high).contains(&score)
    }
}

/// Most steps that are all labelled.
const EVERY_STEP: u64 = 24;

/// About `count` round values within a range, with the decimals they need.
pub(crate) fn ticks(low: f64, high: f64, count: usize) -> (Vec<f64>, usize) {
    let raw = (high - low) / count.max(1) as f64;
    if !(raw.is_finite() && raw > 0.0) {
        return (vec![low], 0);
    }
    let magnitude = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|m| m * magnitude)
        .find(|step| *step >= raw * 0.999);
    let step = step.unwrap_or(10.0 * magnitude);
    let mut decimals = (-magnitude.log10().round()).max(0.0) as usize;
    // 2.5 and 0.25 need a decimal more than their magnitude says, 25 does not.
    if magnitude < 5.0 && (step / magnitude - 2.5).abs() < 1e-9 {
        decimals += 1;
    }
    let first = (low / step).ceil() as i64;
    let last = (high / step).floor() as i64;
    ((first..=last).map(|i| i as f64 * step).collect(), decimals)
}

/// Whole steps from 1 to `last`: all of them where there is room for their labels, else round ones.
pub(crate) fn step_ticks(last: u64, count: usize) -> Vec<u64> {
    if last <= EVERY_STEP {
        return (1..=last).collect();
    }
    let (values, _) = ticks(0.0, last as f64, count);
    let mut steps: Vec<u64> = values
        .into_iter()
        .filter(|value| value.fract() == 0.0 && *value >= 1.0)
        .map(|value| value as u64)
        .collect();
    if steps.first() != Some(&1) {
        steps.insert(0, 1);
    }
    steps.dedup();
    // The first round step may be too near to 1 to be labelled.
    if steps.len() > 2 && steps[1] < 1 + (steps[2] - steps[1]) / 2 {
        steps.remove(1);
    }
    steps
}

/// A score as short as its size allows: five decimals, or three significant digits when it is large or tiny.
pub(super) fn score_text(score: f64) -> String {
    let size = score.abs();
    if size != 0.0 && !(1e-3..1e6).contains(&size) {
        format!("{score:.3e}")
    } else {
        format!("{score:.5}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outlier_does_not_stretch_the_range() {
        let mut scores: Vec<f64> = (0..40).map(|i| 2.0 + f64::from(i) * 0.01).collect();
        scores.push(5_000.0);
        let range = ScoreRange::of(&scores, false);
        assert!(range.contains(2.0) && range.high < 4.0, "{range:?}");
        assert!(!range.contains(5_000.0));
        let range = ScoreRange::of(&scores, true);
        assert!(range.contains(5_000.0), "the best is always inside: {range:?}");
    }

    #[test]
    fn equal_and_missing_scores_have_a_range() {
        assert_eq!(ScoreRange::of(&[], true), ScoreRange { low: 0.0, high: 1.0 });
        let range = ScoreRange::of(&[0.0], true);
        assert!(range.low < 0.0 && range.high > 0.0);
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            ticks(0.0, 1.0, 5),
            (vec![0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0], 1)
        );
        assert_eq!(ticks(0.71, 0.79, 4).1, 2);
        assert_eq!(ticks(0.0, 10.0, 4), (vec![0.0, 2.5, 5.0, 7.5, 10.0], 1));
        assert_eq!(ticks(0.0, 750.0, 3), (vec![0.0, 250.0, 500.0, 750.0], 0));
        assert_eq!(step_ticks(40, 8), vec![1, 5, 10, 15, 20, 25, 30, 35, 40]);
        assert_eq!(step_ticks(1, 8), vec![1]);
        assert_eq!(step_ticks(6, 8), vec![1, 2, 3, 4, 5, 6]);
        assert_eq!(step_ticks(800, 8)[..3], [1, 100, 200]);
    }
}
