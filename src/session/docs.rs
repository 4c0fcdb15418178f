//! What the columns of a table hold. Columns of a view have the comment of the column that they pass on.

use std::collections::BTreeMap;

use datafusion::catalog::SchemaProvider;
use datafusion::common::Result;
use datafusion::common::TableReference;
use datafusion::logical_expr::{Distinct, Expr, JoinType, LogicalPlan};

use super::build::{Catalog, DEFAULT_SCHEMA, POLICY_SCHEMA};

/// What the columns of every policy mean.
const POLICY_COLUMNS: [(&str, &str); 6] = [
    ("operator", "Operator that is run: draft, improve, debug or crossover."),
    ("parent_id", "Node that it works on; NULL for a draft."),
    (
        "parent2_id",
        "Second parent of a crossover; without it, one is drawn like the first.",
    ),
    ("weight", "How likely the row is drawn among those of its operator."),
    (
        "operator_weight",
        "How likely the operator is drawn; without it, as likely as its rows together.",
    ),
    (
        "priority",
        "Only rows of the highest priority that is there are drawn from.",
    ),
];

/// A table as DESCRIBE shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDescription {
    /// What one row is.
    pub doc: Option<String>,
    /// Columns in order.
    pub columns: Vec<ColumnDescription>,
}

/// A column as DESCRIBE shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDescription {
    /// Name.
    pub name: String,
    /// Arrow type.
    pub data_type: String,
    /// Whether it may be NULL.
    pub is_nullable: bool,
    /// What it holds, where that is written down.
    pub comment: Option<String>,
}

/// Describes a table, virtual table or view of the catalog.
///
/// # Errors
/// When the table cannot be opened. None when there is no such table.
pub async fn describe(catalog: &Catalog, schema: &str, table: &str) -> Result<Option<TableDescription>> {
    let Some(tables) = catalog.get(schema) else {
        return Ok(None);
    };
    let Some(provider) = tables.table(table).await? else {
        return Ok(None);
    };
    let own = tables.doc(table);
    let contract = (schema == POLICY_SCHEMA)
        .then_some(POLICY_COLUMNS)
        .into_iter()
        .flatten();
    let contract: BTreeMap<&str, &str> = contract.collect();
    let plan = provider.get_logical_plan();
    let comment = |position: usize, name: &str| {
        let written = own.as_ref().and_then(|doc| doc.columns.get(name)).cloned();
        written
            .or_else(|| contract.get(name).map(|text| (*text).to_owned()))
            .or_else(|| passed_on(catalog, plan.as_deref()?, position))
    };
    let columns = provider
        .schema()
        .fields()
        .iter()
        .enumerate()
        .map(|(position, field)| ColumnDescription {
            name: field.name().clone(),
            data_type: field.data_type().to_string(),
            is_nullable: field.is_nullable(),
            comment: comment(position, field.name()),
        })
        .collect();
    Ok(Some(TableDescription {
        doc: own.map(|doc| doc.table),
        columns,
    }))
}

/// The comment of the table's column that a column of a plan is.
fn passed_on(catalog: &Catalog, plan: &LogicalPlan, column: usize) -> Option<String> {
    let (table, name) = source(plan, column)?;
    let doc = catalog
        .get(table.schema().unwrap_or(DEFAULT_SCHEMA))?
        .doc(table.table())?;
    doc.columns.get(&name).cloned()
}

/// The table and column whose values a column of a plan shows unchanged.
fn source(plan: &LogicalPlan, column: usize) -> Option<(TableReference, String)> {
    match plan {
        LogicalPlan::TableScan(scan) => {
            let column = match &scan.projection {
                Some(projection) => *projection.get(column)?,
                None => column,
            };
            match scan.source.get_logical_plan() {
                Some(view) => source(&view, column),
                None => {
                    let schema = scan.source.schema();
                    let name = schema.fields().get(column)?.name().clone();
                    Some((scan.table_name.clone(), name))
                }
            }
        }
        LogicalPlan::Projection(projection) => named(projection.expr.get(column)?, &projection.input),
        LogicalPlan::SubqueryAlias(alias) => source(&alias.input, column),
        LogicalPlan::Filter(filter) => source(&filter.input, column),
        LogicalPlan::Sort(sort) => source(&sort.input, column),
        LogicalPlan::Limit(limit) => source(&limit.input, column),
        LogicalPlan::Distinct(Distinct::All(input)) => source(input, column),
        LogicalPlan::Unnest(unnest) => source(&unnest.input, *unnest.dependency_indices.get(column)?),
        LogicalPlan::Window(window) if column < window.input.schema().fields().len() => source(&window.input, column),
        LogicalPlan::Aggregate(aggregate) => named(aggregate.group_expr.get(column)?, &aggregate.input),
        LogicalPlan::RecursiveQuery(query) => source(&query.static_term, column),
        LogicalPlan::Union(union) => {
            // Every part must show the same.
            let mut parts = union.inputs.iter().map(|input| source(input, column));
            let first = parts.next()??;
            parts.all(|part| part.as_ref() == Some(&first)).then_some(first)
        }
        LogicalPlan::Join(join) => {
            let left = join.left.schema().fields().len();
            match join.join_type {
                JoinType::RightSemi | JoinType::RightAnti => source(&join.right, column),
                _ if column < left => source(&join.left, column),
                JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
                    source(&join.right, column - left)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// The source of an expression that is a column, under whatever name.
fn named(expression: &Expr, input: &LogicalPlan) -> Option<(TableReference, String)> {
    match expression {
        Expr::Alias(alias) => named(&alias.expr, input),
        Expr::Column(column) => source(input, input.schema().maybe_index_of_column(column)?),
        _ => None,
    }
}
