//! Leaderboards: teams and scores of a package, ranked by the task's direction.

use crate::gym::checks::Check;
use crate::gym::table::Table;

/// Name of the check.
const CHECK: &str = "leaderboard";
/// Names that the column of the scores may have, without blanks and underscores.
const SCORES: [&str; 3] = ["score", "publicscore", "privatescore"];
/// Names that the column of the teams may have.
const TEAMS: [&str; 3] = ["teamname", "team", "name"];
/// Most rows that a finding lists.
const LISTED: usize = 10;

/// A team on a leaderboard.
#[derive(Debug, Clone, PartialEq)]
pub struct Team {
    /// Place, from 1 for the best.
    pub rank: u64,
    /// Name, when the file has one.
    pub team: Option<String>,
    /// Score.
    pub score: f64,
}

/// The teams of a file that have a score, in its order.
#[derive(Debug)]
pub struct Leaderboard {
    teams: Vec<Team>,
    /// Rows without a finite score.
    left_out: Vec<String>,
}

impl Leaderboard {
    /// Reads the table of the file `name`. Without any score it is of no use, and the check that fails says so.
    pub fn read(name: &str, table: &Table) -> Result<Self, Check> {
        let find = |names: &[&str]| {
            table.columns().iter().position(|column| {
                let plain = column.trim().replace(['_', ' '], "");
                names.iter().any(|name| plain.eq_ignore_ascii_case(name))
            })
        };
        let Some(score) = find(&SCORES) else {
            return Err(Check::failed(
                CHECK,
                format!(
                    "{name} has no column 'score', it has {}; name the column of the scores, or take the file away",
                    table.columns().join(", ")
                ),
            ));
        };
        let team = find(&TEAMS);
        let (mut teams, mut left_out) = (Vec::new(), Vec::new());
        for row in 0..table.len() {
            let text = table.value(row, score).unwrap_or_default();
            match text.trim().parse::<f64>() {
                Ok(value) if value.is_finite() => {
                    let team = team
                        .and_then(|column| table.value(row, column))
                        .map(|value| value.trim().to_owned())
                        .filter(|value| !value.is_empty());
                    teams.push(Team {
                        rank: 0,
                        team,
                        score: value,
                    });
                }
                _ => left_out.push(format!("row {} ('{text}')", row + 1)),
            }
        }
        if teams.is_empty() {
            return Err(Check::failed(
                CHECK,
                format!(
                    "{name} has no finite number in its column '{}', in {} rows; fill it, or take the file away",
                    table.columns()[score].trim(),
                    table.len()
                ),
            ));
        }
        Ok(Self { teams, left_out })
    }

    /// What was found.
    pub fn check(&self) -> Check {
        let count = self.teams.len();
        if self.left_out.is_empty() {
            return Check::passed(CHECK, format!("{count} teams"));
        }
        let listed: Vec<&str> = self.left_out.iter().take(LISTED).map(String::as_str).collect();
        Check::warning(
            CHECK,
            format!(
                "{count} teams; rows without a finite score are left out: {}",
                listed.join(", ")
            ),
        )
    }

    /// The teams, best first.
    pub fn ranked(self, higher_is_better: bool) -> Vec<Team> {
        let mut teams = self.teams;
        // A stable sort keeps the file's order among equal scores.
        teams.sort_by(|a, b| {
            if higher_is_better {
                b.score.total_cmp(&a.score)
            } else {
                a.score.total_cmp(&b.score)
            }
        });
        for (place, team) in teams.iter_mut().enumerate() {
            team.rank = place as u64 + 1;
        }
        teams
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::gym::checks::CheckStatus;

    fn read(text: &str) -> Result<Leaderboard, Check> {
        Leaderboard::read("leaderboard.csv", &Table::from_bytes(text.as_bytes().to_vec()))
    }

    fn ranked(text: &str, higher: bool) -> Vec<(u64, String, f64)> {
        let teams = read(text).unwrap().ranked(higher).into_iter();
        teams
            .map(|team| (team.rank, team.team.unwrap_or_default(), team.score))
            .collect()
    }

    #[test]
    fn an_unsorted_file_is_ranked_by_the_direction() {
        let text = "TeamName, SCORE \nb,0.5\na,0.9\nc,0.5\n";
        assert_eq!(
            ranked(text, true),
            [(1, "a".into(), 0.9), (2, "b".into(), 0.5), (3, "c".into(), 0.5)]
        );
        assert_eq!(read(text).unwrap().check().status, CheckStatus::Passed);
        assert_eq!(ranked(text, false)[0].1, "b");
    }

    #[test]
    fn rows_without_a_number_are_reported() {
        let text = "team,score\na,1\nb,\nc,nan\nd,n/a\ne,inf\n";
        assert_eq!(ranked(text, false).len(), 1);
        let check = read(text).unwrap().check();
        assert_eq!(check.status, CheckStatus::Warning);
        assert!(
            check.detail.contains("row 2") && check.detail.contains("'n/a'"),
            "{}",
            check.detail
        );
    }

    #[test]
    fn a_file_without_scores_is_a_fault() {
        for (text, part) in [
            (
                "team,points\na,1\n",
                "leaderboard.csv has no column 'score', it has team, points",
            ),
            (
                "team,Score\na,\nb,n/a\n",
                "no finite number in its column 'Score', in 2 rows",
            ),
            ("team,score\n", "no finite number in its column 'score', in 0 rows"),
        ] {
            let check = read(text).unwrap_err();
            assert_eq!(check.status, CheckStatus::Failed);
            assert!(check.detail.contains(part), "{}", check.detail);
        }
    }
}
