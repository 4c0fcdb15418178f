//! Schemas of the catalog: stored tables, virtual tables and views.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::{Result, exec_err};
use parking_lot::RwLock;

use super::storage::{Budgets, Storage};
use super::table::StoredTable;
use super::virtual_table::{VirtualTable, VirtualTableProvider};
use crate::spec::VERSIONS_SUFFIX;
use crate::store::Store;

/// One schema: the stored tables of the specs, each with its twin `<name>_versions`, which cannot be replaced, and views
/// and virtual tables, which can.
#[derive(Debug, Default)]
pub struct StoreSchema {
    stored: BTreeMap<String, Arc<dyn TableProvider>>,
    added: RwLock<BTreeMap<String, Arc<dyn TableProvider>>>,
    docs: RwLock<BTreeMap<String, String>>,
}

impl StoreSchema {
    /// Adds or replaces a virtual table.
    pub fn register_virtual(&self, table: Arc<dyn VirtualTable>) -> Result<()> {
        let name = table.name().to_owned();
        self.docs.write().insert(name.clone(), table.doc().to_owned());
        self.register_table(name, Arc::new(VirtualTableProvider(table)))
            .map(|_| ())
    }

    /// What one row of a table is, when it is known.
    pub fn doc(&self, table: &str) -> Option<String> {
        self.docs.read().get(table).cloned()
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
        Ok(self.added.write().insert(name, table))
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if self.stored.contains_key(name) {
            return exec_err!("{name} is a stored table and cannot be dropped");
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
        schema.docs.get_mut().insert(spec.table.clone(), spec.doc.clone());
        let versions = format!("{}{VERSIONS_SUFFIX}", spec.table);
        schema.docs.get_mut().insert(
            versions.clone(),
            format!("Every version of {}, with its commit.", spec.name),
        );
        for (name, all) in [(spec.table.clone(), false), (versions, true)] {
            schema
                .stored
                .insert(name, Arc::new(StoredTable::new(store.clone(), Arc::clone(spec), all)));
        }
    }
    let system = schemas.entry("system".into()).or_default();
    let own: [Arc<dyn VirtualTable>; 2] = [Arc::new(Storage(store.clone())), Arc::new(Budgets(store.clone()))];
    for table in own {
        system.docs.get_mut().insert(table.name().into(), table.doc().into());
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
