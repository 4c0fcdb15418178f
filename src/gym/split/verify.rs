//! Proof of a derived split: a submission made of its answers must score at the good end of the metric.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::gym::checks::Check;
use crate::gym::columns::Columns;
use crate::gym::table::{Cell, Table, TableWriter};

/// Distance from the bound, relative to its size, that rounding and clipping may cause.
const TOLERANCE: f64 = 1e-6;

/// Submissions that say exactly what the answers say. There is more than one when it is not known which of two classes is the positive one,
/// and none when it is not known how a perfect submission looks.
pub fn perfect_submissions<'t>(sample: &'t Table, answer: &Table, columns: &Columns) -> Vec<TableWriter<'t>> {
    let Some(rows) = matching_rows(sample, answer, columns.id.as_deref()) else {
        return Vec::new();
    };
    let truth = |target: &str| answer.position(target).map(|c| answer.column(c)).unwrap_or_default();
    let write = |cell: &dyn Fn(usize, &str) -> String| {
        let mut writer = sample.writer();
        writer.header();
        for (row, answer_row) in rows.iter().enumerate() {
            writer.row(sample.columns().iter().enumerate().map(|(c, name)| {
                if columns.predicted.contains(name) {
                    Cell::Text(cell(*answer_row, name).into())
                } else {
                    Cell::Field(sample, row, c)
                }
            }));
        }
        writer
    };
    let is_number = |v: &Cow<'_, str>| v.trim().parse::<f64>().is_ok();
    if let ([predicted], [target]) = (columns.predicted.as_slice(), columns.targets.as_slice()) {
        let values = truth(target);
        let filled = sample.position(predicted).map(|c| sample.column(c)).unwrap_or_default();
        if filled.iter().all(is_number) && !values.iter().all(is_number) {
            let mut classes: Vec<&str> = values
                .iter()
                .map(|v| v.as_ref())
                .collect::<HashSet<_>>()
                .into_iter()
                .collect();
            classes.sort_unstable();
            if classes.len() != 2 {
                return Vec::new();
            }
            return classes
                .iter()
                .map(|class| {
                    write(&|row, _| {
                        if values[row] == *class {
                            "1.0".to_owned()
                        } else {
                            "0.0".to_owned()
                        }
                    })
                })
                .collect();
        }
        return vec![write(&|row, _| values[row].to_string())];
    }
    if columns.predicted.iter().all(|p| columns.targets.contains(p)) {
        let truths: HashMap<&str, Vec<Cow<'_, str>>> =
            columns.predicted.iter().map(|p| (p.as_str(), truth(p))).collect();
        return vec![write(&|row, name| {
            truths.get(name).map(|v| v[row].to_string()).unwrap_or_default()
        })];
    }
    if let [target] = columns.targets.as_slice() {
        let values = truth(target);
        if values.iter().all(|v| columns.predicted.iter().any(|p| p == v)) {
            return vec![write(&|row, name| {
                if values[row] == name {
                    "1.0".to_owned()
                } else {
                    "0.0".to_owned()
                }
            })];
        }
    }
    Vec::new()
}

/// For each row of the submission, the row of the answers that it is compared with.
fn matching_rows(sample: &Table, answer: &Table, id: Option<&str>) -> Option<Vec<usize>> {
    let keys = id.and_then(|id| Some((sample.column(sample.position(id)?), answer.column(answer.position(id)?))));
    if let Some((wanted, present)) = keys {
        let place: HashMap<Cow<'_, str>, usize> = present.into_iter().enumerate().map(|(row, v)| (v, row)).collect();
        if place.len() == answer.len() {
            return wanted.iter().map(|v| place.get(v).copied()).collect();
        }
    }
    (sample.len() == answer.len()).then(|| (0..sample.len()).collect())
}

