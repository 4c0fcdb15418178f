//! The input of an EXPAND: which columns it may have, and how rows are read from batches.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, Schema};
use datafusion::common::{DFSchema, Result};

use crate::operators::{Operator, UnknownOperator};

use super::error::PlanError;
use super::expand_order::ORDER_COLUMN;
use super::handler::ExpandInput;

/// Most input rows of one statement.
pub const MAX_INPUT_ROWS: usize = 100_000;

/// Type of an input column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Integer,
    Number,
}

impl Kind {
    fn words(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Integer => "a whole number",
            Self::Number => "a number",
        }
    }

    fn takes(self, data_type: &DataType) -> bool {
        match data_type {
            DataType::Null => true,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => self == Self::Text,
            DataType::Dictionary(_, values) => self.takes(values),
            other => match self {
                Self::Text => false,
                Self::Integer => other.is_integer(),
                Self::Number => other.is_numeric(),
            },
        }
    }

    fn canonical(self) -> DataType {
        match self {
            Self::Text => DataType::Utf8,
            Self::Integer => DataType::Int64,
            Self::Number => DataType::Float64,
        }
    }
}

/// Every column that has a meaning. The last two come with `SELECT * FROM` a policy and decide nothing here.
const COLUMNS: [(&str, Kind); 8] = [
    ("task_id", Kind::Text),
    ("parent_id", Kind::Text),
    ("parent2_id", Kind::Text),
    ("operator", Kind::Text),
    ("seed", Kind::Integer),
    ("weight", Kind::Number),
    ("operator_weight", Kind::Number),
    ("priority", Kind::Number),
];

/// Columns that an operator cannot do without.
fn required(operator: Operator) -> &'static [&'static str] {
    match operator {
        Operator::Draft => &["task_id"],
        Operator::Improve | Operator::Debug => &["parent_id"],
        Operator::Crossover => &["parent_id", "parent2_id"],
    }
}

/// Check the columns of the query against the operator.
pub(super) fn check_columns(schema: &DFSchema, operator: Operator) -> Result<(), PlanError> {
    let fields = schema.fields();
    for (index, field) in fields.iter().enumerate() {
        if fields.iter().take(index).any(|earlier| earlier.name() == field.name()) {
            return Err(PlanError::DuplicateColumn {
                column: field.name().clone(),
            });
        }
    }
    for column in required(operator) {
        if !fields.iter().any(|field| field.name() == column) {
            let found: Vec<String> = fields
                .iter()
                .map(|field| format!("{} ({})", field.name(), field.data_type()))
                .collect();
            return Err(PlanError::MissingColumn {
                operator: operator.to_string(),
                column,
                found: found.join(", "),
            });
        }
    }
    for field in fields {
        let Some((column, kind)) = COLUMNS.iter().find(|(name, _)| name == field.name()) else {
            let known: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
            return Err(PlanError::UnknownColumn {
                column: field.name().clone(),
                known: known.join(", "),
            });
        };
        if !kind.takes(field.data_type()) {
            let found = field.data_type().to_string();
            return Err(PlanError::WrongType {
                column,
                expected: kind.words(),
                found,
            });
        }
    }
    Ok(())
}

/// Read the rows of the query, in the order of its ORDER BY.
///
/// Partitions end in any order, so among equals the rows' content decides: attempt ids stay the same.
pub(super) fn read_rows(batches: &[RecordBatch], operator: Operator) -> Result<Vec<ExpandInput>> {
    let mut rows = Vec::with_capacity(batches.iter().map(RecordBatch::num_rows).sum());
    for batch in batches {
        read_batch(batch, operator, &mut rows)?;
    }
    rows.sort_by(|(a, left), (b, right)| {
        a.cmp(b).then_with(|| {
            (
                left.operator,
                &left.task_id,
                &left.parent_id,
                &left.parent2_id,
                left.seed,
            )
                .cmp(&(
                    right.operator,
                    &right.task_id,
                    &right.parent_id,
                    &right.parent2_id,
                    right.seed,
                ))
        })
    });
    let number = |(ordinal, (_, row)): (usize, (i64, ExpandInput))| ExpandInput { ordinal, ..row };
    let rows: Vec<ExpandInput> = rows.into_iter().enumerate().map(number).collect();
    for row in &rows {
        check_row(row).map_err(|reason| PlanError::Row {
            row: row.ordinal + 1,
            reason,
        })?;
    }
    Ok(rows)
}

