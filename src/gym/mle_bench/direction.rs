//! The direction of a metric by its leaderboard, which MLE-Bench keeps with the best team first.

use crate::gym::table::Table;

/// Whether higher is better, by a leaderboard that is sorted; else why it does not tell.
pub fn higher_is_better(leaderboard: &Table) -> Result<bool, String> {
    let column = leaderboard
        .position("score")
        .ok_or_else(|| "it has no column 'score'".to_owned())?;
    let scores: Vec<f64> = leaderboard
        .column(column)
        .iter()
        .filter_map(|text| text.trim().parse::<f64>().ok())
        .filter(|score| score.is_finite())
        .collect();
    let (Some(first), Some(last)) = (scores.first(), scores.last()) else {
        return Err("it has no scores".to_owned());
    };
    if first == last {
        return Err("all its scores are equal".to_owned());
    }
    let falls = first > last;
    let is_sorted = scores
        .windows(2)
        .all(|pair| if falls { pair[0] >= pair[1] } else { pair[0] <= pair[1] });
    if is_sorted {
        Ok(falls)
    } else {
        Err("its scores are not sorted".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_sorted_leaderboard_tells() {
        let of = |text: &str| higher_is_better(&Table::from_bytes(text.as_bytes().to_vec()));
        assert_eq!(of("team,score\na,0.9\nb,0.8\nc,\nd,0.8\ne,0.1\n"), Ok(true));
        assert_eq!(of("score,rank\n0.1,1\n0.5,2\n"), Ok(false));
        for (text, reason) in [
            ("score\n0.5\n0.9\n0.1\n", "not sorted"),
            ("score\n0.5\n0.5\n", "equal"),
            ("points\n0.5\n", "no column"),
            ("score\nn/a\n", "no scores"),
        ] {
            assert!(of(text).is_err_and(|error| error.contains(reason)), "{text}");
        }
    }
}
