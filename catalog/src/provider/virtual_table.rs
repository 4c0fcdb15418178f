//! Tables that are computed when they are read.

use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;

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
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let rows = self.0.rows().await?;
        let source = MemorySourceConfig::try_new(&[vec![rows]], self.0.schema(), projection.cloned())?;
        Ok(datafusion::datasource::source::DataSourceExec::from_data_source(
            source.with_limit(limit),
        ))
    }
}
