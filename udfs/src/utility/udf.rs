//! SQL functions for utilities: window functions over the whole partition, `novelty` and `linear_decay`.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Float64Array};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::cast::{as_float64_array, as_string_view_array};
use datafusion::common::{DataFusionError, Result, exec_err};
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{Documentation, LimitEffect, PartitionEvaluator, Signature, WindowUDF, WindowUDFImpl};
use datafusion::physical_plan::PhysicalExpr;
use datafusion_macros::user_doc;

use super::normalize::DEFAULT_HYBRID_WEIGHT;
use super::{DeltaMode, UnknownDeltaMode};
use crate::Function;
use crate::scalar::{exact, scalar, scalar_function, with_optional};

/// Functions of this family.
pub fn functions() -> Vec<Function> {
    vec![
        window(MinmaxNorm::default()),
        window(RankNorm::default()),
        window(HybridNorm::default()),
        window(PositiveDeltaNorm::default()),
        window(Softmax::default()),
        scalar(Novelty::default()),
        scalar(LinearDecay::default()),
    ]
}

fn window(function: impl WindowUDFImpl + 'static) -> Function {
    Function::Window(Arc::new(WindowUDF::new_from_impl(function)))
}

/// Maps the argument columns of a whole partition to one value a row.
type PartitionKernel = fn(&[ArrayRef]) -> Result<Float64Array>;

/// Evaluates a partition at once; window frames have no effect.
#[derive(Debug)]
struct WholePartition(PartitionKernel);

impl PartitionEvaluator for WholePartition {
    fn evaluate_all(&mut self, values: &[ArrayRef], _num_rows: usize) -> Result<ArrayRef> {
        Ok(Arc::new((self.0)(values)?))
    }
}

/// Makes a window function over the whole partition. Its attributes must give it a `doc` function, as `user_doc` does.
macro_rules! window_function {
    ($(#[$meta:meta])* $type:ident, $name:literal, $signature:expr, $kernel:expr) => {
        $(#[$meta])*
        #[derive(Debug, PartialEq, Eq, Hash)]
        pub struct $type {
            signature: Signature,
        }

        impl Default for $type {
            fn default() -> Self {
                Self {
                    signature: $signature,
                }
            }
        }

        impl WindowUDFImpl for $type {
            fn name(&self) -> &str {
                $name
            }

            fn signature(&self) -> &Signature {
                &self.signature
            }

            fn partition_evaluator(&self, _: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
                Ok(Box::new(WholePartition($kernel)))
            }

            fn field(&self, arguments: WindowUDFFieldArgs) -> Result<FieldRef> {
                Ok(Arc::new(Field::new(arguments.name(), DataType::Float64, true)))
            }

            fn documentation(&self) -> Option<&Documentation> {
                self.doc()
            }

            fn limit_effect(&self, _: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
                LimitEffect::Unknown
            }
        }
    };
}

window_function!(
    /// `minmax_norm(x)`.
    #[user_doc(
        doc_section(label = "Utility"),
        description = "`(x - min) / (max - min)` over the partition; 0.5 for all when the valid values are equal. NULL and values that are not finite get NULL and do not change the others.",
        syntax_example = "minmax_norm(x) OVER (PARTITION BY ...)",
        sql_example = "SELECT minmax_norm(x) OVER () FROM (VALUES (1.0), (2.0), (3.0)) AS t(x); -- 0, 0.5, 1",
        argument(
            name = "x",
            description = "Value; higher is better. Use `signed_score` where lower is better."
        )
    )]
    MinmaxNorm,
    "minmax_norm",
    exact(&[("x", DataType::Float64)]),
    |columns| Ok(super::minmax_norm(as_float64_array(&columns[0])?))
);

