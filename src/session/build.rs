//! Builds the session state of a store: catalog, functions, views, planners.

use std::collections::BTreeMap;
use std::sync::Arc;

use clade_catalog::{Store, StoreSchema, VirtualTable, catalog_schemas};
use datafusion::catalog::{CatalogProvider, SchemaProvider};
use datafusion::common::Result;
use datafusion::datasource::ViewTable;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};

use super::variables::CladeVariables;
use crate::plan;
use crate::policy;

/// Name of the catalog.
pub const CATALOG: &str = "clade";
/// Schema of names without one.
pub const DEFAULT_SCHEMA: &str = "evo";
/// Schema of the views that show the current run.
pub const RUN_SCHEMA: &str = "run";
/// Schema of the policies.
pub const POLICY_SCHEMA: &str = "policies";

/// The catalog of a store: its tables, virtual tables, views and policies by schema.
#[derive(Debug)]
pub struct Catalog {
    schemas: BTreeMap<String, Arc<StoreSchema>>,
}

impl Catalog {
    /// Names of all schemas.
    pub fn schemas(&self) -> impl Iterator<Item = &str> {
        self.schemas.keys().map(String::as_str)
    }

    /// Fixes the tables and views that are there now.
    pub fn seal(&self) {
        self.schemas.values().for_each(|schema| schema.seal());
    }

    /// The schema of a name, when there is one.
    pub fn get(&self, name: &str) -> Option<&Arc<StoreSchema>> {
        self.schemas.get(name)
    }
}

impl CatalogProvider for Catalog {
    fn schema_names(&self) -> Vec<String> {
        self.schemas.keys().cloned().collect()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        self.schemas
            .get(name)
            .map(|schema| Arc::clone(schema) as Arc<dyn SchemaProvider>)
    }
}

/// A table that is made when it is read, with its schema.
pub type SchemaTable = (&'static str, Arc<dyn VirtualTable>);

/// Builds the session state of a store. `tables` are those beside the stored ones that shipped views read.
///
/// # Errors
/// When a function, table or view does not register; the shipped ones do, as tests prove.
pub async fn build(store: &Store, tables: Vec<SchemaTable>) -> Result<(SessionState, Arc<Catalog>)> {
    let mut schemas = catalog_schemas(store);
    for name in [RUN_SCHEMA, POLICY_SCHEMA] {
        schemas.entry(name.to_owned()).or_default();
    }
    for (schema, table) in tables {
        schemas.entry(schema.to_owned()).or_default().register_virtual(table)?;
    }
    let catalog = Arc::new(Catalog { schemas });
    let mut config = SessionConfig::new()
        .with_information_schema(true)
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(CATALOG, DEFAULT_SCHEMA);
    config.options_mut().extensions.insert(CladeVariables::default());
    // Parquet strings and hot rows are read as plain Utf8: one type in every plan, and what other readers see.
    config.options_mut().execution.parquet.schema_force_view_types = false;
    config.options_mut().sql_parser.map_string_types_to_utf8view = false;
    let state = SessionStateBuilder::new()
        .with_default_features()
        .with_config(config)
        .with_query_planner(plan::query_planner())
        .build();
    let context = SessionContext::new_with_state(state);
    context.register_catalog(CATALOG, Arc::clone(&catalog) as Arc<dyn CatalogProvider>);
    plan::register(&context)?;
    let mut registry = context.state();
    clade_udfs::register_all(&mut registry)?;
    let context = SessionContext::new_with_state(registry);
    policy::register_functions(&context)?;
    for view in policy::views() {
        register_view(&context, &catalog, view.schema, view.name, view.sql, &view.doc).await?;
    }
    for shipped in policy::shipped() {
        register_view(
            &context,
            &catalog,
            POLICY_SCHEMA,
            shipped.name,
            shipped.sql,
            &shipped.doc,
        )
        .await?;
    }
    Ok((context.state(), catalog))
}

async fn register_view(
    context: &SessionContext,
    catalog: &Catalog,
    schema: &str,
    name: &str,
    sql: &str,
    doc: &str,
) -> Result<()> {
    let plan = context
        .state()
        .create_logical_plan(sql)
        .await
        .map_err(|error| error.context(format!("view {schema}.{name}")))?;
    let Some(target) = catalog.get(schema) else {
        return datafusion::common::plan_err!("view {schema}.{name}: there is no schema {schema}");
    };
    target.register_table(name.to_owned(), Arc::new(ViewTable::new(plan, Some(sql.to_owned()))))?;
    target.set_doc(name, doc);
    Ok(())
}
