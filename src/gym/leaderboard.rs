//! Leaderboards: teams and scores of a package, ranked by the task's direction.

use crate::gym::checks::Check;
use crate::gym::table::Table;

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

/// Reads the teams, best first; rows without a finite score are left out and reported.
pub fn read_leaderboard(table: &Table, higher_is_better: bool) -> (Vec<Team>, Check) {
    let find = |names: &[&str]| {
        table.columns().iter().position(|c| {
            names
                .iter()
                .any(|n| c.trim().replace(['_', ' '], "").eq_ignore_ascii_case(n))
        })
    };
    let Some(score) = find(&["score", "publicscore", "privatescore"]) else {
        return (
            Vec::new(),
            Check::warning("leaderboard", "the leaderboard has no column 'score'; it is not used"),
        );
    };
    let team = find(&["teamname", "team", "name"]);
    let mut teams = Vec::new();
    let mut bad = Vec::new();
    for row in 0..table.len() {
        let text = table.value(row, score).unwrap_or_default();
        match text.trim().parse::<f64>() {
            Ok(value) if value.is_finite() => {
                let name = team
                    .and_then(|c| table.value(row, c))
                    .map(|v| v.trim().to_owned())
                    .filter(|v| !v.is_empty());
                teams.push(Team {
                    rank: 0,
                    team: name,
                    score: value,
                });
            }
            _ => bad.push(format!("row {} ('{text}')", row + 1)),
        }
    }
    // A stable sort keeps the file's order among equal scores.
    teams.sort_by(|a, b| {
        if higher_is_better {
            b.score.total_cmp(&a.score)
        } else {
            a.score.total_cmp(&b.score)
        }
    });
    for (n, team) in teams.iter_mut().enumerate() {
        team.rank = n as u64 + 1;
    }
    let check = if bad.is_empty() {
        Check::passed("leaderboard", format!("{} teams", teams.len()))
    } else {
        bad.truncate(10);
        Check::warning(
            "leaderboard",
            format!(
                "{} teams; rows without a finite score are left out: {}",
                teams.len(),
                bad.join(", ")
            ),
        )
    };
    (teams, check)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::gym::checks::CheckStatus;

    fn read(text: &str, higher: bool) -> (Vec<(u64, String, f64)>, Check) {
        let (teams, check) = read_leaderboard(&Table::from_bytes(text.as_bytes().to_vec()), higher);
        (
            teams
                .into_iter()
                .map(|t| (t.rank, t.team.unwrap_or_default(), t.score))
                .collect(),
            check,
        )
    }

    #[test]
    fn an_unsorted_file_is_ranked_by_the_direction() {
        let text = "TeamName, SCORE \nb,0.5\na,0.9\nc,0.5\n";
        let (teams, check) = read(text, true);
        assert_eq!(
            teams,
            [(1, "a".into(), 0.9), (2, "b".into(), 0.5), (3, "c".into(), 0.5)]
        );
        assert_eq!(check.status, CheckStatus::Passed);
        assert_eq!(read(text, false).0[0].1, "b");
    }

    #[test]
    fn rows_without_a_number_are_reported() {
        let (teams, check) = read("team,score\na,1\nb,\nc,nan\nd,n/a\ne,inf\n", false);
        assert_eq!(teams.len(), 1);
        assert_eq!(check.status, CheckStatus::Warning);
        assert!(
            check.detail.contains("row 2") && check.detail.contains("'n/a'"),
            "{}",
            check.detail
        );
        assert_eq!(read("team,points\na,1\n", true).1.status, CheckStatus::Warning);
    }
}
