//! Rows of a policy's result, read and checked.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};

use crate::operators::{Operator, UnknownOperator};

use super::error::PolicyError;

/// One row: an operator with the parents it would take.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyRow {
    /// Operator.
    pub operator: Operator,
    /// Parent; `None` for a draft.
    pub parent_id: Option<Arc<str>>,
    /// Second parent of a crossover; `None` lets the draw choose it among the crossover's rows.
    pub parent2_id: Option<Arc<str>>,
    /// Island that the parent is drawn for: the child lives there, and a second parent is one of the same island. `None`: the
    /// child lives with its parent, and any two parents may meet.
    pub island: Option<i64>,
    /// Weight of the parent among the rows of the operator.
    pub weight: f64,
    /// Weight of the operator; `None` is the sum of its rows' weights.
    pub operator_weight: Option<f64>,
    /// Rows of the highest priority take part in the draw.
    pub priority: f64,
    /// Step of the parent, which the engine adds: it puts the rows in the same order in every run.
    pub parent_step: Option<i64>,
    /// Step of the second parent.
    pub parent2_step: Option<i64>,
}

/// Read the rows of a policy; the columns `parent_step` and `parent2_step` may be joined to them. A weight that is not there is 1, a
/// priority that is not there is 0; a value that is NULL, not finite or below zero rejects the row with an error.
pub fn read_rows(batches: &[RecordBatch]) -> Result<Vec<PolicyRow>, PolicyError> {
    read_rows_with(batches, |_| None)
}

/// Read the rows of a policy; `step_of` knows the steps of parents where no column does.
pub fn read_rows_with(
    batches: &[RecordBatch],
    step_of: impl Fn(&str) -> Option<i64>,
) -> Result<Vec<PolicyRow>, PolicyError> {
    let mut rows = Vec::with_capacity(batches.iter().map(RecordBatch::num_rows).sum());
    let (mut parents, mut seconds) = (Parents::default(), Parents::default());
    for batch in batches {
        parents.read(batch, "parent_id", &step_of)?;
        seconds.read(batch, "parent2_id", &step_of)?;
        read_batch(batch, &parents.ids, &seconds.ids, &mut rows)?;
    }
    Ok(rows)
}

/// Id and step of a parent, apart.
type Named = (Option<Arc<str>>, Option<Option<i64>>);
/// A parent with its step.
type Parent = Option<(Arc<str>, Option<i64>)>;

/// The parents that a batch names. The rows of two operators usually name the same ones, and then both batches have the same array, which
/// is read once.
#[derive(Default)]
struct Parents {
    array: Option<ArrayRef>,
    ids: Vec<Parent>,
}

impl Parents {
    fn read(
        &mut self,
        batch: &RecordBatch,
        name: &str,
        step_of: impl Fn(&str) -> Option<i64>,
    ) -> Result<(), PolicyError> {
        let Some(array) = batch.column_by_name(name) else {
            *self = Self::default();
            return Ok(());
        };
        let is_read = |known: &ArrayRef| Arc::ptr_eq(known, array) || known.to_data().ptr_eq(&array.to_data());
        if self.array.as_ref().is_some_and(is_read) {
            return Ok(());
        }
        let texts = cast(array, &DataType::Utf8).map_err(|error| PolicyError::Query(error.into()))?;
        self.ids.clear();
        let parent = |id: Option<&str>| id.map(|id| (Arc::from(id), step_of(id)));
        self.ids.extend(texts.as_string::<i32>().iter().map(parent));
        self.array = Some(Arc::clone(array));
        Ok(())
    }
}

fn column(batch: &RecordBatch, name: &str, data_type: &DataType) -> Result<Option<ArrayRef>, PolicyError> {
    batch
        .column_by_name(name)
        .map(|column| cast(column, data_type).map_err(|error| PolicyError::Query(error.into())))
        .transpose()
}

/// Text of a row, when there is one.
fn text(array: &Option<ArrayRef>, row: usize) -> Option<&str> {
    let array = array.as_ref().filter(|array| array.is_valid(row))?;
    Some(array.as_string::<i32>().value(row))
}

