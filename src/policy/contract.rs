//! The contract of a policy, checked on its plan: what it yields, what it reads, that it depends on nothing else, that its constants
//! are right.

use clade_catalog::{Specs, VERSIONS_SUFFIX};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::logical_expr::LogicalPlan;

use crate::plan::{Lineage, TableName, lineage};

use super::constants::wrong_constant;
use super::error::PolicyError;
use super::functions::CURRENT_RUN;

/// Columns of a policy: name, whether it is text (else a number), whether it must be there.
const COLUMNS: [(&str, bool, bool); 6] = [
    ("operator", true, true),
    ("parent_id", true, true),
    ("weight", false, false),
    ("operator_weight", false, false),
    ("priority", false, false),
    ("parent2_id", true, false),
];

/// Table functions that compute their rows from their arguments alone.
const PURE_TABLE_FUNCTIONS: [&str; 2] = ["generate_series", "range"];

/// Check the plan of a policy's query.
///
/// Names without a schema count as tables of `evo`, the default schema of a session.
pub fn check_policy(policy: &str, plan: &LogicalPlan) -> Result<(), PolicyError> {
    check_columns(policy, plan.schema())?;
    check_lineage(policy, &lineage(plan, "evo")?)?;
    match wrong_constant(plan) {
        None => Ok(()),
        Some(reason) => Err(PolicyError::Constant {
            policy: policy.to_owned(),
            reason,
        }),
    }
}

fn check_columns(policy: &str, schema: &DFSchema) -> Result<(), PolicyError> {
    let fields = schema.fields();
    for (column, _, required) in COLUMNS {
        if required && !fields.iter().any(|field| field.name() == column) {
            let found: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
            return Err(PolicyError::MissingColumn {
                policy: policy.to_owned(),
                column,
                found: found.join(", "),
            });
        }
    }
    for field in fields {
        let Some((column, is_text, _)) = COLUMNS.into_iter().find(|(name, ..)| name == field.name()) else {
            let known: Vec<&str> = COLUMNS.iter().map(|(name, ..)| *name).collect();
            return Err(PolicyError::UnknownColumn {
                policy: policy.to_owned(),
                column: field.name().clone(),
                known: known.join(", "),
            });
        };
        let fits = match field.data_type() {
            DataType::Null => true,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => is_text,
            other => !is_text && other.is_numeric(),
        };
        if !fits {
            return Err(PolicyError::WrongType {
                policy: policy.to_owned(),
                column,
                expected: if is_text { "text" } else { "a number" },
                found: field.data_type().to_string(),
            });
        }
    }
    Ok(())
}

/// Why a table is closed to policies; `None` when it is open.
fn forbidden(TableName { schema, table }: &TableName) -> Option<&'static str> {
    match (schema.as_str(), table.as_str()) {
        ("bench", _) => {
            Some("test scores never reach a policy; select on validation scores in evo.nodes or run.candidates")
        }
        ("sandbox", _) => Some(
            "jobs on the final data are among its rows; evo.nodes has the outcome and the seconds of every candidate",
        ),
        ("system", "budgets") => None,
        ("evo" | "gym", table) if is_stored(schema, table) => None,
        ("evo" | "gym", _) => Some(
            "it is made for this session only, so no other session could use the policy; write its query into the policy",
        ),
        ("system", _) => {
            Some("it shows the machine now, not the snapshot; a policy may read evo.*, gym.*, run.* and system.budgets")
        }
        _ => Some(
            "it is no table of the store, so its rows have no snapshot; a policy may read evo.*, gym.*, run.* and system.budgets",
        ),
    }
}

/// Whether the store holds the table, or its versions.
fn is_stored(schema: &str, table: &str) -> bool {
    let table = table.strip_suffix(VERSIONS_SUFFIX).unwrap_or(table);
    Specs::builtin().is_ok_and(|specs| specs.iter().any(|spec| spec.schema == schema && spec.table == table))
}

fn check_lineage(policy: &str, lineage: &Lineage) -> Result<(), PolicyError> {
    if lineage.expands {
        return Err(PolicyError::Expands {
            policy: policy.to_owned(),
        });
    }
    for table in &lineage.tables {
        if let Some(reason) = forbidden(table) {
            return Err(PolicyError::Forbidden {
                policy: policy.to_owned(),
                table: table.to_string(),
                reason,
            });
        }
    }
    for function in &lineage.table_functions {
        if !PURE_TABLE_FUNCTIONS.contains(&function.as_str()) {
            return Err(PolicyError::Forbidden {
                policy: policy.to_owned(),
                table: format!("{function}()"),
                reason: "a policy may read tables, views and generate_series only",
            });
        }
    }
    let mut impure = lineage
        .volatile
        .iter()
        .chain(lineage.stable.iter().filter(|name| *name != CURRENT_RUN));
    match impure.next() {
        Some(function) => Err(PolicyError::NotDeterministic {
            policy: policy.to_owned(),
            function: function.clone(),
        }),
        None => Ok(()),
    }
}
