//! `DESCRIBE table` and `SHOW COLUMNS FROM table`: the columns with what they hold.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, StringArray};
use datafusion::catalog::SchemaProvider;
use datafusion::common::TableReference;
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{ObjectName, ShowStatementOptions, Statement as SqlStatement};

use super::error::Result;
use super::notice::Notice;
use super::open::Engine;
use super::output::QueryOutput;
use crate::session::{CATALOG, DEFAULT_SCHEMA, TableDescription, describe};

/// The table that a statement asks the columns of. None also where a clause needs DataFusion's own answer.
pub(super) fn described(statement: &DataFusionStatement) -> Option<&ObjectName> {
    let DataFusionStatement::Statement(statement) = statement else {
        return None;
    };
    match statement.as_ref() {
        SqlStatement::ExplainTable { table_name, .. } => Some(table_name),
        SqlStatement::ShowColumns {
            show_options:
                ShowStatementOptions {
                    show_in: Some(place),
                    starts_with: None,
                    limit: None,
                    limit_from: None,
                    filter_position: None,
                },
            ..
        } if place.parent_type.is_none() => place.parent_name.as_ref(),
        _ => None,
    }
}

impl Engine {
    /// Describes a table, virtual table, view or policy of the catalog; none when there is no such thing.
    ///
    /// # Errors
    /// When the table cannot be opened.
    pub async fn describe(&self, schema: &str, table: &str) -> Result<Option<TableDescription>> {
        Ok(describe(&self.catalog, schema, table).await?)
    }

    /// Schemas of the catalog with their tables, views and policies.
    pub fn tables(&self) -> impl Iterator<Item = (&str, Vec<String>)> {
        self.catalog
            .schemas()
            .filter_map(|name| Some((name, self.catalog.get(name)?.table_names())))
    }

    /// Rows of DESCRIBE; none when the catalog has no such table.
    pub(super) async fn describe_rows(&self, name: &ObjectName) -> Result<Option<QueryOutput>> {
        let reference = object_name_to_table_reference(name.clone(), true)?;
        let (schema, table) = match &reference {
            TableReference::Full { catalog, .. } if catalog.as_ref() != CATALOG => return Ok(None),
            _ => (reference.schema().unwrap_or(DEFAULT_SCHEMA), reference.table()),
        };
        let Some(found) = self.describe(schema, table).await? else {
            return Ok(None);
        };
        let columns = &found.columns;
        let output = QueryOutput::of_columns(vec![
            (
                "column_name",
                Arc::new(StringArray::from_iter_values(columns.iter().map(|column| &column.name))) as ArrayRef,
            ),
            (
                "data_type",
                Arc::new(StringArray::from_iter_values(
                    columns.iter().map(|column| &column.data_type),
                )),
            ),
            (
                "is_nullable",
                Arc::new(BooleanArray::from(
                    columns.iter().map(|column| column.is_nullable).collect::<Vec<_>>(),
                )),
            ),
            (
                "comment",
                Arc::new(StringArray::from_iter(
                    columns.iter().map(|column| column.comment.as_ref()),
                )),
            ),
        ])?;
        Ok(Some(match found.doc {
            Some(doc) => output.with(Notice::Info(format!("{schema}.{table}: {doc}"))),
            None => output,
        }))
    }
}
