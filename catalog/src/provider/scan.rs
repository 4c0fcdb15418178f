//! Plan of one table at one snapshot: cold files united with hot batches.

use std::sync::Arc;

use datafusion::common::pruning::PrunableStatistics;
use datafusion::common::{Result, ScalarValue, Statistics};
use datafusion::config::TableParquetOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::physical_plan::parquet::CachedParquetFileReaderFactory;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExecBuilder;
use datafusion::physical_plan::union::UnionExec;
use datafusion::prelude::SessionConfig;
use object_store::ObjectMeta;

use crate::cold::columns::ColumnCache;
use crate::cold::file::ColdFile;
use crate::cold::location::Location;
use crate::spec::{SEQ_COLUMN, TableSpec};
use crate::store::table_state::TableState;
use crate::store::writer::Seq;

/// Bytes of cold files that are worth a partition of their own.
const PARTITION_BYTES: u64 = 4 << 20;
/// Read at the end of a file in the hope that it holds the whole footer.
const FOOTER_BYTES: usize = 64 << 10;

/// One scan of one table.
pub(crate) struct TableScan<'a> {
    pub(crate) config: &'a SessionConfig,
    pub(crate) runtime: &'a Arc<RuntimeEnv>,
    pub(crate) location: &'a Location,
    pub(crate) columns: &'a ColumnCache,
    pub(crate) spec: &'a TableSpec,
    pub(crate) state: &'a TableState,
    pub(crate) seq: Seq,
    /// Columns of the full schema, in order.
    pub(crate) projection: Vec<usize>,
    /// Predicate over the full schema, to prune with; rows that do not match may still come.
    pub(crate) predicate: Option<Arc<dyn PhysicalExpr>>,
    pub(crate) limit: Option<usize>,
}

