//! Medals by the official competition thresholds.

use super::rank::place;

/// Lowest places that still win a medal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MedalPositions {
    /// Last place with a gold medal.
    pub gold: i64,
    /// Last place with a silver medal.
    pub silver: i64,
    /// Last place with a bronze medal.
    pub bronze: i64,
}

/// A medal, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medal {
    /// Gold.
    Gold,
    /// Silver.
    Silver,
    /// Bronze.
    Bronze,
    /// A valid score without a medal.
    None,
}

impl Medal {
    /// Name as stored in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gold => "gold",
            Self::Silver => "silver",
            Self::Bronze => "bronze",
            Self::None => "none",
        }
    }
}

/// Last places with a medal on a leaderboard of `teams` teams; nothing without teams.
///
/// Shares are cut to whole places after a product of binary floats, as the official thresholds are.
pub fn medal_positions(teams: i64) -> Option<MedalPositions> {
    if teams < 1 {
        return None;
    }
    let share = |ratio: f64| (teams as f64 * ratio) as i64;
    let (gold, silver, bronze) = match teams {
        ..100 => (share(0.1).max(1), share(0.2).max(1), share(0.4).max(1)),
        100..250 => (10, share(0.2).max(1), share(0.4).max(1)),
        250..1000 => (10 + share(0.002), 50, 100),
        _ => (10 + share(0.002), share(0.05), share(0.1)),
    };
    Some(MedalPositions { gold, silver, bronze })
}

/// Medal of a score on a leaderboard; nothing for a score that is not finite or a leaderboard without finite scores.
pub fn medal(score: f64, leaderboard: &[f64], higher_is_better: bool) -> Option<Medal> {
    let place = place(score, leaderboard, higher_is_better)?;
    let positions = medal_positions(place.teams)?;
    Some(match place.rank {
        rank if rank <= positions.gold => Medal::Gold,
        rank if rank <= positions.silver => Medal::Silver,
        rank if rank <= positions.bronze => Medal::Bronze,
        _ => Medal::None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::{Medal, medal, medal_positions};

    #[test]
    fn thresholds() {
        for (teams, expected) in [
            (1, (1, 1, 1)),
            (99, (9, 19, 39)),
            (100, (10, 20, 40)),
            (250, (10, 50, 100)),
            (1020, (12, 51, 102)),
        ] {
            let positions = medal_positions(teams).unwrap();
            assert_eq!(
                (positions.gold, positions.silver, positions.bronze),
                expected,
                "{teams}"
            );
        }
        assert_eq!(medal_positions(0), None);
    }

    #[test]
    fn direction_and_invalid_scores() {
        let board = [0.1, 0.2, 0.3, 0.4, 0.5];
        assert_eq!(medal(0.1, &board, false), Some(Medal::Gold));
        assert_eq!(medal(0.1, &board, true), Some(Medal::None));
        assert_eq!(medal(f64::NAN, &board, true), None);
        assert_eq!(medal(f64::INFINITY, &board, true), None);
        assert_eq!(medal(0.1, &[], true), None);
        assert_eq!(medal(0.1, &[f64::NAN], true), None);
    }
}
