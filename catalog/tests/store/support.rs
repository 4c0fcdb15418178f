//! What the tests share: a small set of tables, sessions, rows.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use clade_catalog::{
    MaintenanceOptions, RepeatedQueries, Rows, Snapshot, Specs, Store, StoreOptions, TableSpec, catalog_schemas,
};
use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, SchemaProvider};
use datafusion::prelude::{SessionConfig, SessionContext};

pub const EVENTS: &str = "doc='d'\nkind='log'\nkey=['id']\ncolumns=[['id','text!','i'],['n','int!','n'],['x','float','x'],\
    ['ok','bool','b'],['at','timestamp','t'],['tags','list','l']]";
pub const MIRROR: &str =
    "doc='d'\nkind='log'\nkey=['id']\nlong=['body']\ncolumns=[['id','text!','i'],['n','int!','n'],['body','text','b']]";
pub const STATES: &str =
    "doc='d'\nkind='keyed'\nkey=['k']\ncolumns=[['k','text!','k'],['v','int!','v'],['note','text','n']]";

/// Tables `t.events`, `t.mirror` (logs) and `t.states` (keyed), besides the built-in ones.
pub fn specs() -> Arc<Specs> {
    let mut specs = Specs::clone(Specs::builtin().unwrap());
    for (name, text) in [("events", EVENTS), ("mirror", MIRROR), ("states", STATES)] {
        specs.insert(TableSpec::parse("t", name, text).unwrap());
    }
    Arc::new(specs)
}

/// Options without background work.
pub fn options() -> StoreOptions {
    let maintenance = MaintenanceOptions {
        interval: None,
        ..MaintenanceOptions::default()
    };
    StoreOptions {
        specs: Some(specs()),
        maintenance,
        ..StoreOptions::default()
    }
}

pub fn create() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("s"), options()).unwrap();
    (dir, store)
}

/// A session over the store at a snapshot, or at the newest one of each scan.
pub fn session(store: &Store, snapshot: Option<Arc<Snapshot>>) -> SessionContext {
    session_with(SessionConfig::new(), store, snapshot)
}

/// A session that keeps the cold rows it reads decoded.
pub fn keeping_session(store: &Store, snapshot: Option<Arc<Snapshot>>) -> SessionContext {
    session_with(
        SessionConfig::new().with_extension(Arc::new(RepeatedQueries)),
        store,
        snapshot,
    )
}

fn session_with(config: SessionConfig, store: &Store, snapshot: Option<Arc<Snapshot>>) -> SessionContext {
    let mut config = config
        .with_default_catalog_and_schema("clade", "t")
        .with_target_partitions(2);
    config = config.with_create_default_catalog_and_schema(false);
    if let Some(snapshot) = snapshot {
        config = config.with_extension(snapshot);
    }
    let context = SessionContext::new_with_config(config);
    let catalog = MemoryCatalogProvider::new();
    for (name, schema) in catalog_schemas(store) {
        catalog
            .register_schema(&name, schema as Arc<dyn SchemaProvider>)
            .unwrap();
    }
    context.register_catalog("clade", Arc::new(catalog));
    context
}

pub async fn query(context: &SessionContext, sql: &str) -> Vec<RecordBatch> {
    context
        .sql(sql)
        .await
        .unwrap_or_else(|e| panic!("{sql}: {e}"))
        .collect()
        .await
        .unwrap_or_else(|e| panic!("{sql}: {e}"))
}

/// The only integer of a query.
pub async fn int(context: &SessionContext, sql: &str) -> i64 {
    let batches = query(context, sql).await;
    let batch = batches
        .iter()
        .find(|b| b.num_rows() > 0)
        .unwrap_or_else(|| panic!("{sql}: no row"));
    let column = arrow::compute::cast(batch.column(0), &arrow::datatypes::DataType::Int64).unwrap();
    column.as_primitive::<Int64Type>().value(0)
}

/// A query over the newest snapshot.
pub async fn now(store: &Store, sql: &str) -> i64 {
    int(&session(store, Some(store.snapshot(None).await.unwrap())), sql).await
}

pub async fn text(context: &SessionContext, sql: &str) -> String {
    arrow::util::pretty::pretty_format_batches(&query(context, sql).await)
        .unwrap()
        .to_string()
}

pub fn rows(store: &Store, table: &str) -> Rows {
    Rows::for_spec(store.specs().get(table).unwrap())
}