window_function!(
    /// `rank_norm(x)`.
    #[user_doc(
        doc_section(label = "Utility"),
        description = "Rank over the partition scaled to 0..1: the highest value gets 1, the lowest 0, equal values their mean rank, a single valid value 0.5. NULL and values that are not finite get NULL and do not change the others.",
        syntax_example = "rank_norm(x) OVER (PARTITION BY ...)",
        sql_example = "SELECT rank_norm(x) OVER () FROM (VALUES (1.0), (9.0), (9.0)) AS t(x); -- 0, 0.75, 0.75",
        argument(name = "x", description = "Value; higher is better.")
    )]
    RankNorm,
    "rank_norm",
    exact(&[("x", DataType::Float64)]),
    |columns| Ok(super::rank_norm(as_float64_array(&columns[0])?))
);

window_function!(
    /// `hybrid_norm(x[, w])`.
    #[user_doc(
        doc_section(label = "Utility"),
        description = "`w * minmax_norm(x) + (1 - w) * rank_norm(x)` over the partition.",
        syntax_example = "hybrid_norm(x[, w]) OVER (PARTITION BY ...)",
        sql_example = "SELECT hybrid_norm(x, 0.5) OVER () FROM (VALUES (1.0), (2.0), (9.0)) AS t(x); -- 0, 0.3125, 1",
        argument(name = "x", description = "Value; higher is better."),
        argument(
            name = "w",
            description = "Weight of the min-max part, clipped to 0..1; 0.5 when left out or not a number."
        )
    )]
    HybridNorm,
    "hybrid_norm",
    with_optional(&[("x", DataType::Float64), ("w", DataType::Float64)], 1),
    |columns| {
        let values = as_float64_array(&columns[0])?;
        Ok(super::hybrid_norm(values, &weights(columns, 1)?))
    }
);

window_function!(
    /// `positive_delta_norm(x[, mode[, w]])`.
    #[user_doc(
        doc_section(label = "Utility"),
        description = "Gains over the partition scaled to 0..1. What is not above zero gets 0. Mode `minmax` divides by the largest gain, `rank` ranks all values with losses and zeros as equals, `hybrid` is `w * minmax + (1 - w) * rank`. NULL and values that are not finite get NULL and do not change the others.",
        syntax_example = "positive_delta_norm(x[, mode[, w]]) OVER (PARTITION BY ...)",
        sql_example = "SELECT positive_delta_norm(x, 'minmax') OVER () FROM (VALUES (-1.0), (1.0), (2.0)) AS t(x); -- 0, 0.5, 1",
        argument(name = "x", description = "Gain over the parent; higher is better."),
        argument(
            name = "mode",
            description = "`minmax` (default), `rank` or `hybrid`; the same for the whole partition."
        ),
        argument(
            name = "w",
            description = "Weight of the min-max part in mode `hybrid`, clipped to 0..1; 0.5 when left out or not a number."
        )
    )]
    PositiveDeltaNorm,
    "positive_delta_norm",
    with_optional(
        &[
            ("x", DataType::Float64),
            ("mode", DataType::Utf8View),
            ("w", DataType::Float64)
        ],
        1
    ),
    positive_delta_norm
);

fn positive_delta_norm(columns: &[ArrayRef]) -> Result<Float64Array> {
    let deltas = as_float64_array(&columns[0])?;
    let mode = match columns.get(1) {
        Some(column) => {
            let modes = as_string_view_array(column)?;
            let Some(name) = same_for_all(modes.iter(), "positive_delta_norm", "mode")? else {
                return Ok(Float64Array::new_null(deltas.len()));
            };
            name.parse()
                .map_err(|error: UnknownDeltaMode| DataFusionError::Execution(error.to_string()))?
        }
        None => DeltaMode::Minmax,
    };
    Ok(super::positive_delta_norm(deltas, mode, &weights(columns, 2)?))
}

window_function!(
    /// `softmax(x, temperature)`.
    #[user_doc(
        doc_section(label = "Utility"),
        description = "Probability `exp(x / temperature)` divided by its sum over the partition. At temperature 0 the choice is greedy: the highest value gets 1, equal ones share it. NULL and values that are not finite get NULL and do not change the others.",
        syntax_example = "softmax(x, temperature) OVER (PARTITION BY ...)",
        sql_example = "SELECT softmax(x, 0) OVER () FROM (VALUES (1.0), (2.0), (2.0)) AS t(x); -- 0, 0.5, 0.5",
        argument(name = "x", description = "Utility; higher is better."),
        argument(
            name = "temperature",
            description = "Finite and not below 0; the same for the whole partition."
        )
    )]
    Softmax,
    "softmax",
    exact(&[("x", DataType::Float64), ("temperature", DataType::Float64)]),
    softmax
);

