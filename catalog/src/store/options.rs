//! Options of a store.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::spec::Specs;

/// Source of the time; commits are stamped with it, and work that waits waits for it.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Microseconds since the epoch, UTC.
    fn now_micros(&self) -> i64;

    /// Waits for so long.
    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()>;
}

/// The time of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_micros(&self) -> i64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(time).boxed()
    }
}

/// Where the cold tier lives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ColdLocation {
    /// In the store's directory, under `tables/`.
    #[default]
    Local,
    /// In a bucket, as `s3://bucket/prefix`.
    S3(S3Location),
}

/// A bucket and how to reach it. Secrets are named, not held: the values come from environment variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Location {
    /// Address, as `s3://bucket/prefix`.
    pub url: String,
    /// Endpoint of a service that is not AWS, as `http://localhost:9000`.
    pub endpoint: Option<String>,
    /// Region.
    pub region: String,
    /// Whether plain HTTP is allowed.
    pub allow_http: bool,
    /// Environment variable that holds the access key.
    pub access_key_env: String,
    /// Environment variable that holds the secret key.
    pub secret_key_env: String,
    /// Environment variable that holds the token of temporary keys; keys that last need none, so it may be unset.
    pub session_token_env: String,
    /// Further options of the object store, by their `aws_*` names.
    pub options: BTreeMap<String, String>,
}

impl S3Location {
    /// A location with AWS's own endpoint and variable names.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            endpoint: None,
            region: "us-east-1".into(),
            allow_http: false,
            access_key_env: "AWS_ACCESS_KEY_ID".into(),
            secret_key_env: "AWS_SECRET_ACCESS_KEY".into(),
            session_token_env: "AWS_SESSION_TOKEN".into(),
            options: BTreeMap::new(),
        }
    }
}

/// When rows move between the tiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaintenanceOptions {
    /// How often the background task looks; `None` for no background task.
    pub interval: Option<Duration>,
    /// Hot rows of a table that make it due for a flush.
    pub flush_rows: u64,
    /// Hot bytes of a table that make it due for a flush.
    pub flush_bytes: u64,
    /// Age of the oldest hot row of a table that makes it due for a flush.
    pub flush_age: Duration,
    /// Small cold files of a table that make it due for a compaction.
    pub compact_files: usize,
    /// Size up to which a cold file is small, and which a compaction aims at.
    pub compact_bytes: u64,
    /// How long replaced files stay for statements that still read them.
    pub grace: Duration,
    /// Delta commits of a table between checkpoints.
    pub checkpoint_commits: u64,
}

impl Default for MaintenanceOptions {
    fn default() -> Self {
        Self {
            interval: Some(Duration::from_secs(5)),
            flush_rows: 20_000,
            flush_bytes: 16 << 20,
            flush_age: Duration::from_secs(600),
            compact_files: 8,
            compact_bytes: 128 << 20,
            grace: Duration::from_secs(3600),
            checkpoint_commits: 10,
        }
    }
}

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Open for reading only: works on read-only file systems, refuses commits.
    pub read_only: bool,
    /// Where the cold tier lives; fixed when the store is created, here only to reach it.
    pub cold: ColdLocation,
    /// When rows move between the tiers.
    pub maintenance: MaintenanceOptions,
    /// Memory for decoded hot rows.
    pub hot_cache_bytes: usize,
    /// Memory for decoded columns of cold files; see [`crate::RepeatedQueries`].
    pub cold_cache_bytes: usize,
    /// How long to wait for other processes that write.
    pub busy_timeout: Duration,
    /// Source of the time.
    pub clock: Arc<dyn Clock>,
    /// Table specs; the built-in ones when `None`.
    pub specs: Option<Arc<Specs>>,
    /// Called at named points of flush and compaction, so that tests can stop there.
    pub fault_hook: Option<FaultHook>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            read_only: false,
            cold: ColdLocation::Local,
            maintenance: MaintenanceOptions::default(),
            hot_cache_bytes: 256 << 20,
            cold_cache_bytes: 256 << 20,
            busy_timeout: Duration::from_secs(30),
            clock: Arc::new(SystemClock),
            specs: None,
            fault_hook: None,
        }
    }
}

/// Places at which a [`FaultHook`] is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultPoint {
    /// The Parquet files are written, the Delta log does not know them.
    FilesWritten,
    /// The Delta log knows the files, the index does not.
    DeltaCommitted,
    /// The index knows the files.
    Indexed,
}

/// Called with the place; an error stops the operation there.
#[derive(Clone)]
pub struct FaultHook(pub Arc<dyn Fn(FaultPoint) -> std::io::Result<()> + Send + Sync>);

impl fmt::Debug for FaultHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultHook")
    }
}
