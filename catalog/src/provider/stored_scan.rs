//! One scan of a stored table, to be bound to a snapshot.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;

use super::late_scan_exec::LateScan;
use super::newest_exec::NewestExec;
use super::scan::TableScan;
use crate::spec::TableSpec;
use crate::store::{Snapshot, Store};

/// What a statement reads of a stored table.
#[derive(Debug)]
pub(crate) struct StoredScan {
    pub(crate) store: Store,
    pub(crate) spec: Arc<TableSpec>,
    /// Only the newest version of each key.
    pub(crate) newest_only: bool,
    /// Columns of the full schema, in order.
    pub(crate) projection: Vec<usize>,
    /// Predicate over the full schema, to prune with.
    pub(crate) predicate: Option<Arc<dyn PhysicalExpr>>,
    pub(crate) limit: Option<usize>,
}

impl StoredScan {
    /// The plan for the snapshot in the config's extensions, or the newest.
    pub(crate) async fn plan(
        &self,
        config: &SessionConfig,
        runtime: &Arc<RuntimeEnv>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let snapshot = match config.get_extension::<Snapshot>() {
            Some(snapshot) => snapshot,
            None => self.store.snapshot(None).await?,
        };
        let state = self.store.table_state(&self.spec, &snapshot).await?;
        let mut scan = TableScan {
            config,
            runtime,
            location: &self.store.inner.location,
            columns: &self.store.inner.columns,
            spec: &self.spec,
            state: &state,
            seq: snapshot.seq(),
            projection: self.projection.clone(),
            predicate: self.predicate.clone(),
            limit: self.limit,
        };
        if !self.newest_only {
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

#[async_trait]
impl LateScan for StoredScan {
    fn name(&self) -> &str {
        &self.spec.name
    }

    async fn bind(&self, context: &Arc<TaskContext>) -> Result<Arc<dyn ExecutionPlan>> {
        self.plan(context.session_config(), &context.runtime_env()).await
    }
}