impl TableScan<'_> {
    /// The plan; it yields the rows of commits up to the snapshot.
    pub(crate) async fn plan(&self) -> Result<Arc<dyn ExecutionPlan>> {
        let files = self.prune()?;
        let hot = if self.state.seq <= self.seq {
            self.state.hot.batches().to_vec()
        } else {
            self.state.hot.through(self.seq)
        };
        if let Some(mut batches) = self.decoded(&files).await? {
            for batch in hot {
                batches.push(batch.project(&self.projection)?);
            }
            let schema = Arc::new(self.spec.full_schema().project(&self.projection)?);
            let source = MemorySourceConfig::try_new(&[batches], schema, None)?;
            return Ok(DataSourceExec::from_data_source(source.with_limit(self.limit)));
        }
        let (whole, cut): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| file.max_seq <= self.seq);
        let mut inputs: Vec<Arc<dyn ExecutionPlan>> = Vec::with_capacity(3);
        if !whole.is_empty() {
            inputs.push(self.cold(&whole, self.projection.clone(), self.limit)?);
        }
        if !cut.is_empty() {
            inputs.push(self.cut(&cut)?);
        }
        if !hot.is_empty() || inputs.is_empty() {
            let source = MemorySourceConfig::try_new(&[hot], self.spec.full_schema(), Some(self.projection.clone()))?;
            inputs.push(DataSourceExec::from_data_source(source.with_limit(self.limit)));
        }
        if inputs.len() == 1 {
            return Ok(inputs.swap_remove(0));
        }
        UnionExec::try_new(inputs)
    }

    /// Cold files that may hold rows of the snapshot that match the predicate.
    fn prune(&self) -> Result<Vec<Arc<ColdFile>>> {
        let mut files: Vec<_> = self
            .state
            .files
            .iter()
            .filter(|file| file.min_seq <= self.seq)
            .cloned()
            .collect();
        if let Some(predicate) = self.predicate.as_ref().filter(|_| !files.is_empty()) {
            let schema = self.spec.full_schema();
            let statistics = files.iter().map(|file| Arc::clone(&file.statistics)).collect();
            let keep = PruningPredicateBuilder::new()
                .with_file_schema(Arc::clone(&schema))
                .build(Arc::clone(predicate))
                .map(|pruning| pruning.prune(&PrunableStatistics::new(statistics, schema)));
            // A predicate that cannot be used to prune keeps every file.
            if let Some(Ok(keep)) = keep {
                let mut keep = keep.into_iter();
                files.retain(|_| keep.next().unwrap_or(true));
            }
        }
        Ok(files)
    }

    /// Scan of files that also hold rows of later commits.
    fn cut(&self, files: &[Arc<ColdFile>]) -> Result<Arc<dyn ExecutionPlan>> {
        let mut projection = self.projection.clone();
        let seq = projection
            .iter()
            .position(|i| *i == self.spec.seq_index())
            .unwrap_or(projection.len());
        if seq == projection.len() {
            projection.push(self.spec.seq_index());
        }
        let input = self.cold(files, projection, None)?;
        let upper = Arc::new(Literal::new(ScalarValue::Int64(Some(self.seq))));
        let through = BinaryExpr::new(Arc::new(Column::new(SEQ_COLUMN, seq)), Operator::LtEq, upper);
        let filter = FilterExecBuilder::new(Arc::new(through), input)
            .apply_projection(Some((0..self.projection.len()).collect()))?
            .build()?;
        Ok(Arc::new(filter))
    }

    fn cold(
        &self,
        files: &[Arc<ColdFile>],
        projection: Vec<usize>,
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let bytes: u64 = files.iter().map(|file| file.bytes).sum();
        let partitions = usize::try_from(bytes / PARTITION_BYTES)
            .unwrap_or(usize::MAX)
            .saturating_add(1);
        let partitions = partitions.min(self.config.target_partitions()).max(1);
        self.files(files, projection, limit, partitions, self.predicate.as_ref())
    }

    /// Scan of files in a number of partitions; a predicate only leaves rows out that do not match.
    pub(super) fn files(
        &self,
        files: &[Arc<ColdFile>],
        projection: Vec<usize>,
        limit: Option<usize>,
        partitions: usize,
        predicate: Option<&Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = self.spec.full_schema();
        let runtime = self.runtime;
        if runtime.object_store(self.location.object_store_url()?).is_err() {
            runtime.register_object_store(self.location.root(), Arc::clone(self.location.store()));
        }
        let options = TableParquetOptions {
            global: self.config.options().execution.parquet.clone(),
            ..TableParquetOptions::default()
        };
        let reader = CachedParquetFileReaderFactory::new(
            Arc::clone(self.location.store()),
            runtime.cache_manager.get_file_metadata_cache(),
        );
        let mut source = ParquetSource::new(Arc::clone(&schema))
            .with_table_parquet_options(options)
            .with_metadata_size_hint(FOOTER_BYTES)
            .with_parquet_file_reader_factory(Arc::new(reader));
        if let Some(predicate) = predicate {
            source = source.with_predicate(Arc::clone(predicate));
        }
        let statistics = Statistics::try_merge_iter(files.iter().map(|file| file.statistics.as_ref()), &schema)
            .unwrap_or_else(|_| Statistics::new_unknown(&schema));
        let statistics = if predicate.is_some() {
            statistics.to_inexact()
        } else {
            statistics
        };
        let group = FileGroup::new(files.iter().map(|file| self.partitioned(file)).collect());
        let config = FileScanConfigBuilder::new(self.location.object_store_url()?, Arc::new(source))
            .with_file_groups(group.split_files(partitions))
            .with_statistics(statistics)
            .with_projection_indices(Some(projection))?
            .with_limit(limit)
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    fn partitioned(&self, file: &ColdFile) -> PartitionedFile {
        PartitionedFile::new_from_meta(ObjectMeta {
            location: self.location.file(self.spec, &file.path),
            // Files are never changed under their name.
            last_modified: chrono::DateTime::UNIX_EPOCH,
            size: file.bytes,
            e_tag: None,
            version: None,
        })
        .with_statistics(Arc::clone(&file.statistics))
    }
}
