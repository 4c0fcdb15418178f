//! `[store]`: where the store is and when its hot rows move to Parquet.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ByteSize;

/// Where the store is and when its hot rows move.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreConfig {
    /// Folder of the store.
    pub path: PathBuf,
    /// Location of the cold tier, such as `s3://bucket/prefix`; none for a folder in the store.
    pub cold: Option<String>,
    /// Hot rows of a table that start a flush.
    pub flush_rows: u64,
    /// Hot bytes of a table that start a flush.
    pub flush_size: ByteSize,
    /// Age of the oldest hot row that starts a flush, in seconds.
    pub flush_age_seconds: u64,
    /// Memory for decoded rows, once for each tier.
    pub cache: ByteSize,
    /// Access to S3 and to services that speak it.
    pub s3: S3Config,
}

/// Access to S3 and to services that speak it; secrets are named, never held.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct S3Config {
    /// Region of the bucket.
    pub region: Option<String>,
    /// Endpoint, for services other than AWS.
    pub endpoint: Option<String>,
    /// Whether the endpoint may be plain HTTP.
    pub allow_http: bool,
    /// Variable that holds the access key id.
    pub access_key_id_env: String,
    /// Variable that holds the secret access key.
    pub secret_access_key_env: String,
    /// Variable that holds the session token.
    pub session_token_env: String,
}

impl StoreConfig {
    /// Age of the oldest hot row that starts a flush.
    pub fn flush_age(&self) -> Duration {
        Duration::from_secs(self.flush_age_seconds)
    }
}
