//! A store with a hand-made history, and a session over it, for tests of views and policies.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use clade_catalog::{
    ColumnType, Rows, Specs, Store, StoreOptions, StoreSchema, Txn, Value, VirtualTable, catalog_schemas,
};
use datafusion::arrow::array::{Float64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::catalog::{CatalogProvider, SchemaProvider};
use datafusion::common::Result;
use datafusion::common::config::ConfigExtension;
use datafusion::common::extensions_options;
use datafusion::datasource::ViewTable;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::engine::LeasesTable;

use super::{PolicyRow, read_rows, register_functions, shipped, views};

extensions_options! {
    /// Stand-in for the session's variables.
    struct Variables {
        /// Run that `run.*` shows.
        pub run_id: String, default = String::new()
    }
}

impl ConfigExtension for Variables {
    const PREFIX: &'static str = "clade";
}

#[derive(Debug)]
struct Catalog(BTreeMap<String, Arc<StoreSchema>>);

impl CatalogProvider for Catalog {
    fn schema_names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        self.0
            .get(name)
            .map(|schema| Arc::clone(schema) as Arc<dyn SchemaProvider>)
    }
}

/// `system.budgets` with one budget of run `r`.
#[derive(Debug)]
struct Budgets;

#[async_trait]
impl VirtualTable for Budgets {
    fn name(&self) -> &str {
        "budgets"
    }

    fn doc(&self) -> &str {
        "One row a budget."
    }

    fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(vec![
            Field::new("scope", DataType::Utf8, false),
            Field::new("resource", DataType::Utf8, false),
            Field::new("limit", DataType::Float64, true),
            Field::new("spent", DataType::Float64, false),
            Field::new("reserved", DataType::Float64, false),
        ]))
    }

    fn column_docs(&self) -> &'static [&'static str] {
        &[]
    }

    async fn rows(&self) -> Result<RecordBatch> {
        let number = |value| Arc::new(Float64Array::from(vec![value])) as _;
        let text = |value| Arc::new(StringArray::from(vec![value])) as _;
        Ok(RecordBatch::try_new(
            self.schema(),
            vec![text("r"), text("steps"), number(64.0), number(3.0), number(1.0)],
        )?)
    }
}

/// A store under construction.
pub(crate) struct History {
    _dir: tempfile::TempDir,
    store: Store,
    step: i64,
    /// The session of run `r`; it reads the newest snapshot, so it need not be built again.
    session: tokio::sync::OnceCell<SessionContext>,
}

