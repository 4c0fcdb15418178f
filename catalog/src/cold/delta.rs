//! The Delta log of one table: what other engines read. Statements of this engine read the index instead.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use deltalake_core::kernel::transaction::{CommitBuilder, CommitProperties};
use deltalake_core::kernel::{
    Action, Add, ArrayType, DataType, MetadataExt, MetadataValue, PrimitiveType, Remove, StructField, StructType,
    Transaction,
};
use deltalake_core::logstore::{LogStoreRef, StorageConfig, default_logstore};
use deltalake_core::operations::create::CreateBuilder;
use deltalake_core::protocol::{DeltaOperation, SaveMode};
use deltalake_core::{DeltaTable, DeltaTableError, TableProperty, checkpoints};
use object_store::prefix::PrefixStore;

use super::file::ColdFile;
use super::location::Location;
use super::parquet_file::NewFile;
use super::stats::FileStats;
use crate::error::{Result, StoreError};
use crate::spec::{ColumnType, TableSpec};

/// A file as the Delta log has it.
#[derive(Debug, Clone)]
pub(crate) struct LoggedFile {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) stats: FileStats,
}

/// The open Delta log of one table.
#[derive(Debug)]
pub(crate) struct DeltaLog {
    table: DeltaTable,
    spec: Arc<TableSpec>,
    app_id: String,
    folder: Option<std::path::PathBuf>,
}

impl DeltaLog {
    /// Opens the log, or makes it when there is none.
    pub(crate) async fn open(location: &Location, spec: &Arc<TableSpec>, store_id: &str) -> Result<Self> {
        let wrap = |source| delta_error(spec, source);
        let log_store = log_store(location, spec)?;
        let mut table = DeltaTable::new(Arc::clone(&log_store));
        match table.load().await {
            Ok(()) => {}
            Err(DeltaTableError::NotATable(_)) => table = create(log_store, spec).await.map_err(wrap)?,
            Err(error) => return Err(wrap(error)),
        }
        let log = Self {
            table,
            spec: Arc::clone(spec),
            app_id: app_id(spec, store_id),
            folder: location.folder(spec),
        };
        log.sync()?;
        Ok(log)
    }

    /// Whether there is a log at all.
    pub(crate) async fn exists(location: &Location, spec: &TableSpec) -> Result<bool> {
        let table = DeltaTable::new(log_store(location, spec)?);
        table
            .verify_deltatable_existence()
            .await
            .map_err(|source| delta_error(spec, source))
    }

    pub(crate) fn version(&self) -> i64 {
        self.table
            .version()
            .map_or(-1, |version| i64::try_from(version).unwrap_or(i64::MAX))
    }

    /// Brings the state up to what other programs wrote meanwhile.
    pub(crate) async fn update(&mut self) -> Result<()> {
        self.table
            .update_state()
            .await
            .map_err(|source| delta_error(&self.spec, source))
    }

    /// Last commit of the store that is in the log.
    pub(crate) async fn flushed_seq(&self) -> Result<Option<i64>> {
        let state = self
            .table
            .snapshot()
            .map_err(|source| delta_error(&self.spec, source))?;
        state
            .transaction_version(self.table.log_store().as_ref(), &self.app_id)
            .await
            .map_err(|source| delta_error(&self.spec, source))
    }

    /// Files that make up the table.
    pub(crate) fn files(&self) -> Result<Vec<LoggedFile>> {
        let state = self
            .table
            .snapshot()
            .map_err(|source| delta_error(&self.spec, source))?;
        let files = state.log_data();
        let files = files.iter().map(|view| LoggedFile {
            path: view.path().into_owned(),
            bytes: view.size().max(0).cast_unsigned(),
            stats: FileStats::parse(view.stats().as_deref().unwrap_or_default()),
        });
        Ok(files.collect())
    }

    /// Adds files with the rows of commits up to `seq`; durable when this returns.
    pub(crate) async fn append(&mut self, files: &[NewFile], seq: i64, now: i64) -> Result<()> {
        let operation = DeltaOperation::Write {
            mode: SaveMode::Append,
            partition_by: None,
            predicate: None,
        };
        let mut actions = self.schema_change()?;
        actions.extend(files.iter().map(|file| add(file, true, now)));
        self.commit(actions, Some(seq), operation).await
    }

    /// Replaces files by others with the same rows; durable when this returns.
    pub(crate) async fn replace(&mut self, old: &[Arc<ColdFile>], new: &NewFile, now: i64) -> Result<()> {
        let operation = DeltaOperation::Optimize {
            predicate: None,
            target_size: new.bytes.cast_signed(),
        };
        let mut actions = self.schema_change()?;
        actions.push(add(new, false, now));
        actions.extend(old.iter().map(|file| {
            Action::Remove(Remove {
                path: file.path.clone(),
                data_change: false,
                deletion_timestamp: Some(now / 1000),
                extended_file_metadata: Some(true),
                partition_values: Some(HashMap::new()),
                size: Some(file.bytes.cast_signed()),
                tags: None,
                deletion_vector: None,
                base_row_id: None,
                default_row_commit_version: None,
            })
        }));
        self.commit(actions, None, operation).await
    }

    /// Writes a checkpoint and drops log entries that are older than the table keeps.
    pub(crate) async fn checkpoint(&mut self) -> Result<i64> {
        let wrap = |source| delta_error(&self.spec, source);
        checkpoints::create_checkpoint(&self.table, None).await.map_err(wrap)?;
        self.sync()?;
        checkpoints::cleanup_metadata(&self.table, None).await.map_err(wrap)?;
        Ok(self.version())
    }

