//! How a graded score stands among the teams of a leaderboard, in words.

/// SQL expression over the columns `rank`, `teams` and `medal` of `bench.grades`. The submission is none of the teams, so a
/// score below all of them has a rank above their number, which no person would say.
pub const STANDING: &str = include_str!("sql/standing.sql");
