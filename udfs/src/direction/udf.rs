//! SQL function about the direction of a metric.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array};
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::cast::{as_boolean_array, as_float64_array};
use datafusion_macros::user_doc;

use crate::Function;
use crate::scalar::{exact, scalar, scalar_function};

/// Functions of this family.
pub fn functions() -> Vec<Function> {
    vec![scalar(SignedScore::default())]
}

scalar_function!(
    /// `signed_score(score, higher_is_better)`.
    #[user_doc(
        doc_section(label = "Direction"),
        description = "Score with its sign turned so that higher is better. NULL when the score is NULL or not finite, or the direction is NULL.",
        syntax_example = "signed_score(score, higher_is_better)",
        sql_example = "SELECT signed_score(0.25, false); -- -0.25",
        argument(name = "score", description = "Score of a program."),
        argument(name = "higher_is_better", description = "Direction of the task's metric.")
    )]
    SignedScore,
    "signed_score",
    exact(&[("score", DataType::Float64), ("higher_is_better", DataType::Boolean)]),
    DataType::Float64,
    signed_score
);

fn signed_score(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let scores = as_float64_array(&columns[0])?;
    let directions = as_boolean_array(&columns[1])?;
    let signed: Float64Array = scores
        .iter()
        .zip(directions)
        .map(|(score, higher_is_better)| super::signed_score(score?, higher_is_better?))
        .collect();
    Ok(Arc::new(signed))
}