impl History {
    /// A store with run `r` on task `t`, with these options.
    pub(crate) async fn new(options: serde_json::Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path().join("store"), StoreOptions::default()).unwrap();
        let mut history = Self {
            _dir: dir,
            store,
            step: 0,
            session: tokio::sync::OnceCell::new(),
        };
        history
            .insert(
                "evo.runs",
                [
                    ("run_id", "r".into()),
                    ("task_id", "t".into()),
                    ("options", options.to_string().into()),
                ],
            )
            .await;
        history
    }

    /// The store.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Commit one row; columns that are needed and not given get a neutral value.
    pub(crate) async fn insert<'a>(&mut self, table: &str, cells: impl IntoIterator<Item = (&'a str, Value)>) {
        let mut rows = Rows::new(table).unwrap();
        rows.push(
            complete(table, cells)
                .iter()
                .map(|(name, value)| (name.as_str(), value.clone())),
        )
        .unwrap();
        let mut txn = Txn::new();
        txn.append(table, rows);
        self.store.commit(txn).await.unwrap();
    }

    /// Commit a node of run `r` with its edges: good when it has a score.
    pub(crate) async fn node(&mut self, id: &str, operator: &str, parents: &[&str], score: Option<f64>) {
        self.node_with(id, operator, parents, score, &[]).await;
    }

    /// Commit a node with further columns.
    pub(crate) async fn node_with(
        &mut self,
        id: &str,
        operator: &str,
        parents: &[&str],
        score: Option<f64>,
        more: &[(&'static str, Value)],
    ) {
        self.step += 1;
        let text = |index: usize| parents.get(index).map_or(Value::Null, |parent| Value::from(*parent));
        let mut cells: BTreeMap<&str, Value> = BTreeMap::from([
            ("node_id", id.into()),
            ("run_id", "r".into()),
            ("task_id", "t".into()),
            ("attempt_id", format!("attempt-{id}").into()),
            ("step", Value::Int(self.step)),
            ("operator", operator.into()),
            ("parent_id", text(0)),
            ("parent2_id", text(1)),
            ("code", "pass".into()),
            (
                "status",
                if score.is_some() {
                    "success"
                } else {
                    "code_execution_error"
                }
                .into(),
            ),
            ("is_buggy", Value::Bool(score.is_none())),
            ("score", score.map_or(Value::Null, Value::Float)),
            ("signed_score", score.map_or(Value::Null, Value::Float)),
            ("method_family", "linear".into()),
            ("admitted", Value::Bool(true)),
        ]);
        cells.extend(more.iter().cloned());
        self.insert("evo.nodes", cells).await;
        for (index, parent) in parents.iter().enumerate() {
            let role = if index == 0 { "parent" } else { "parent2" };
            self.insert(
                "evo.edges",
                [
                    ("run_id", "r".into()),
                    ("parent_id", (*parent).into()),
                    ("child_id", id.into()),
                    ("role", role.into()),
                    ("operator", operator.into()),
                ],
            )
            .await;
        }
    }

    /// Commit an attempt of run `r` that is planned, or another state of it.
    pub(crate) async fn attempt(&mut self, id: &str, operator: &str, parent: Option<&str>, status: &str) {
        self.insert(
            "evo.attempts",
            [
                ("attempt_id", id.into()),
                ("run_id", "r".into()),
                ("operator", operator.into()),
                ("parent_id", parent.map_or(Value::Null, Value::from)),
                ("status", status.into()),
            ],
        )
        .await;
    }

    /// A session whose current run is `r`.
    pub(crate) async fn session(&self) -> SessionContext {
        self.session.get_or_init(|| self.session_of("r")).await.clone()
    }

    /// A session with every view and policy; an empty run is none.
    pub(crate) async fn session_of(&self, run_id: &str) -> SessionContext {
        let mut schemas = catalog_schemas(&self.store);
        for name in ["run", "policies", "system"] {
            schemas.entry(name.to_owned()).or_default();
        }
        schemas["system"].register_virtual(Arc::new(Budgets)).unwrap();
        let leases = LeasesTable(self.store.clone());
        schemas["sandbox"].register_virtual(Arc::new(leases)).unwrap();
        let mut config = SessionConfig::new()
            .with_target_partitions(2)
            .with_create_default_catalog_and_schema(false)
            .with_default_catalog_and_schema("clade", "evo");
        config.options_mut().extensions.insert(Variables {
            run_id: run_id.to_owned(),
        });
        config.options_mut().sql_parser.map_string_types_to_utf8view = false;
        let state = SessionStateBuilder::new()
            .with_default_features()
            .with_config(config)
            .with_query_planner(crate::plan::query_planner())
            .build();
        let mut context = SessionContext::new_with_state(state);
        let catalog = Arc::new(Catalog(schemas));
        context.register_catalog("clade", Arc::clone(&catalog) as Arc<dyn CatalogProvider>);
        crate::plan::register(&context).unwrap();
        clade_udfs::register_all(&mut context).unwrap();
        register_functions(&context).unwrap();
        let sources = views().iter().map(|view| (view.schema, view.name, view.sql));
        for (schema, name, sql) in sources.chain(shipped().iter().map(|policy| ("policies", policy.name, policy.sql))) {
            let plan = context.state().create_logical_plan(sql).await;
            let plan = plan.unwrap_or_else(|error| panic!("{schema}.{name}: {error}"));
            let view = Arc::new(ViewTable::new(plan, Some(sql.to_owned())));
            catalog.0[schema].register_table(name.to_owned(), view).unwrap();
        }
        context
    }

    /// The rows of a shipped policy now.
    pub(crate) async fn policy(&self, name: &str) -> Vec<PolicyRow> {
        let context = self.session().await;
        let frame = context.sql(&format!("SELECT * FROM policies.{name}")).await.unwrap();
        let batches = frame.collect().await.unwrap_or_else(|error| panic!("{name}: {error}"));
        read_rows(&batches).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The result of a query as text.
    pub(crate) async fn show(&self, sql: &str) -> String {
        let frame = self
            .session()
            .await
            .sql(sql)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
        let batches = frame.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        pretty_format_batches(&batches).unwrap().to_string()
    }
}

/// The cells, and a neutral value for every column that is needed.
fn complete<'a>(table: &str, cells: impl IntoIterator<Item = (&'a str, Value)>) -> BTreeMap<String, Value> {
    let mut row: BTreeMap<String, Value> = BTreeMap::new();
    for column in &Specs::builtin().unwrap().get(table).unwrap().columns {
        if !column.nullable {
            let value = match column.column_type {
                ColumnType::Text => Value::Text(String::new()),
                ColumnType::Int => Value::Int(0),
                ColumnType::Float => Value::Float(0.0),
                ColumnType::Bool => Value::Bool(false),
                ColumnType::Timestamp => Value::Timestamp(0),
                ColumnType::List => Value::List(Vec::new()),
            };
            row.insert(column.name.clone(), value);
        }
    }
    row.extend(cells.into_iter().map(|(name, value)| (name.to_owned(), value)));
    row
}
