//! SQL functions for grading.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, Float64Array, Int64Array, Int64Builder, ListArray, StringArray, StructArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::cast::{as_boolean_array, as_float64_array, as_int64_array, as_list_array};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature,
};
use datafusion_macros::user_doc;

use super::Medal;
use crate::Function;
use crate::scalar::{exact, named, scalar, scalar_function};

/// Functions of this family.
pub fn functions() -> Vec<Function> {
    vec![
        scalar(MedalPositions::default()),
        scalar(MedalOf::default()),
        scalar(HumanRank::default()),
        scalar(LeaderboardRank::default()),
    ]
}

static POSITION_FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    ["gold", "silver", "bronze"]
        .into_iter()
        .map(|name| Field::new(name, DataType::Int64, true))
        .collect()
});

scalar_function!(
    /// `medal_positions(n)`.
    #[user_doc(
        doc_section(label = "Grading"),
        description = "Last places that win gold, silver and bronze on a leaderboard of `n` teams, by the official thresholds. NULL without teams.",
        syntax_example = "medal_positions(n)",
        sql_example = "SELECT medal_positions(250)['silver']; -- 50",
        argument(name = "n", description = "Number of teams.")
    )]
    MedalPositions,
    "medal_positions",
    exact(&[("n", DataType::Int64)]),
    DataType::Struct(POSITION_FIELDS.clone()),
    medal_positions
);

fn medal_positions(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let teams = as_int64_array(&columns[0])?;
    let mut places: [Int64Builder; 3] = std::array::from_fn(|_| Int64Builder::with_capacity(teams.len()));
    let mut valid = Vec::with_capacity(teams.len());
    for teams in teams {
        let positions = teams.and_then(super::medal_positions);
        valid.push(positions.is_some());
        let row = positions.map(|positions| [positions.gold, positions.silver, positions.bronze]);
        for (index, column) in places.iter_mut().enumerate() {
            column.append_option(row.map(|row| row[index]));
        }
    }
    let columns = places
        .iter_mut()
        .map(|column| Arc::new(column.finish()) as ArrayRef)
        .collect();
    Ok(Arc::new(StructArray::try_new(
        POSITION_FIELDS.clone(),
        columns,
        Some(NullBuffer::from(valid)),
    )?))
}

/// Makes a function of a score, a leaderboard and a direction. Its attributes must give it a `doc` function.
macro_rules! leaderboard_function {
    ($(#[$meta:meta])* $type:ident, $name:literal, $returns:expr, $array:ty, $kernel:expr) => {
        $(#[$meta])*
        #[derive(Debug, PartialEq, Eq, Hash)]
        pub struct $type {
            signature: Signature,
        }

        impl Default for $type {
            fn default() -> Self {
                Self {
                    signature: leaderboard_signature(),
                }
            }
        }

        impl ScalarUDFImpl for $type {
            fn name(&self) -> &str {
                $name
            }

            fn signature(&self) -> &Signature {
                &self.signature
            }

            fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
                leaderboard_types($name, types)
            }

            fn return_type(&self, _: &[DataType]) -> Result<DataType> {
                Ok($returns)
            }

            fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
                let rows = Rows::new(&args)?;
                let results: $array = rows.map($kernel)?.into_iter().collect();
                rows.answer(Arc::new(results))
            }

            fn documentation(&self) -> Option<&Documentation> {
                self.doc()
            }
        }
    };
}

leaderboard_function!(
    /// `medal(score, leaderboard, higher_is_better)`.
    #[user_doc(
        doc_section(label = "Grading"),
        description = "Medal of a score on a leaderboard: gold, silver, bronze or none. NULL when the score is not finite or the leaderboard has no finite score. The order of the leaderboard does not matter.",
        syntax_example = "medal(score, leaderboard, higher_is_better)",
        sql_example = "SELECT medal(0.9, [0.8, 0.7, 0.6], true); -- gold",
        argument(name = "score", description = "Score to grade."),
        argument(name = "leaderboard", description = "List of the teams' scores."),
        argument(name = "higher_is_better", description = "Direction of the task's metric.")
    )]
    MedalOf,
    "medal",
    DataType::Utf8,
    StringArray,
    |score, board, direction| { super::medal(score, board, direction).map(Medal::as_str) }
);