fn softmax(columns: &[ArrayRef]) -> Result<Float64Array> {
    let values = as_float64_array(&columns[0])?;
    match same_for_all(as_float64_array(&columns[1])?.iter(), "softmax", "temperature")? {
        Some(temperature) if temperature.is_finite() && temperature >= 0.0 => Ok(super::softmax(values, temperature)),
        Some(temperature) => exec_err!("softmax: temperature is {temperature}; it must be finite and not below 0"),
        None => Ok(Float64Array::new_null(values.len())),
    }
}

/// The value of a parameter that must not change within a partition.
fn same_for_all<T: PartialEq>(
    mut values: impl Iterator<Item = Option<T>>,
    function: &str,
    parameter: &str,
) -> Result<Option<T>> {
    let Some(first) = values.next() else { return Ok(None) };
    if values.any(|value| value != first) {
        return exec_err!("{function}: {parameter} differs within a partition; it must be the same for all its rows");
    }
    Ok(first)
}

/// Weights from an optional column.
fn weights(columns: &[ArrayRef], index: usize) -> Result<Float64Array> {
    match columns.get(index) {
        Some(column) => Ok(as_float64_array(column)?.clone()),
        None => Ok(Float64Array::from_value(
            DEFAULT_HYBRID_WEIGHT,
            columns.first().map_or(0, |column| column.len()),
        )),
    }
}

scalar_function!(
    /// `novelty(count)`.
    #[user_doc(
        doc_section(label = "Utility"),
        description = "`1 / sqrt(1 + count)`: 1 for a method family that was not seen before, less the more often it was. NULL for a count below zero.",
        syntax_example = "novelty(count)",
        sql_example = "SELECT novelty(3); -- 0.5",
        argument(name = "count", description = "Earlier programs of the same family.")
    )]
    Novelty,
    "novelty",
    exact(&[("count", DataType::Float64)]),
    DataType::Float64,
    |columns: &[ArrayRef]| {
        let counts = as_float64_array(&columns[0])?;
        let novelties: Float64Array = counts.iter().map(|count| super::novelty(count?)).collect();
        Ok(Arc::new(novelties) as ArrayRef)
    }
);

scalar_function!(
    /// `linear_decay(initial, last, generations, generation)`.
    #[user_doc(
        doc_section(label = "Utility"),
        description = "Temperature that falls, or rises, on a line from `initial` at generation 0 to `last` at generation `generations`, and is flat beyond both ends. NULL when there are no generations.",
        syntax_example = "linear_decay(initial, last, generations, generation)",
        sql_example = "SELECT linear_decay(1, 0.1, 10, 5); -- 0.55",
        argument(name = "initial", description = "Value at generation 0."),
        argument(name = "last", description = "Value at the last generation."),
        argument(name = "generations", description = "Number of the last generation."),
        argument(name = "generation", description = "Generation, as in `run.progress`.")
    )]
    LinearDecay,
    "linear_decay",
    exact(&[
        ("initial", DataType::Float64),
        ("last", DataType::Float64),
        ("generations", DataType::Float64),
        ("generation", DataType::Float64)
    ]),
    DataType::Float64,
    |columns: &[ArrayRef]| {
        let columns = columns.iter().map(|column| as_float64_array(column));
        let columns = columns.collect::<Result<Vec<&Float64Array>>>()?;
        let values: Float64Array = (0..columns[0].len())
            .map(|row| {
                let value = |place: usize| columns[place].is_valid(row).then(|| columns[place].value(row));
                super::linear_decay(value(0)?, value(1)?, value(2)?, value(3)?)
            })
            .collect();
        Ok(Arc::new(values) as ArrayRef)
    }
);
