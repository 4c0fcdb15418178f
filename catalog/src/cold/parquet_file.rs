//! Writing, reading and checking Parquet files of the cold tier.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, new_null_array};
use arrow::compute::cast;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::{ParquetMetaDataReader, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use super::file::{ColdFile, IndexedFile};
use super::location::Location;
use super::stats::FileStats;
use crate::error::{Result, StoreError};
use crate::spec::{COMMITTED_AT_COLUMN, ColumnType, SEQ_COLUMN, TableSpec};

/// Rows of a row group.
const ROW_GROUP_ROWS: usize = 64 << 10;
/// Bytes of a row group.
const ROW_GROUP_BYTES: usize = 32 << 20;
/// Rows of a page: the finest step in which rows that are named by their commit are found.
const PAGE_ROWS: usize = 4096;
/// Bytes of a page of long texts: what has to be decompressed for one of them.
const LONG_PAGE_BYTES: usize = 64 << 10;
/// Share of wrong answers of a bloom filter.
const BLOOM_FPP: f64 = 0.01;
/// Prefix of the names of our files; others in a table's folder are foreign.
const NAME_PREFIX: &str = "seq-";

/// A new file that is written and durable but in no log yet.
#[derive(Debug, Clone)]
pub(crate) struct NewFile {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) stats: FileStats,
    pub(crate) min_seq: i64,
    pub(crate) max_seq: i64,
}

impl NewFile {
    /// The file as the index has it.
    pub(crate) fn indexed(&self) -> IndexedFile {
        IndexedFile {
            path: self.path.clone(),
            bytes: self.bytes,
            rows: self.stats.num_records,
            min_seq: self.min_seq,
            max_seq: self.max_seq,
            stats: self.stats.to_text(),
        }
    }
}

/// Name of a file with rows of these commits.
fn file_name(min_seq: i64, max_seq: i64) -> String {
    format!(
        "{NAME_PREFIX}{min_seq:012}-{max_seq:012}-{}.parquet",
        uuid::Uuid::now_v7().simple()
    )
}

/// Whether a name in a table's folder is one of ours.
pub(crate) fn is_ours(path: &str) -> bool {
    path.starts_with(NAME_PREFIX) && path.ends_with(".parquet")
}

/// Writer of one file. Rows come in commit order.
pub(crate) struct FileWriter<'a> {
    spec: &'a TableSpec,
    location: &'a Location,
    writer: ArrowWriter<Vec<u8>>,
    stats: FileStats,
    seqs: (i64, i64),
}

impl<'a> FileWriter<'a> {
    /// `stats` are those of all rows that will be written.
    pub(crate) fn new(location: &'a Location, spec: &'a TableSpec, stats: FileStats, level: i32) -> Result<Self> {
        let seqs = stats.seq_range().ok_or_else(|| StoreError::Corrupt {
            subject: format!("rows of table {}", spec.name),
            reason: "they have no commit number".into(),
        })?;
        let writer = ArrowWriter::try_new(Vec::new(), spec.full_schema(), Some(properties(spec, &stats, level)?))
            .map_err(|source| StoreError::Parquet {
                path: spec.name.clone(),
                source,
            })?;
        Ok(Self {
            spec,
            location,
            writer,
            stats,
            seqs,
        })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.writer.write(batch).map_err(|source| StoreError::Parquet {
            path: self.spec.name.clone(),
            source,
        })
    }

    /// Stores the file; it is durable when this returns.
    pub(crate) async fn finish(self) -> Result<NewFile> {
        let (min_seq, max_seq) = self.seqs;
        let path = file_name(min_seq, max_seq);
        let data = self.writer.into_inner().map_err(|source| StoreError::Parquet {
            path: self.spec.name.clone(),
            source,
        })?;
        let bytes = data.len() as u64;
        match self.location.folder(self.spec) {
            Some(folder) => {
                let target = folder.join(&path);
                tokio::task::spawn_blocking(move || {
                    std::fs::create_dir_all(&folder).map_err(StoreError::io(&folder))?;
                    crate::store::layout::write_durably(&target, &data)
                })
                .await??;
            }
            None => {
                let place = self.location.file(self.spec, &path);
                let put = self.location.store().put(&place, PutPayload::from(data)).await;
                put.map_err(|source| StoreError::ObjectStore {
                    context: format!("write {place}"),
                    source,
                })?;
            }
        }
        Ok(NewFile {
            path,
            bytes,
            stats: self.stats,
            min_seq,
            max_seq,
        })
    }
}

