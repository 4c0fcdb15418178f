//! The table that a statement makes, changes, drops or describes: what belongs to Clade stays as it is, and what does not exist is
//! named before DataFusion does it in its own words.

use datafusion::catalog::SchemaProvider;
use datafusion::common::TableReference;
use datafusion::logical_expr::TableType;
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{
    FromTable, ObjectName, ObjectType, Spanned, Statement as SqlStatement, TableFactor, TableObject,
};

use super::error::Result;
use super::refusal::Refusal;
use super::session::Session;
use crate::plan::Access;
use crate::session::{CATALOG, DEFAULT_SCHEMA, POLICY_SCHEMA};

/// DataFusion's own schema, which it explains itself.
const INFORMATION_SCHEMA: &str = "information_schema";

/// What a statement does to the table that it names.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// Changes its rows.
    Change(&'static str),
    /// Makes it; `OR REPLACE` and `IF NOT EXISTS` allow that it exists.
    Make { may_exist: bool },
    /// Drops it.
    Drop { is_view: bool, may_miss: bool },
}

/// The table that a statement acts on.
fn target(statement: &DataFusionStatement) -> Option<(Act, &ObjectName)> {
    let statement = match statement {
        DataFusionStatement::Explain(explain) => return target(&explain.statement),
        DataFusionStatement::CreateExternalTable(create) => {
            let may_exist = create.or_replace || create.if_not_exists;
            return Some((Act::Make { may_exist }, &create.name));
        }
        DataFusionStatement::Statement(statement) => statement.as_ref(),
        _ => return None,
    };
    match statement {
        SqlStatement::Insert(insert) => match &insert.table {
            TableObject::TableName(name) => Some((Act::Change("INSERT"), name)),
            _ => None,
        },
        SqlStatement::Update(update) => Some((Act::Change("UPDATE"), named(&update.table.relation)?)),
        SqlStatement::Delete(delete) => {
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
            Some((Act::Change("DELETE"), named(&from.first()?.relation)?))
        }
        SqlStatement::Merge(merge) => Some((Act::Change("MERGE"), named(&merge.table)?)),
        SqlStatement::Truncate(truncate) => Some((Act::Change("TRUNCATE"), &truncate.table_names.first()?.name)),
        SqlStatement::CreateTable(create) => {
            let may_exist = create.or_replace || create.if_not_exists;
            Some((Act::Make { may_exist }, &create.name))
        }
        SqlStatement::CreateView(create) => {
            let may_exist = create.or_replace || create.if_not_exists;
            Some((Act::Make { may_exist }, &create.name))
        }
        SqlStatement::Drop {
            object_type: kind @ (ObjectType::Table | ObjectType::View),
            if_exists,
            names,
            ..
        } => {
            let act = Act::Drop {
                is_view: *kind == ObjectType::View,
                may_miss: *if_exists,
            };
            // Of several names the second is where DataFusion would stop.
            Some((act, names.get(1).or(names.first())?))
        }
        _ => None,
    }
}

fn named(table: &TableFactor) -> Option<&ObjectName> {
    match table {
        TableFactor::Table { name, .. } => Some(name),
        _ => None,
    }
}

/// Whether a statement drops several things at once.
fn drops_several(statement: &DataFusionStatement) -> bool {
    let DataFusionStatement::Statement(statement) = statement else {
        return false;
    };
    matches!(statement.as_ref(), SqlStatement::Drop { names, .. } if names.len() > 1)
}

/// Schema and table of a name in Clade's catalog; none for other catalogs and for DataFusion's own schema.
fn place(name: &ObjectName) -> Result<Option<(String, String)>> {
    let reference = object_name_to_table_reference(name.clone(), true)?;
    if matches!(&reference, TableReference::Full { catalog, .. } if catalog.as_ref() != CATALOG) {
        return Ok(None);
    }
    let schema = reference.schema().unwrap_or(DEFAULT_SCHEMA).to_owned();
    Ok((schema != INFORMATION_SCHEMA).then(|| (schema, reference.table().to_owned())))
}

impl Session {
    /// Why a statement cannot act on the table that it names.
    pub(super) async fn refused_target(&self, statement: &DataFusionStatement) -> Result<Option<Refusal>> {
        let Some((act, name)) = target(statement) else {
            return Ok(None);
        };
        let refused = |message: String| Ok(Some(Refusal::new(name.span(), message)));
        if drops_several(statement) {
            return refused("DROP takes one name: write a statement for each".to_owned());
        }
        let Some((schema, table)) = place(name)? else {
            return Ok(None);
        };
        let whole = format!("{schema}.{table}");
        let Some(tables) = self.engine.catalog.get(&schema) else {
            return refused(self.no_schema(&schema));
        };
        let is_policy = schema == POLICY_SCHEMA;
        let found = tables.table(&table).await?;
        let message = match (act, found) {
            (Act::Change(verb), Some(_)) if tables.is_fixed(&table) => format!(
                "{verb} cannot change {whole}: it belongs to Clade, which only adds rows to it; \
                 CREATE TABLE mine AS SELECT * FROM {whole} makes a copy for this session"
            ),
            (Act::Make { .. }, Some(_)) if tables.is_fixed(&table) => {
                format!("{whole} is part of Clade and cannot be replaced; give yours another name")
            }
            (Act::Drop { .. }, Some(_)) if tables.is_fixed(&table) => {
                format!("{whole} is part of Clade and cannot be dropped")
            }
            (Act::Change(_) | Act::Make { .. }, Some(_)) if is_policy => {
                format!("{whole} is a policy: CREATE OR REPLACE POLICY {table} AS query changes it")
            }
            (Act::Change(_) | Act::Make { .. }, None) if is_policy => {
                format!("{whole} would be a policy: CREATE POLICY {table} AS query makes it")
            }
            (Act::Drop { .. }, Some(_)) if is_policy => format!("{whole} is a policy: DROP POLICY {table} drops it"),
            // That the session is read-only is said before that the name is taken.
            (Act::Make { .. }, _) if self.access == Access::ReadOnly => return Ok(None),
            (Act::Make { may_exist: false }, Some(_)) => {
                format!("there is a table or view {whole} already; CREATE OR REPLACE replaces it")
            }
            (Act::Change(_), None) => format!("there is no table {whole}; SHOW TABLES lists the tables"),
            (
                Act::Drop {
                    is_view,
                    may_miss: false,
                },
                None,
            ) => {
                let kind = if is_view { "view" } else { "table" };
                format!("there is no {kind} {whole} to drop; SHOW TABLES lists what there is")
            }
            (Act::Drop { is_view, .. }, Some(found)) => match (is_view, found.table_type() == TableType::View) {
                (true, false) => format!("{whole} is a table: DROP TABLE {whole} drops it"),
                (false, true) => format!("{whole} is a view: DROP VIEW {whole} drops it"),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        refused(message)
    }

    /// That there is no table to describe; none where DataFusion knows more than the catalog.
    pub(super) fn refused_description(&self, name: &ObjectName) -> Result<Option<Refusal>> {
        let Some((schema, table)) = place(name)? else {
            return Ok(None);
        };
        let message = if self.engine.catalog.get(&schema).is_some() {
            format!("there is no table or view {schema}.{table}; SHOW TABLES lists them")
        } else {
            self.no_schema(&schema)
        };
        Ok(Some(Refusal::new(name.span(), message)))
    }

    fn no_schema(&self, schema: &str) -> String {
        let schemas: Vec<&str> = self.engine.catalog.schemas().collect();
        format!("there is no schema {schema}; the schemas are {}", schemas.join(", "))
    }
}
