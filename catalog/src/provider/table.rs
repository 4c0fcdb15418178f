//! Provider of a stored table.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

use super::late_scan_exec::LateScanExec;
use super::repeated::RepeatedQueries;
use super::stored_scan::StoredScan;
use crate::spec::{TableKind, TableSpec};
use crate::store::Store;

/// A stored table. It is bound to a snapshot when it is scanned: the one in the session's config extensions, or the newest.
/// A scan of [`RepeatedQueries`] is bound anew whenever it is executed.
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
        let scan = StoredScan {
            store: self.store.clone(),
            spec: Arc::clone(&self.spec),
            newest_only: self.newest_only(),
            projection: columns,
            predicate,
            limit,
        };
        let plan = scan.plan(session.config(), session.runtime_env()).await?;
        if session.config().get_extension::<RepeatedQueries>().is_none() {
            return Ok(plan);
        }
        let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new())?;
        let statistics = statistics.as_ref().clone();
        Ok(Arc::new(LateScanExec::new(Arc::new(scan), plan.schema(), statistics)))
    }
}