fn properties(spec: &TableSpec, stats: &FileStats, level: i32) -> Result<WriterProperties> {
    let rows = u64::try_from(stats.num_records)
        .unwrap_or(0)
        .min(ROW_GROUP_ROWS as u64)
        .max(1);
    let level = ZstdLevel::try_new(level).map_err(|source| StoreError::Parquet {
        path: spec.name.clone(),
        source,
    })?;
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_created_by(concat!("clade-catalog ", env!("CARGO_PKG_VERSION")).into())
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_max_row_group_bytes(Some(ROW_GROUP_BYTES))
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_sorting_columns(Some(vec![SortingColumn {
            column_idx: seq_leaf(spec),
            descending: false,
            nulls_first: false,
        }]));
    let rising = spec
        .columns
        .iter()
        .filter(|c| c.column_type == ColumnType::Timestamp)
        .map(|c| c.name.as_str());
    for column in rising.chain([SEQ_COLUMN, COMMITTED_AT_COLUMN]) {
        properties = properties
            .set_column_dictionary_enabled(ColumnPath::from(column), false)
            .set_column_encoding(ColumnPath::from(column), Encoding::DELTA_BINARY_PACKED);
    }
    for column in &spec.columns {
        let path = ColumnPath::from(column.name.as_str());
        match column.column_type {
            // Parquet leaves NaN out of its bounds, so bounds of a column with a NaN would drop rows.
            ColumnType::Float if !stats.min_values.contains_key(&column.name) => {
                properties = properties.set_column_statistics_enabled(path, EnabledStatistics::None);
            }
            ColumnType::Text if column.long => {
                properties = properties
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_data_page_size_limit(path, LONG_PAGE_BYTES);
            }
            // Ids are hashes: bounds cannot tell where one is, a bloom filter can.
            ColumnType::Text if spec.key.contains(&column.name) => {
                properties = properties
                    .set_column_bloom_filter_enabled(path.clone(), true)
                    .set_column_bloom_filter_fpp(path.clone(), BLOOM_FPP)
                    .set_column_bloom_filter_max_ndv(path, rows);
            }
            _ => {}
        }
    }
    Ok(properties.build())
}

/// Leaf number of `_seq`; every column has one leaf.
fn seq_leaf(spec: &TableSpec) -> i32 {
    i32::try_from(spec.seq_index()).unwrap_or(0)
}

/// Reads a file, batch by batch, in the present full schema of its table.
pub(crate) async fn read(
    location: &Location,
    spec: &TableSpec,
    file: &ColdFile,
) -> Result<impl Iterator<Item = Result<RecordBatch>>> {
    let place = location.file(spec, &file.path);
    let wrap = |source| StoreError::ObjectStore {
        context: format!("read {place}"),
        source,
    };
    let data = location
        .store()
        .get(&place)
        .await
        .map_err(wrap)?
        .bytes()
        .await
        .map_err(wrap)?;
    let name = place.to_string();
    let reader = ParquetRecordBatchReaderBuilder::try_new(data)
        .and_then(|builder| builder.with_batch_size(8192).build())
        .map_err(|source| StoreError::Parquet {
            path: name.clone(),
            source,
        })?;
    let spec = spec.clone();
    Ok(reader.map(move |batch| {
        batch
            .and_then(|batch| widen(&spec, &batch))
            .map_err(|source| StoreError::Arrow {
                context: name.clone(),
                source,
            })
    }))
}

/// Brings a batch of an older file to the present full schema: columns that came later are NULL.
fn widen(spec: &TableSpec, batch: &RecordBatch) -> Result<RecordBatch, arrow::error::ArrowError> {
    let schema = spec.full_schema();
    let columns = schema
        .fields()
        .iter()
        .map(|field| match batch.column_by_name(field.name()) {
            Some(column) if column.data_type() == field.data_type() => Ok(Arc::clone(column)),
            Some(column) => cast(column, field.data_type()),
            None => Ok(new_null_array(field.data_type(), batch.num_rows())),
        })
        .collect::<Result<Vec<ArrayRef>, _>>()?;
    RecordBatch::try_new(schema, columns)
}

/// What is wrong with a file of the index, if anything. Failures to reach the object store are errors.
pub(crate) async fn damage(location: &Location, spec: &TableSpec, file: &ColdFile) -> Result<Option<String>> {
    const TAIL: u64 = 64 << 10;
    let place = location.file(spec, &file.path);
    match tail(location, &place, file.bytes, TAIL).await {
        Ok(Err(reason)) => Ok(Some(reason)),
        Ok(Ok(())) => Ok(None),
        Err(object_store::Error::NotFound { .. }) => Ok(Some("the file is missing".into())),
        Err(source) => Err(StoreError::ObjectStore {
            context: format!("read {place}"),
            source,
        }),
    }
}

/// Reads the footer of a file; the inner error says why it cannot be read.
async fn tail(
    location: &Location,
    place: &Path,
    bytes: u64,
    guess: u64,
) -> object_store::Result<std::result::Result<(), String>> {
    let size = location.store().head(place).await?.size;
    if size != bytes {
        return Ok(Err(format!("the file has {size} bytes, {bytes} were written")));
    }
    let mut reader = ParquetMetaDataReader::new();
    let mut from = bytes.saturating_sub(guess);
    loop {
        let data = location.store().get_range(place, from..bytes).await?;
        match reader.try_parse_sized(&data, bytes) {
            Ok(()) => return Ok(Ok(())),
            Err(parquet::errors::ParquetError::NeedMoreData(needed)) if from > 0 && needed as u64 <= bytes => {
                from = bytes - needed as u64;
            }
            Err(error) => return Ok(Err(error.to_string())),
        }
    }
}
