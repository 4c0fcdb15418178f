//! Constants in a policy that no snapshot makes right. What a policy computes is checked where its rows are read.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};

use crate::operators::{Operator, UnknownOperator};

/// Why a column of a policy cannot hold a constant that its plan holds; none when all are right.
pub(super) fn wrong_constant(plan: &LogicalPlan) -> Option<String> {
    plan.schema().fields().iter().enumerate().find_map(|(index, field)| {
        let mut constants = Vec::new();
        collect(plan, index, &mut constants);
        constants.into_iter().find_map(|constant| wrong(field.name(), constant))
    })
}

fn wrong(column: &str, constant: &ScalarValue) -> Option<String> {
    if constant.is_null() {
        return None;
    }
    match column {
        "operator" => {
            let name = constant.try_as_str().flatten()?;
            name.parse::<Operator>()
                .err()
                .map(|error: UnknownOperator| error.to_string())
        }
        "weight" | "operator_weight" => number(constant)
            .filter(|value| !(value.is_finite() && *value >= 0.0))
            .map(|value| format!("its {column} is the constant {value}, it must be finite and not below 0")),
        "priority" => number(constant)
            .filter(|value| !value.is_finite())
            .map(|value| format!("its priority is the constant {value}, it must be finite")),
        "island" => number(constant)
            .filter(|value| !(value.fract() == 0.0 && (0.0..=999.0).contains(value)))
            .map(|value| format!("its island is the constant {value}, it must be a whole number from 0 to 999")),
        _ => None,
    }
}

fn number(constant: &ScalarValue) -> Option<f64> {
    match constant.cast_to(&DataType::Float64) {
        Ok(ScalarValue::Float64(value)) => value,
        _ => None,
    }
}

/// Gathers the constants that a column of a plan may hold. Where it is computed there are none.
fn collect<'a>(plan: &'a LogicalPlan, column: usize, found: &mut Vec<&'a ScalarValue>) {
    match plan {
        LogicalPlan::Projection(projection) => {
            if let Some(expression) = projection.expr.get(column) {
                constant(expression, &projection.input, found);
            }
        }
        LogicalPlan::Values(values) => {
            let expressions = values.values.iter().filter_map(|row| row.get(column));
            expressions.for_each(|expression| constant(expression, plan, found));
        }
        LogicalPlan::Union(union) => union.inputs.iter().for_each(|input| collect(input, column, found)),
        LogicalPlan::SubqueryAlias(alias) => collect(&alias.input, column, found),
        LogicalPlan::Filter(filter) => collect(&filter.input, column, found),
        LogicalPlan::Sort(sort) => collect(&sort.input, column, found),
        LogicalPlan::Limit(limit) => collect(&limit.input, column, found),
        LogicalPlan::Distinct(Distinct::All(input)) => collect(input, column, found),
        _ => {}
    }
}

fn constant<'a>(expression: &'a Expr, input: &'a LogicalPlan, found: &mut Vec<&'a ScalarValue>) {
    match expression {
        Expr::Literal(value, _) => found.push(value),
        Expr::Alias(alias) => constant(&alias.expr, input, found),
        Expr::Cast(cast) => constant(&cast.expr, input, found),
        Expr::Column(column) => {
            if let Some(index) = input.schema().maybe_index_of_column(column) {
                collect(input, index, found);
            }
        }
        _ => {}
    }
}
