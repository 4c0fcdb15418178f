//! `FROM expand((query), 'operator', option => value, …)`: the same node for clients that only speak plain SQL.

use datafusion::common::Result;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Query, TableFactor, TableFunctionArgs, UnaryOperator, Value,
};

use crate::dialect::{ExpandClause, ExpandOptions, OptionItem, OptionValue};
use crate::operators::UnknownOperator;

use super::error::PlanError;
use super::expand_node::{ExpandMode, ExpandNode};

/// Plans the table function `expand`.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExpandRelationPlanner;

impl RelationPlanner for ExpandRelationPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        match relation {
            TableFactor::Table {
                name,
                alias,
                args: Some(args),
                with_hints,
                version: None,
                with_ordinality: false,
                partitions,
                json_path: None,
                sample: None,
                index_hints,
            } if name.to_string().eq_ignore_ascii_case("expand")
                && with_hints.is_empty()
                && partitions.is_empty()
                && index_hints.is_empty() =>
            {
                let (query, clause) = arguments(args)?;
                let derived = TableFactor::Derived {
                    lateral: false,
                    subquery: query,
                    alias: None,
                    sample: None,
                };
                let input = context.plan(derived)?;
                let plan = ExpandNode::try_new(input, clause, ExpandMode::Run)?.into_plan();
                Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
            }
            other => Ok(RelationPlanning::Original(Box::new(other))),
        }
    }
}

/// Take the arguments apart.
fn arguments(args: TableFunctionArgs) -> Result<(Box<Query>, ExpandClause), PlanError> {
    let fault = |message: String| PlanError::Arguments(message);
    if args.settings.is_some() {
        return Err(fault("it takes no SETTINGS".to_owned()));
    }
    let mut args = args.args.into_iter();
    let query = match args.next() {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Subquery(query)))) => query,
        Some(other) => {
            return Err(fault(format!(
                "the first argument must be a query in parentheses, found {other}"
            )));
        }
        None => return Err(fault("it has no arguments".to_owned())),
    };
    let operator = match args.next() {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value)))) => match value.value {
            Value::SingleQuotedString(name) => name
                .parse()
                .map_err(|error: UnknownOperator| fault(error.to_string()))?,
            other => {
                return Err(fault(format!(
                    "the second argument must be the operator's name, found {other}"
                )));
            }
        },
        Some(other) => {
            return Err(fault(format!(
                "the second argument must be the operator's name, found {other}"
            )));
        }
        None => return Err(fault("the second argument, the operator's name, is missing".to_owned())),
    };
    let mut clause = ExpandClause {
        operator,
        options: ExpandOptions::default(),
        model: None,
        sandbox: None,
        is_async: false,
    };
    let mut items: Vec<OptionItem> = Vec::new();
    let mut targets: Vec<String> = Vec::new();
    for arg in args {
        let (name, value) = named(arg)?;
        if ["model", "sandbox", "async"].contains(&name.as_str()) {
            if targets.contains(&name) {
                return Err(fault(format!("{name} is given twice")));
            }
            match (name.as_str(), value) {
                ("model", OptionValue::Text(model)) => clause.model = Some(model),
                ("sandbox", OptionValue::Text(sandbox)) => clause.sandbox = Some(sandbox),
                ("async", OptionValue::Bool(is_async)) => clause.is_async = is_async,
                ("async", other) => return Err(fault(format!("async must be true or false, found {other}"))),
                (_, other) => return Err(fault(format!("{name} must be a name as text, found {other}"))),
            }
            targets.push(name);
        } else {
            items.push(OptionItem::unplaced(name, value));
        }
    }
    clause.options = ExpandOptions::from_items(&items)?;
    Ok((query, clause))
}

/// Take `name => value` apart.
fn named(arg: FunctionArg) -> Result<(String, OptionValue), PlanError> {
    let text = arg.to_string();
    let fault = || PlanError::Arguments(format!("expected option => value with a constant value, found {text}"));
    let FunctionArg::Named {
        name,
        arg: FunctionArgExpr::Expr(value),
        ..
    } = arg
    else {
        return Err(fault());
    };
    let value = match value {
        Expr::Value(value) => match value.value {
            Value::Number(number, _) => OptionValue::Number(number),
            Value::SingleQuotedString(text) => OptionValue::Text(text),
            Value::Boolean(value) => OptionValue::Bool(value),
            _ => return Err(fault()),
        },
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => match *expr {
            Expr::Value(value) => match value.value {
                Value::Number(number, _) => OptionValue::Number(format!("-{number}")),
                _ => return Err(fault()),
            },
            _ => return Err(fault()),
        },
        _ => return Err(fault()),
    };
    Ok((name.value.to_lowercase(), value))
}