/// Judges the score of the perfect submission against the bounds of the metric and the score of the sample.
pub fn verify_perfect(
    perfect: Option<f64>,
    sample: f64,
    higher_is_better: bool,
    bounds: (Option<f64>, Option<f64>),
) -> Check {
    const ID: &str = "validation_perfect_submission";
    let Some(perfect) = perfect else {
        return Check::warning(
            ID,
            "it is not known how a perfect submission looks, so only the sample submission was scored",
        );
    };
    let end = if higher_is_better { bounds.1 } else { bounds.0 };
    if let Some(end) = end
        && (perfect - end).abs() <= TOLERANCE * end.abs().max(1.0)
    {
        return Check::passed(ID, format!("the answers themselves score {perfect}, the best possible"));
    }
    let gain = if higher_is_better {
        perfect - sample
    } else {
        sample - perfect
    };
    if gain <= 0.0 {
        return Check::failed(
            ID,
            format!("the answers themselves score {perfect}, no better than the sample submission with {sample}"),
        );
    }
    match end {
        Some(end) => Check::warning(
            ID,
            format!("the answers themselves score {perfect}, not the metric's best value {end}"),
        ),
        None => Check::passed(
            ID,
            format!("the answers themselves score {perfect}, the sample submission {sample}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::gym::checks::CheckStatus;

    fn table(text: &str) -> Table {
        Table::from_bytes(text.as_bytes().to_vec())
    }

    fn perfect(sample: &str, test: &str, answer: &str) -> Vec<String> {
        let (sample, answer) = (table(sample), table(answer));
        let columns = Columns::find(&sample, &table(test), &answer);
        perfect_submissions(&sample, &answer, &columns)
            .into_iter()
            .map(|w| String::from_utf8(w.into_bytes()).unwrap())
            .collect()
    }

    #[test]
    fn shapes_of_answers() {
        assert_eq!(
            perfect("id,y\n1,0\n2,0\n", "id\n1\n2\n", "id,y\n2,7\n1,5\n"),
            ["id,y\n1,5\n2,7\n"]
        );
        assert_eq!(
            perfect("id,y\n1,0.5\n2,0.5\n", "id\n1\n2\n", "id,y\n1,bad\n2,good\n"),
            ["id,y\n1,1.0\n2,0.0\n", "id,y\n1,0.0\n2,1.0\n"]
        );
        assert_eq!(
            perfect(
                "id,win,loss\n1,0.5,0.5\n2,0.5,0.5\n",
                "id\n1\n2\n",
                "id,result\n1,win\n2,loss\n"
            ),
            ["id,win,loss\n1,1.0,0.0\n2,0.0,1.0\n"]
        );
        assert_eq!(
            perfect("id,a,b\n1,0,0\n", "id\n1\n", "id,b,a\n1,2,3\n"),
            ["id,a,b\n1,3,2\n"]
        );
        assert_eq!(perfect("y\n0\n0\n", "x\n1\n2\n", "y\n4\n5\n"), ["y\n4\n5\n"]);
        assert!(perfect("id,risk\n1,0\n", "id\n1\n", "id,time,event\n1,2,1\n").is_empty());
    }

    #[test]
    fn verdicts() {
        let status = |perfect, sample, higher, bounds| verify_perfect(perfect, sample, higher, bounds).status;
        assert_eq!(
            status(Some(1.0), 0.5, true, (Some(0.0), Some(1.0))),
            CheckStatus::Passed
        );
        assert_eq!(status(Some(1e-15), 1.09, false, (Some(0.0), None)), CheckStatus::Passed);
        assert_eq!(
            status(Some(0.0), 1.0, true, (Some(0.0), Some(1.0))),
            CheckStatus::Failed
        );
        assert_eq!(status(Some(0.9), 0.5, true, (None, Some(1.0))), CheckStatus::Warning);
        assert_eq!(status(Some(-3.0), -9.0, true, (None, None)), CheckStatus::Passed);
        assert_eq!(status(None, 0.5, true, (None, None)), CheckStatus::Warning);
        assert_eq!(status(Some(0.0), 0.0, false, (Some(0.0), None)), CheckStatus::Passed);
    }
}
