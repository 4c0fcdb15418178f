//! `sandbox.api_keys`: making, revoking and reading keys.

use clade_catalog::{Rows, Store, Txn, Value};
use datafusion::common::{DataFusionError, ScalarValue};

use super::key::{Role, Secret, SecretHash, new_key};
use crate::service::error::{Result, ServiceError};
use crate::session::{Queries, ResultRow};

const TABLE: &str = "sandbox.api_keys";
const COLUMNS: &str =
    "key_id, name, salt, secret_hash, role, queued_limit, running_limit, requests_per_minute, created_at, revoked_at";

/// Quotas of a key that differ from the configured ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Jobs that may wait.
    pub queued: Option<u32>,
    /// Jobs that may run at once.
    pub running: Option<u32>,
    /// Requests in a minute.
    pub requests_per_minute: Option<u32>,
}

/// A key as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    /// Id.
    pub key_id: String,
    /// User.
    pub name: String,
    /// What is kept of its secret.
    pub secret: SecretHash,
    /// What it may do.
    pub role: Role,
    /// Its quotas.
    pub quotas: Quotas,
    /// When it was made, microseconds UTC.
    pub created_at: i64,
    /// When it was revoked.
    pub revoked_at: Option<i64>,
}

impl KeyRow {
    fn rows(&self) -> Result<Rows> {
        let number = |quota: Option<u32>| quota.map(i64::from).into();
        let mut rows = Rows::new(TABLE)?;
        rows.push([
            ("key_id", (&self.key_id).into()),
            ("name", (&self.name).into()),
            ("salt", (&self.secret.salt).into()),
            ("secret_hash", (&self.secret.hash).into()),
            ("role", self.role.as_str().into()),
            ("queued_limit", number(self.quotas.queued)),
            ("running_limit", number(self.quotas.running)),
            ("requests_per_minute", number(self.quotas.requests_per_minute)),
            ("created_at", Value::Timestamp(self.created_at)),
            ("revoked_at", self.revoked_at.map_or(Value::Null, Value::Timestamp)),
        ])?;
        Ok(rows)
    }
}

/// Makes a key; gives its text, which is nowhere else, and its row.
///
/// # Errors
/// When the store fails.
pub async fn create_key(store: &Store, name: &str, role: Role, quotas: Quotas, now: i64) -> Result<(String, KeyRow)> {
    let (text, key_id, secret) = new_key();
    let key = KeyRow {
        key_id,
        name: name.to_owned(),
        secret,
        role,
        quotas,
        created_at: now,
        revoked_at: None,
    };
    write(store, &key).await?;
    Ok((text, key))
}

/// Takes a key that another server has made; gives its row.
///
/// # Errors
/// When the text is no key, its id is taken, or the store fails.
pub async fn adopt_key(
    store: &Store,
    queries: &Queries,
    text: &str,
    name: &str,
    role: Role,
    quotas: Quotas,
    now: i64,
) -> Result<KeyRow> {
    let secret: Secret = text.parse().map_err(|_| ServiceError::NoKey)?;
    if let Some(known) = find(queries, &secret.key_id).await? {
        return Err(ServiceError::KeyTaken {
            key_id: known.key_id,
            name: known.name,
        });
    }
    let key = KeyRow {
        secret: secret.to_hash(),
        key_id: secret.key_id,
        name: name.to_owned(),
        role,
        quotas,
        created_at: now,
        revoked_at: None,
    };
    write(store, &key).await?;
    Ok(key)
}

/// Revokes a key; one that was revoked before stays as it is.
///
/// # Errors
/// When there is none, or the store fails.
pub async fn revoke_key(store: &Store, queries: &Queries, key_id: &str, now: i64) -> Result<KeyRow> {
    let Some(mut key) = find(queries, key_id).await? else {
        return Err(ServiceError::UnknownKey {
            key_id: key_id.to_owned(),
        });
    };
    if key.revoked_at.is_none() {
        key.revoked_at = Some(now);
        write(store, &key).await?;
    }
    Ok(key)
}

/// All keys, the oldest first.
///
/// # Errors
/// When the store fails.
pub async fn all_keys(queries: &Queries) -> Result<Vec<KeyRow>> {
    let sql = format!("SELECT {COLUMNS} FROM {TABLE} ORDER BY created_at, key_id");
    read(queries, &sql, &[]).await
}

async fn find(queries: &Queries, key_id: &str) -> Result<Option<KeyRow>> {
    let sql = format!("SELECT {COLUMNS} FROM {TABLE} WHERE key_id = $key");
    let found = read(queries, &sql, &[("key", ScalarValue::from(key_id))]).await?;
    Ok(found.into_iter().next())
}

async fn write(store: &Store, key: &KeyRow) -> Result<()> {
    let mut txn = Txn::new();
    txn.append(TABLE, key.rows()?);
    store.commit(txn).await?;
    Ok(())
}

async fn read(queries: &Queries, sql: &str, parameters: &[(&str, ScalarValue)]) -> Result<Vec<KeyRow>> {
    let rows = queries
        .rows(sql, parameters, None, None)
        .await
        .map_err(ServiceError::query("API keys"))?;
    rows.iter()
        .map(|row| key(row).map_err(ServiceError::query("API keys")))
        .collect()
}

fn key(row: ResultRow<'_>) -> datafusion::error::Result<KeyRow> {
    let role = row.text("role")?;
    let quota = |name: &str| -> datafusion::error::Result<Option<u32>> {
        let quota = row.optional_int(name)?.map(u32::try_from).transpose();
        quota.map_err(|error| DataFusionError::Execution(format!("{name} of a key is no quota: {error}")))
    };
    Ok(KeyRow {
        key_id: row.text("key_id")?,
        name: row.text("name")?,
        secret: SecretHash {
            salt: row.text("salt")?,
            hash: row.text("secret_hash")?,
        },
        role: Role::parse(&role).ok_or_else(|| {
            DataFusionError::Execution(format!("the role '{role}' is unknown: the store is of a newer version"))
        })?,
        quotas: Quotas {
            queued: quota("queued_limit")?,
            running: quota("running_limit")?,
            requests_per_minute: quota("requests_per_minute")?,
        },
        created_at: row.int("created_at")?,
        revoked_at: row.optional_int("revoked_at")?,
    })
}
