//! Provider of a stored table.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::newest_exec::NewestExec;
use super::scan::TableScan;
use crate::spec::{TableKind, TableSpec};
use crate::store::{Snapshot, Store};

/// A stored table. It is bound to a snapshot when it is scanned: the one in the session's config extensions, or the newest.
#[derive(Debug)]
pub(crate) struct StoredTable {
    store: Store,
    spec: Arc<TableSpec>,
    /// Shows every version with the hidden columns.
    versions: bool,
}

impl StoredTable {
    pub(crate) fn new(store: Store, spec: Arc<TableSpec>, versions: bool) -> Self {
        Self { store, spec, versions }
    }

    /// Whether only the newest version of a key is shown.
    fn newest_only(&self) -> bool {
        self.spec.kind == TableKind::Keyed && !self.versions
    }
}

#[async_trait]
impl TableProvider for StoredTable {
    fn schema(&self) -> SchemaRef {
        if self.versions {
            self.spec.full_schema()
        } else {
            self.spec.public_schema()
        }
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        // Below the choice of the newest version only filters on the key may work: any other could drop the newest
        // version of a key and let an older one through.
        let usable = |filter: &Expr| {
            !self.newest_only()
                || filter
                    .column_refs()
                    .iter()
                    .all(|column| self.spec.key.contains(&column.name))
        };
        Ok(filters
            .iter()
            .map(|filter| match usable(filter) {
                true => TableProviderFilterPushDown::Inexact,
                false => TableProviderFilterPushDown::Unsupported,
            })
            .collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let snapshot = match session.config().get_extension::<Snapshot>() {
            Some(snapshot) => snapshot,
            None => self.store.snapshot(None).await?,
        };
        let state = self.store.table_state(&self.spec, &snapshot).await?;
        let columns: Vec<usize> = match projection {
            Some(projection) => projection.clone(),
            None => (0..self.schema().fields().len()).collect(),
        };
        let predicate = match conjunction(filters.to_vec()) {
            Some(filter) => {
                let schema = DFSchema::try_from(self.spec.full_schema().as_ref().clone())?;
                Some(session.create_physical_expr(filter, &schema)?)
            }
            None => None,
        };
        let mut scan = TableScan {
            session,
            location: &self.store.inner.location,
            columns: &self.store.inner.columns,
            spec: &self.spec,
            state: &state,
            seq: snapshot.seq(),
            projection: columns,
            predicate,
            limit,
        };
        if !self.newest_only() {
            return scan.plan().await;
        }
        scan.limit = None;
        let kept = scan.projection.len();
        let mut place = |column: usize| {
            scan.projection.iter().position(|c| *c == column).unwrap_or_else(|| {
                scan.projection.push(column);
                scan.projection.len() - 1
            })
        };
        let key = self.spec.key_indices().into_iter().map(&mut place).collect();
        let seq = place(self.spec.seq_index());
        NewestExec::try_new(scan.plan().await?, key, seq, kept)
    }
}
