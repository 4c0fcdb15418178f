//! Schemas of the catalog: stored tables, virtual tables and views.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::{Result, exec_err};
use parking_lot::RwLock;

use super::storage::{Budgets, Storage};
use super::table::StoredTable;
use super::virtual_table::{VirtualTable, VirtualTableProvider};
use crate::spec::{COMMITTED_AT_COLUMN, SEQ_COLUMN, TableSpec, VERSIONS_SUFFIX};
use crate::store::Store;

/// One schema: the stored tables of the specs, each with its twin `<name>_versions`, which cannot be replaced, and views
/// and virtual tables, which can.
#[derive(Debug, Default)]
pub struct StoreSchema {
    stored: BTreeMap<String, Arc<dyn TableProvider>>,
    added: RwLock<BTreeMap<String, Arc<dyn TableProvider>>>,
    /// Names of `added` that are fixed since [`StoreSchema::seal`].
    sealed: RwLock<BTreeSet<String>>,
    docs: RwLock<BTreeMap<String, TableDoc>>,
}

/// What a table and its columns hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableDoc {
    /// What one row is.
    pub table: String,
    /// What a column holds, by its name.
    pub columns: BTreeMap<String, String>,
}

impl TableDoc {
    fn stored(spec: &TableSpec) -> Self {
        let columns = spec.columns.iter();
        Self {
            table: spec.doc.clone(),
            columns: columns
                .map(|column| (column.name.clone(), column.doc.clone()))
                .collect(),
        }
    }

    fn versions(spec: &TableSpec) -> Self {
        let mut doc = Self::stored(spec);
        doc.table = format!("Every version of {}, with its commit.", spec.name);
        for (column, text) in [
            (SEQ_COLUMN, "Number of the commit that the row came with."),
            (COMMITTED_AT_COLUMN, "Time of the commit that the row came with."),
        ] {
            doc.columns.insert(column.into(), text.into());
        }
        doc
    }

    fn computed(table: &dyn VirtualTable) -> Self {
        let schema = table.schema();
        let names = schema.fields().iter().map(|field| field.name().clone());
        let texts = table.column_docs().iter().map(|text| (*text).to_owned());
        Self {
            table: table.doc().to_owned(),
            columns: names.zip(texts).collect(),
        }
    }
}

impl StoreSchema {
    /// Adds or replaces a virtual table.
    pub fn register_virtual(&self, table: Arc<dyn VirtualTable>) -> Result<()> {
        let name = table.name().to_owned();
        self.docs
            .write()
            .insert(name.clone(), TableDoc::computed(table.as_ref()));
        self.register_table(name, Arc::new(VirtualTableProvider(table)))
            .map(|_| ())
    }

    /// What a table and its columns hold, when it is known.
    pub fn doc(&self, table: &str) -> Option<TableDoc> {
        self.docs.read().get(table).cloned()
    }

    /// Says what one row of a view is.
    pub fn set_doc(&self, view: &str, doc: &str) {
        let doc = TableDoc {
            table: doc.to_owned(),
            columns: BTreeMap::new(),
        };
        self.docs.write().insert(view.to_owned(), doc);
    }

    /// Fixes the views and virtual tables that are there: nobody replaces or drops them any more.
    pub fn seal(&self) {
        *self.sealed.write() = self.added.read().keys().cloned().collect();
    }

    /// Whether every session has the table: stored, or fixed by [`StoreSchema::seal`].
    pub fn is_fixed(&self, table: &str) -> bool {
        self.stored.contains_key(table) || self.sealed.read().contains(table)
    }

    /// Whether a table is stored: neither a view nor computed.
    pub fn is_stored(&self, table: &str) -> bool {
        self.stored.contains_key(table)
    }
}

#[async_trait]
impl SchemaProvider for StoreSchema {
    fn table_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.stored.keys().cloned().collect();
        names.extend(self.added.read().keys().cloned());
        names.sort();
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(self
            .stored
            .get(name)
            .cloned()
            .or_else(|| self.added.read().get(name).cloned()))
    }

    fn register_table(&self, name: String, table: Arc<dyn TableProvider>) -> Result<Option<Arc<dyn TableProvider>>> {
        if self.stored.contains_key(&name) {
            return exec_err!("{name} is a stored table and cannot be replaced");
        }
        if self.sealed.read().contains(&name) {
            return exec_err!("{name} is part of Clade and cannot be replaced; give yours another name");
        }
        Ok(self.added.write().insert(name, table))
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if self.stored.contains_key(name) {
            return exec_err!("{name} is a stored table and cannot be dropped");
        }
        if self.sealed.read().contains(name) {
            return exec_err!("{name} is part of Clade and cannot be dropped");
        }
        Ok(self.added.write().remove(name))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.stored.contains_key(name) || self.added.read().contains_key(name)
    }
}

/// The schemas of a store by name, with its stored tables and its own virtual tables.
pub fn catalog_schemas(store: &Store) -> BTreeMap<String, Arc<StoreSchema>> {
    let mut schemas: BTreeMap<String, StoreSchema> = BTreeMap::new();
    for spec in store.specs().iter() {
        let schema = schemas.entry(spec.schema.clone()).or_default();
        let versions = format!("{}{VERSIONS_SUFFIX}", spec.table);
        let docs = schema.docs.get_mut();
        docs.insert(spec.table.clone(), TableDoc::stored(spec));
        docs.insert(versions.clone(), TableDoc::versions(spec));
        for (name, all) in [(spec.table.clone(), false), (versions, true)] {
            schema
                .stored
                .insert(name, Arc::new(StoredTable::new(store.clone(), Arc::clone(spec), all)));
        }
    }
    let system = schemas.entry("system".into()).or_default();
    let own: [Arc<dyn VirtualTable>; 2] = [Arc::new(Storage(store.clone())), Arc::new(Budgets(store.clone()))];
    for table in own {
        system
            .docs
            .get_mut()
            .insert(table.name().into(), TableDoc::computed(table.as_ref()));
        system
            .added
            .get_mut()
            .insert(table.name().into(), Arc::new(VirtualTableProvider(table)));
    }
    schemas
        .into_iter()
        .map(|(name, schema)| (name, Arc::new(schema)))
        .collect()
}