leaderboard_function!(
    /// `human_rank(score, leaderboard, higher_is_better)`.
    #[user_doc(
        doc_section(label = "Grading"),
        description = "Share of a leaderboard's teams that a score beats or equals, from 0 to 1. NULL when the score is not finite or the leaderboard has no finite score.",
        syntax_example = "human_rank(score, leaderboard, higher_is_better)",
        sql_example = "SELECT human_rank(0.7, [0.9, 0.8, 0.7, 0.6], true); -- 0.5",
        argument(name = "score", description = "Score to grade."),
        argument(name = "leaderboard", description = "List of the teams' scores."),
        argument(name = "higher_is_better", description = "Direction of the task's metric.")
    )]
    HumanRank,
    "human_rank",
    DataType::Float64,
    Float64Array,
    super::human_rank
);

leaderboard_function!(
    /// `leaderboard_rank(score, leaderboard, higher_is_better)`.
    #[user_doc(
        doc_section(label = "Grading"),
        description = "Place of a score among a leaderboard's teams, from 1 for the best; one more than the number of strictly better teams. NULL when the score is not finite or the leaderboard has no finite score.",
        syntax_example = "leaderboard_rank(score, leaderboard, higher_is_better)",
        sql_example = "SELECT leaderboard_rank(0.7, [0.9, 0.8, 0.7, 0.6], true); -- 3",
        argument(name = "score", description = "Score to grade."),
        argument(name = "leaderboard", description = "List of the teams' scores."),
        argument(name = "higher_is_better", description = "Direction of the task's metric.")
    )]
    LeaderboardRank,
    "leaderboard_rank",
    DataType::Int64,
    Int64Array,
    super::leaderboard_rank
);

fn leaderboard_signature() -> Signature {
    let parameters = [
        ("score", DataType::Float64),
        ("leaderboard", leaderboard_type()),
        ("higher_is_better", DataType::Boolean),
    ];
    named(&parameters, TypeSignature::UserDefined)
}

fn leaderboard_type() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Float64, true)))
}

/// Leaderboards of any numeric type are taken as lists of doubles.
fn leaderboard_types(function: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    let is_number = |kind: &DataType| kind.is_numeric() || kind.is_null();
    match types {
        [score, board, direction]
            if is_number(score) && matches!(direction, DataType::Boolean | DataType::Null) && is_board(board) =>
        {
            Ok(vec![DataType::Float64, leaderboard_type(), DataType::Boolean])
        }
        _ => plan_err!(
            "{function} takes a score, a list of the leaderboard's scores and a boolean that says whether higher is better"
        ),
    }
}

fn is_board(kind: &DataType) -> bool {
    match kind {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            item.data_type().is_numeric() || item.data_type().is_null()
        }
        kind => kind.is_null(),
    }
}

/// Arguments of a leaderboard function. A constant leaderboard is kept once, not once a row.
struct Rows {
    scores: ArrayRef,
    boards: ArrayRef,
    directions: ArrayRef,
    count: usize,
    all_constant: bool,
}

impl Rows {
    fn new(args: &ScalarFunctionArgs) -> Result<Self> {
        let all_constant = args
            .args
            .iter()
            .all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let count = if all_constant { 1 } else { args.number_rows };
        let column = |index: usize| -> Result<ArrayRef> {
            match &args.args[index] {
                ColumnarValue::Array(array) => Ok(Arc::clone(array)),
                ColumnarValue::Scalar(value) => value.to_array_of_size(1),
            }
        };
        Ok(Self {
            scores: column(0)?,
            boards: column(1)?,
            directions: column(2)?,
            count,
            all_constant,
        })
    }

    fn map<T>(&self, kernel: impl Fn(f64, &[f64], bool) -> Option<T>) -> Result<Vec<Option<T>>> {
        let scores = as_float64_array(&self.scores)?;
        let boards = as_list_array(&self.boards)?;
        let directions = as_boolean_array(&self.directions)?;
        let mut board = Vec::new();
        let mut loaded = None;
        (0..self.count)
            .map(|row| {
                let [score, at, direction] =
                    [scores.len(), boards.len(), directions.len()].map(|length| row.min(length - 1));
                if scores.is_null(score) || boards.is_null(at) || directions.is_null(direction) {
                    return Ok(None);
                }
                if loaded != Some(at) {
                    load_board(boards, at, &mut board)?;
                    loaded = Some(at);
                }
                Ok(kernel(scores.value(score), &board, directions.value(direction)))
            })
            .collect()
    }

    fn answer(&self, results: ArrayRef) -> Result<ColumnarValue> {
        if self.all_constant {
            Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&results, 0)?))
        } else {
            Ok(ColumnarValue::Array(results))
        }
    }
}

/// The scores of one leaderboard; teams without a score are left out.
fn load_board(boards: &ListArray, row: usize, board: &mut Vec<f64>) -> Result<()> {
    let teams = boards.value(row);
    board.clear();
    board.extend(as_float64_array(&teams)?.iter().flatten());
    Ok(())
}