    async fn commit(&mut self, actions: Vec<Action>, seq: Option<i64>, operation: DeltaOperation) -> Result<()> {
        let wrap = |source| delta_error(&self.spec, source);
        let mut properties = CommitProperties::default()
            .with_create_checkpoint(false)
            .with_cleanup_expired_logs(Some(false));
        if let Some(seq) = seq {
            properties = properties.with_application_transaction(Transaction::new(&self.app_id, seq));
        }
        let state = self.table.snapshot().map_err(wrap)?;
        CommitBuilder::from(properties)
            .with_actions(actions)
            .build(Some(state), self.table.log_store(), operation)
            .await
            .map_err(wrap)?;
        self.sync()?;
        self.update().await
    }

    /// The action that brings the log's schema to the spec's, when columns were added.
    fn schema_change(&self) -> Result<Vec<Action>> {
        let wrap = |source: DeltaTableError| delta_error(&self.spec, source);
        let state = self.table.snapshot().map_err(wrap)?;
        let logged = state.schema();
        if self
            .spec
            .full_schema()
            .fields()
            .iter()
            .all(|field| logged.field(field.name()).is_some())
        {
            return Ok(Vec::new());
        }
        let schema = delta_schema(&self.spec).map_err(wrap)?;
        let metadata = state
            .metadata()
            .clone()
            .with_schema(&schema)
            .map_err(|source| wrap(source.into()))?;
        Ok(vec![Action::Metadata(metadata)])
    }

    /// Makes the log durable; the object store of local files does not.
    fn sync(&self) -> Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let log = folder.join("_delta_log");
        let newest = format!("{:020}.", self.version() + 1);
        let current = format!("{:020}.", self.version());
        for entry in std::fs::read_dir(&log).map_err(StoreError::io(&log))? {
            let path = entry.map_err(StoreError::io(&log))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with(&newest) || name.starts_with(&current) || name == "_last_checkpoint" {
                std::fs::File::open(&path)
                    .and_then(|file| file.sync_all())
                    .map_err(StoreError::io(&path))?;
            }
        }
        for folder in [log.as_path(), folder, folder.parent().unwrap_or(folder)] {
            crate::store::layout::sync_folder(folder)?;
        }
        Ok(())
    }
}

/// Moves a log that cannot be read aside, so that a new one can be made from the index. Returns where it went.
pub(crate) fn set_aside(folder: &Path) -> Result<std::path::PathBuf> {
    let log = folder.join("_delta_log");
    let aside = folder.join(format!("_damaged_delta_log_{}", uuid::Uuid::now_v7().simple()));
    std::fs::rename(&log, &aside).map_err(StoreError::io(&log))?;
    crate::store::layout::sync_folder(folder)?;
    Ok(aside)
}

/// Name under which this store's commits stand in the log.
fn app_id(spec: &TableSpec, store_id: &str) -> String {
    format!("clade-{store_id}-{}", spec.name)
}

fn delta_error(spec: &TableSpec, source: DeltaTableError) -> StoreError {
    StoreError::Delta {
        table: spec.name.clone(),
        source: Box::new(source),
    }
}

fn log_store(location: &Location, spec: &TableSpec) -> Result<LogStoreRef> {
    let url = location.table_url(spec)?;
    let prefixed = Arc::new(PrefixStore::new(Arc::clone(location.store()), location.table(spec)));
    Ok(default_logstore(
        prefixed,
        Arc::clone(location.store()),
        &url,
        &StorageConfig::default(),
    ))
}

async fn create(log_store: LogStoreRef, spec: &TableSpec) -> Result<DeltaTable, DeltaTableError> {
    CreateBuilder::new()
        .with_log_store(log_store)
        .with_table_name(&spec.name)
        .with_comment(&spec.doc)
        .with_columns(delta_schema(spec)?.fields().cloned())
        .with_configuration_property(TableProperty::AppendOnly, Some("false"))
        .with_configuration_property(TableProperty::CheckpointInterval, Some("10"))
        .with_configuration_property(TableProperty::LogRetentionDuration, Some("interval 1 days"))
        .with_save_mode(SaveMode::Ignore)
        .await
}

fn delta_schema(spec: &TableSpec) -> Result<StructType, DeltaTableError> {
    let hidden = [
        (crate::spec::SEQ_COLUMN, ColumnType::Int, "Commit of the row."),
        (
            crate::spec::COMMITTED_AT_COLUMN,
            ColumnType::Timestamp,
            "Time of the commit of the row.",
        ),
    ];
    let columns = spec
        .columns
        .iter()
        .map(|c| (c.name.as_str(), c.column_type, c.doc.as_str()))
        .chain(hidden);
    let fields = columns.map(|(name, ty, doc)| {
        StructField::nullable(name, delta_type(ty)).with_metadata([("comment", MetadataValue::String(doc.into()))])
    });
    Ok(StructType::try_new(fields)?)
}

fn delta_type(column_type: ColumnType) -> DataType {
    DataType::Primitive(match column_type {
        ColumnType::Text => PrimitiveType::String,
        ColumnType::Int => PrimitiveType::Long,
        ColumnType::Float => PrimitiveType::Double,
        ColumnType::Bool => PrimitiveType::Boolean,
        ColumnType::Timestamp => PrimitiveType::Timestamp,
        ColumnType::List => return DataType::Array(Box::new(ArrayType::new(DataType::STRING, true))),
    })
}

fn add(file: &NewFile, data_change: bool, now: i64) -> Action {
    Action::Add(Add {
        path: file.path.clone(),
        partition_values: HashMap::new(),
        size: file.bytes.cast_signed(),
        modification_time: now / 1000,
        data_change,
        stats: Some(file.stats.to_text()),
        tags: None,
        deletion_vector: None,
        base_row_id: None,
        default_row_commit_version: None,
        clustering_provider: None,
    })
}
