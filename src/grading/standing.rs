//! Where a score stands on a leaderboard.

use clade_udfs::grading::{human_rank, leaderboard_rank, medal};

/// A score's standing. Without a valid score, or without teams, it has none.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Standing {
    /// gold, silver, bronze or none.
    pub medal: Option<&'static str>,
    /// Place from 1; one more than the number of better teams.
    pub rank: Option<i64>,
    /// Share of the teams that the score beats or equals.
    pub human_rank: Option<f64>,
    /// Teams with a finite score.
    pub teams: Option<i64>,
    /// Median of the teams' scores.
    pub leaderboard_median: Option<f64>,
}

impl Standing {
    /// The standing of a score among teams.
    pub fn of(score: Option<f64>, leaderboard: &[f64], higher_is_better: bool) -> Self {
        let teams = leaderboard.iter().filter(|s| s.is_finite()).count();
        let placed = |score: f64| {
            let medal = medal(score, leaderboard, higher_is_better)?;
            let rank = leaderboard_rank(score, leaderboard, higher_is_better)?;
            Some((medal.as_str(), rank, human_rank(score, leaderboard, higher_is_better)?))
        };
        let (medal, rank, human_rank) = match score.and_then(placed) {
            Some((medal, rank, share)) => (Some(medal), Some(rank), Some(share)),
            None => (None, None, None),
        };
        Self {
            medal,
            rank,
            human_rank,
            teams: (teams > 0).then_some(teams as i64),
            leaderboard_median: median(leaderboard),
        }
    }
}

/// Median of the finite scores.
pub fn median(scores: &[f64]) -> Option<f64> {
    let mut finite: Vec<f64> = scores.iter().copied().filter(|s| s.is_finite()).collect();
    finite.sort_by(f64::total_cmp);
    let middle = finite.len() / 2;
    match finite.len() {
        0 => None,
        n if n % 2 == 1 => Some(finite[middle]),
        _ => Some(f64::midpoint(finite[middle - 1], finite[middle])),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn places_in_both_directions() {
        let board = [0.9, 0.8, 0.7, 0.6, 0.5];
        let best = Standing::of(Some(0.95), &board, true);
        assert_eq!(
            (best.medal, best.rank, best.human_rank),
            (Some("gold"), Some(1), Some(1.0))
        );
        assert_eq!((best.teams, best.leaderboard_median), (Some(5), Some(0.7)));
        let worst = Standing::of(Some(0.95), &board, false);
        assert_eq!(
            (worst.medal, worst.rank, worst.human_rank),
            (Some("none"), Some(6), Some(0.0))
        );
    }

    #[test]
    fn invalid_scores_have_no_place() {
        for score in [None, Some(f64::NAN), Some(f64::INFINITY)] {
            let standing = Standing::of(score, &[0.5, 0.6], true);
            assert_eq!((standing.medal, standing.rank, standing.human_rank), (None, None, None));
            assert_eq!((standing.teams, standing.leaderboard_median), (Some(2), Some(0.55)));
        }
        assert_eq!(Standing::of(Some(0.5), &[], true), Standing::default());
        assert_eq!(median(&[f64::NAN, 3.0, 1.0]), Some(2.0));
    }
}