fn read_batch(
    batch: &RecordBatch,
    parents: &[Parent],
    seconds: &[Parent],
    rows: &mut Vec<PolicyRow>,
) -> Result<(), PolicyError> {
    let numbers = |name| column(batch, name, &DataType::Float64);
    let operators = column(batch, "operator", &DataType::Utf8)?;
    let (weights, operator_weights, priorities) =
        (numbers("weight")?, numbers("operator_weight")?, numbers("priority")?);
    let islands = numbers("island")?;
    let steps = |name| column(batch, name, &DataType::Int64);
    let (parent_steps, parent2_steps) = (steps("parent_step")?, steps("parent2_step")?);
    for index in 0..batch.num_rows() {
        let number = |array: &Option<ArrayRef>| {
            array.as_ref().map(|array| {
                array
                    .is_valid(index)
                    .then(|| array.as_primitive::<Float64Type>().value(index))
            })
        };
        let step = |array: &Option<ArrayRef>| {
            array
                .as_ref()
                .filter(|array| array.is_valid(index))
                .map(|array| array.as_primitive::<Int64Type>().value(index))
        };
        let operator = text(&operators, index);
        let parent = |parents: &[Parent]| parents.get(index).cloned().flatten().unzip();
        let ((parent_id, parent_place), (parent2_id, parent2_place)): (Named, Named) =
            (parent(parents), parent(seconds));
        let (first, second) = (parent_id.as_deref(), parent2_id.as_deref());
        let rejected = |reason: String| PolicyError::Row {
            operator: operator.unwrap_or("NULL").to_owned(),
            parent: first.unwrap_or("NULL").to_owned(),
            reason,
        };
        let Some(name) = operator else {
            return Err(rejected("its operator is NULL".to_owned()));
        };
        let parsed: Operator = name
            .parse()
            .map_err(|error: UnknownOperator| rejected(error.to_string()))?;
        let weight = match number(&weights) {
            None => 1.0,
            Some(value) => checked_weight(value, "weight").map_err(rejected)?,
        };
        let operator_weight = match number(&operator_weights).flatten() {
            None => None,
            value => Some(checked_weight(value, "operator_weight").map_err(rejected)?),
        };
        let priority = match number(&priorities) {
            None => 0.0,
            // Adding 0 makes one zero of the two.
            Some(Some(value)) if value.is_finite() => value + 0.0,
            Some(value) => return Err(rejected(format!("its priority is {}", shown(value)))),
        };
        check_parents(parsed, first, second).map_err(rejected)?;
        let island = match number(&islands).flatten() {
            None => None,
            Some(value) => Some(checked_island(parsed, value).map_err(rejected)?),
        };
        rows.push(PolicyRow {
            operator: parsed,
            parent_step: step(&parent_steps).or(parent_place.flatten()),
            parent2_step: step(&parent2_steps).or(parent2_place.flatten()),
            parent_id,
            parent2_id,
            island,
            weight,
            operator_weight,
            priority,
        });
    }
    Ok(())
}

fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| "NULL".to_owned(), |value| value.to_string())
}

fn checked_weight(value: Option<f64>, column: &str) -> Result<f64, String> {
    match value {
        Some(weight) if weight.is_finite() && weight >= 0.0 => Ok(weight),
        other => Err(format!(
            "its {column} is {}, it must be finite and not below 0",
            shown(other)
        )),
    }
}

fn checked_island(operator: Operator, island: f64) -> Result<i64, String> {
    if operator == Operator::Draft {
        return Err("drafts go to the islands in turn, so its island must be NULL".to_owned());
    }
    // Islands are counted from 0, and there are 1,000 at the most.
    if island.fract() == 0.0 && (0.0..=999.0).contains(&island) {
        Ok(island as i64)
    } else {
        Err(format!(
            "its island is {island}, it must be a whole number from 0 on, below the run's number of islands"
        ))
    }
}

fn check_parents(operator: Operator, parent: Option<&str>, second: Option<&str>) -> Result<(), String> {
    match (operator, parent, second) {
        (Operator::Draft, Some(_), _) | (Operator::Draft, _, Some(_)) => Err("a draft has no parents".to_owned()),
        (Operator::Draft, None, None) => Ok(()),
        (_, None, _) => Err(format!("{operator} needs a parent_id")),
        (Operator::Crossover, Some(first), Some(second)) if first == second => {
            Err("crossover needs two different parents".to_owned())
        }
        (Operator::Crossover, ..) | (_, Some(_), None) => Ok(()),
        (_, Some(_), Some(_)) => Err(format!("{operator} has one parent, so parent2_id must be NULL")),
    }
}
