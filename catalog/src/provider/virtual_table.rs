//! Tables that are computed when they are read.

use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, Statistics, project_schema};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::late_scan_exec::{LateScan, LateScanExec};
use super::repeated::RepeatedQueries;

/// A table whose rows are computed when it is read, as `system.storage`.
#[async_trait]
pub trait VirtualTable: Debug + Send + Sync + 'static {
    /// Name inside its schema.
    fn name(&self) -> &str;

    /// What one row is.
    fn doc(&self) -> &str;

    /// Arrow schema.
    fn schema(&self) -> SchemaRef;

    /// What each column holds, in the order of the schema.
    fn column_docs(&self) -> &'static [&'static str];

    /// The rows now.
    async fn rows(&self) -> Result<RecordBatch>;
}

/// Provider of a virtual table.
#[derive(Debug)]
pub(crate) struct VirtualTableProvider(pub(crate) Arc<dyn VirtualTable>);

#[async_trait]
impl TableProvider for VirtualTableProvider {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let scan = VirtualScan {
            table: Arc::clone(&self.0),
            projection: projection.cloned(),
            limit,
        };
        if session.config().get_extension::<RepeatedQueries>().is_none() {
            return scan.plan().await;
        }
        let schema = project_schema(&self.0.schema(), projection)?;
        let statistics = Statistics::new_unknown(&schema);
        Ok(Arc::new(LateScanExec::new(Arc::new(scan), schema, statistics)))
    }
}

/// What a statement reads of a virtual table.
#[derive(Debug)]
struct VirtualScan {
    table: Arc<dyn VirtualTable>,
    projection: Option<Vec<usize>>,
    limit: Option<usize>,
}

impl VirtualScan {
    async fn plan(&self) -> Result<Arc<dyn ExecutionPlan>> {
        let rows = self.table.rows().await?;
        let source = MemorySourceConfig::try_new(&[vec![rows]], self.table.schema(), self.projection.clone())?;
        Ok(DataSourceExec::from_data_source(source.with_limit(self.limit)))
    }
}

#[async_trait]
impl LateScan for VirtualScan {
    fn name(&self) -> &str {
        self.table.name()
    }

    async fn bind(&self, _: &Arc<TaskContext>) -> Result<Arc<dyn ExecutionPlan>> {
        self.plan().await
    }
}
