//! Place of a score among a leaderboard's teams.

/// A score's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// From 1 for the best; one more than the number of strictly better teams.
    pub(super) rank: i64,
    /// Teams with a finite score.
    pub(super) teams: i64,
}

/// Place of a score; nothing for a score that is not finite or a leaderboard without finite scores.
pub(super) fn place(score: f64, leaderboard: &[f64], higher_is_better: bool) -> Option<Place> {
    if !score.is_finite() {
        return None;
    }
    let mut teams = 0;
    let mut better = 0;
    for team in leaderboard.iter().copied().filter(|team| team.is_finite()) {
        teams += 1;
        better += i64::from(if higher_is_better { team > score } else { team < score });
    }
    (teams > 0).then_some(Place {
        rank: better + 1,
        teams,
    })
}

/// Place of a score among the leaderboard's teams, from 1 for the best; a score worse than all `n` teams has place
/// `n + 1`.
///
/// Nothing for a score that is not finite or a leaderboard without finite scores.
pub fn leaderboard_rank(score: f64, leaderboard: &[f64], higher_is_better: bool) -> Option<i64> {
    place(score, leaderboard, higher_is_better).map(|place| place.rank)
}

/// Share of the leaderboard's teams that a score beats or equals, from 0 to 1.
///
/// Nothing for a score that is not finite or a leaderboard without finite scores.
pub fn human_rank(score: f64, leaderboard: &[f64], higher_is_better: bool) -> Option<f64> {
    let place = place(score, leaderboard, higher_is_better)?;
    Some((place.teams - place.rank + 1) as f64 / place.teams as f64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::{human_rank, leaderboard_rank};

    #[test]
    fn places_and_shares() {
        let board = [0.9, 0.8, 0.8, f64::NAN, 0.1];
        for (score, rank, share) in [
            (1.0, 1, 1.0),
            (0.9, 1, 1.0),
            (0.8, 2, 0.75),
            (0.5, 4, 0.25),
            (0.0, 5, 0.0),
        ] {
            assert_eq!(leaderboard_rank(score, &board, true), Some(rank));
            assert_eq!(human_rank(score, &board, true), Some(share));
        }
        assert_eq!(leaderboard_rank(0.1, &board, false), Some(1));
        assert_eq!(human_rank(f64::NAN, &board, true), None);
        assert_eq!(human_rank(1.0, &[], true), None);
    }
}