fn column(batch: &RecordBatch, schema: &Schema, name: &str) -> Result<Option<ArrayRef>> {
    let Some((index, _)) = schema.column_with_name(name) else {
        return Ok(None);
    };
    let kind = COLUMNS
        .iter()
        .find(|(column, _)| *column == name)
        .map_or(Kind::Integer, |(_, kind)| *kind);
    Ok(Some(cast(batch.column(index), &kind.canonical())?))
}

fn read_batch(batch: &RecordBatch, operator: Operator, rows: &mut Vec<(i64, ExpandInput)>) -> Result<()> {
    let schema = batch.schema();
    let texts = |name: &str| column(batch, &schema, name);
    let (tasks, parents, seconds, operators) = (
        texts("task_id")?,
        texts("parent_id")?,
        texts("parent2_id")?,
        texts("operator")?,
    );
    let (seeds, weights) = (column(batch, &schema, "seed")?, column(batch, &schema, "weight")?);
    let orders = column(batch, &schema, ORDER_COLUMN)?;
    let text_at = |array: &Option<ArrayRef>, index: usize| {
        array
            .as_ref()
            .filter(|array| array.is_valid(index))
            .map(|array| array.as_string::<i32>().value(index).to_owned())
    };
    for index in 0..batch.num_rows() {
        let ordinal = rows.len();
        let fault = |reason: String| PlanError::Row {
            row: ordinal + 1,
            reason,
        };
        let operator = match text_at(&operators, index) {
            Some(name) => name
                .parse()
                .map_err(|error: UnknownOperator| fault(error.to_string()))?,
            None => operator,
        };
        let seed = seeds
            .as_ref()
            .filter(|array| array.is_valid(index))
            .map(|array| array.as_primitive::<Int64Type>().value(index))
            .map(|seed| u64::try_from(seed).map_err(|_| fault(format!("its seed {seed} is negative"))))
            .transpose()?;
        let weight = weights
            .as_ref()
            .filter(|array| array.is_valid(index))
            .map(|array| array.as_primitive::<Float64Type>().value(index));
        let row = ExpandInput {
            ordinal,
            operator,
            task_id: text_at(&tasks, index),
            parent_id: text_at(&parents, index),
            parent2_id: text_at(&seconds, index),
            seed,
            weight,
        };
        rows.push((
            orders
                .as_ref()
                .map_or(0, |array| array.as_primitive::<Int64Type>().value(index)),
            row,
        ));
    }
    Ok(())
}

/// Check that a row has the parents its operator takes.
fn check_row(row: &ExpandInput) -> Result<(), String> {
    let operator = row.operator;
    let parents = [("parent_id", &row.parent_id), ("parent2_id", &row.parent2_id)];
    for (position, (name, value)) in parents.into_iter().enumerate() {
        match value {
            None if position < operator.arity() => return Err(format!("{operator} needs {name}, which is NULL")),
            Some(value) if position >= operator.arity() => {
                return Err(format!(
                    "{operator} takes {} parents, but {name} is '{value}'",
                    operator.arity()
                ));
            }
            _ => {}
        }
    }
    if operator == Operator::Crossover && row.parent_id == row.parent2_id {
        return Err("crossover needs two different parents".to_owned());
    }
    if operator == Operator::Draft && row.task_id.is_none() {
        return Err("draft needs task_id, which is NULL".to_owned());
    }
    Ok(())
}
