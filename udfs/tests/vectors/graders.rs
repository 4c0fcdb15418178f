//! Grading and the direction of scores.

use datafusion::prelude::SessionContext;
use serde_json::{Value, json};

use super::harness::number;
use super::{Case, Check, Predicate, Suite};
use crate::session::{booleans, floats, integers, number_list, put_table, rows, value};

/// Medal thresholds.
pub struct MedalPositions;

impl Suite for MedalPositions {
    const FILE: &'static str = "medal_positions";

    async fn checks(context: &SessionContext, case: &Case) -> Vec<Check> {
        put_table(
            context,
            "t",
            vec![("n", integers([case.input["num_teams"].as_i64().unwrap()]))],
        );
        let sql = "SELECT [p['gold'], p['silver'], p['bronze']] FROM (SELECT medal_positions(n) AS p FROM t)";
        let ours = value(context, sql).await;
        vec![Check::new("medal_positions", &case.input, &case.expected, ours)]
    }
}

/// A leaderboard and its direction. The direction is a fact of the task; here the order of the board tells it, and for
/// a generated board the sign of its step.
struct Board {
    scores: Vec<f64>,
    higher_is_better: bool,
}

impl Board {
    fn read(value: &Value) -> Self {
        match value {
            Value::Array(scores) => {
                let scores: Vec<f64> = scores.iter().filter_map(number).collect();
                let higher_is_better = scores.first() >= scores.last();
                Self {
                    scores,
                    higher_is_better,
                }
            }
            generator => {
                let [start, step] = ["start", "step"].map(|name| generator[name].as_f64().unwrap());
                let [count, digits] = ["n", "round"].map(|name| generator[name].as_u64().unwrap() as usize);
                let scores = (0..count)
                    .map(|index| format!("{:.digits$}", start + step * index as f64).parse().unwrap())
                    .collect();
                Self {
                    scores,
                    higher_is_better: step < 0.0,
                }
            }
        }
    }

    fn put(&self, context: &SessionContext) {
        put_table(
            context,
            "board",
            vec![
                ("scores", number_list(&self.scores)),
                ("higher", booleans([Some(self.higher_is_better)])),
            ],
        );
    }
}

/// Medal and grade of the scores in table `t`; the reference's grade is the share of the place, the last at most.
const GRADE: &str = "SELECT medal(score, scores, higher),
    CAST(CASE WHEN place > cardinality(scores) THEN cardinality(scores) ELSE place END AS DOUBLE) / cardinality(scores)
    FROM (SELECT *, leaderboard_rank(score, scores, higher) AS place FROM t CROSS JOIN board) ORDER BY i";

fn our_medal(reference: &Value) -> Value {
    if reference == "N/A" {
        json!("none")
    } else {
        reference.clone()
    }
}

/// Medals and grades.
pub struct MedalGrade;

impl Suite for MedalGrade {
    const FILE: &'static str = "medal_grade";
    const PREDICATES: &'static [(&'static str, Predicate)] = &[("one team and lower is better", |check| {
        let board = check.input["leaderboard"].as_array().unwrap();
        check.what == "medal"
            && board.len() == 1
            && check.input["higher_is_better"] == false
            && board[0] != check.input["score"]
    })];

    async fn checks(context: &SessionContext, case: &Case) -> Vec<Check> {
        let board = Board::read(&case.input["leaderboard"]);
        board.put(context);
        let expected = case.expected.as_array().unwrap();
        put_table(
            context,
            "t",
            vec![
                ("i", integers(0..expected.len() as i64)),
                ("score", floats(expected.iter().map(|answer| number(&answer["score"])))),
            ],
        );
        let ours = rows(context, GRADE).await.unwrap();
        assert_eq!(ours.len(), expected.len());
        expected
            .iter()
            .zip(ours)
            .flat_map(|(answer, row)| {
                let input = json!({
                    "score": answer["score"],
                    "leaderboard": board.scores,
                    "higher_is_better": board.higher_is_better,
                });
                [
                    Check::new("medal", &input, &our_medal(&answer["evo_medal"]), row[0].clone()),
                    Check::new("grade", &input, &answer["grade"], row[1].clone()),
                ]
            })
            .collect()
    }
}

/// Grade and medal of a submission.
pub struct SubmitGradeAndMedal;

impl Suite for SubmitGradeAndMedal {
    const FILE: &'static str = "submit_grade_and_medal";
    const PREDICATES: &'static [(&'static str, Predicate)] =
        &[("score is NULL", |check| check.input["score"].is_null())];

    async fn checks(context: &SessionContext, case: &Case) -> Vec<Check> {
        Board::read(&case.input["leaderboard"]).put(context);
        put_table(
            context,
            "t",
            vec![("i", integers([0])), ("score", floats([number(&case.input["score"])]))],
        );
        let ours = rows(context, GRADE).await.unwrap().remove(0);
        vec![
            Check::new("medal", &case.input, &our_medal(&case.expected[1]), ours[0].clone()),
            Check::new("grade", &case.input, &case.expected[0], ours[1].clone()),
        ]
    }
}

/// Scores turned so that higher is better.
pub struct SignedScore;

fn has_valid_score(check: &Check) -> bool {
    number(&check.input["score"]).is_some_and(f64::is_finite)
}

impl Suite for SignedScore {
    const FILE: &'static str = "reward_signed_score";
    const PREDICATES: &'static [(&'static str, Predicate)] = &[
        ("score is not finite", |check| !has_valid_score(check)),
        ("direction is unknown", |check| {
            has_valid_score(check) && check.input["metadata"]["higher_is_better"].is_null()
        }),
    ];

    async fn checks(context: &SessionContext, case: &Case) -> Vec<Check> {
        put_table(
            context,
            "t",
            vec![
                ("score", floats([number(&case.input["score"])])),
                (
                    "higher",
                    booleans([case.input["metadata"]["higher_is_better"].as_bool()]),
                ),
            ],
        );
        let ours = value(context, "SELECT signed_score(score, higher) FROM t").await;
        vec![Check::new("signed_score", &case.input, &case.expected, ours)]
    }
}
