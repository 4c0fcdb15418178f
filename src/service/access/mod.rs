//! Who may do what: API keys with roles and quotas.

mod key;
mod keys;
mod rate;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clade_catalog::Store;
use parking_lot::Mutex;

pub use self::key::{Role, Secret};
pub use self::keys::{KeyRow, Quotas, adopt_key, all_keys, create_key, revoke_key};

use self::key::SecretHash;
use self::rate::Rates;
use super::error::Result;
use crate::session::Queries;

/// Time after which the keys are read again, so that one that is revoked elsewhere is refused soon.
const READ_AGAIN: Duration = Duration::from_secs(1);
/// The same for a key that is not known: it may have been made just now.
const READ_UNKNOWN_AGAIN: Duration = Duration::from_millis(100);

/// Quotas of every key that does not say otherwise.
#[derive(Debug, Clone, Copy)]
pub struct DefaultQuotas {
    /// Jobs of a user that may wait.
    pub queued: u32,
    /// Jobs of a user that may run at once.
    pub running: Option<u32>,
    /// Requests of a key in a minute.
    pub requests_per_minute: u32,
}

/// Who makes a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Key.
    pub key_id: String,
    /// User.
    pub user: String,
    /// What the key may do.
    pub role: Role,
    /// Jobs of the user that may wait.
    pub queued_limit: u32,
    /// Jobs of the user that may run at once.
    pub running_limit: Option<u32>,
}

impl Caller {
    /// Whether it may see the jobs of a user.
    pub fn may_see(&self, user: &str) -> bool {
        self.role == Role::Admin || self.user == user
    }
}

/// Why a request is not let in.
#[derive(Debug)]
pub enum Denied {
    /// The key is unknown, wrong or revoked.
    WrongKey,
    /// It makes too many requests; it may come again after this time.
    TooMany(Duration),
    /// The keys could not be read.
    Fault(super::error::ServiceError),
}

type Keys = Arc<HashMap<String, KeyRow>>;

/// The keys of a store.
#[derive(Debug)]
pub struct Access {
    queries: Arc<Queries>,
    defaults: DefaultQuotas,
    known: Mutex<Option<(Instant, Keys)>>,
    /// One reads while the others wait for what it finds.
    reading: tokio::sync::Mutex<()>,
    rates: Rates,
}

impl Access {
    /// The keys of a store.
    pub fn new(queries: Arc<Queries>, defaults: DefaultQuotas) -> Self {
        Self {
            queries,
            defaults,
            known: Mutex::default(),
            reading: tokio::sync::Mutex::default(),
            rates: Rates::default(),
        }
    }

    /// Makes the first key of a store that has none; gives its text.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn first_key(&self, store: &Store, now: i64) -> Result<Option<String>> {
        if !all_keys(&self.queries).await?.is_empty() {
            return Ok(None);
        }
        let (text, _) = create_key(store, "admin", Role::Admin, Quotas::default(), now).await?;
        Ok(Some(text))
    }

    /// Who has a key.
    ///
    /// # Errors
    /// When nobody has, or makes too many requests.
    pub async fn caller(&self, text: &str) -> Result<Caller, Denied> {
        let Ok(secret) = text.parse::<Secret>() else {
            return Err(Denied::WrongKey);
        };
        let mut keys = self.keys(READ_AGAIN).await.map_err(Denied::Fault)?;
        if !keys.contains_key(&secret.key_id) {
            keys = self.keys(READ_UNKNOWN_AGAIN).await.map_err(Denied::Fault)?;
        }
        let key = keys.get(&secret.key_id);
        let nothing = SecretHash::of_nothing();
        let is_right = key.map_or(&nothing, |key| &key.secret).is_of(&secret);
        let Some(key) = key.filter(|key| is_right && key.revoked_at.is_none()) else {
            return Err(Denied::WrongKey);
        };
        let per_minute = key
            .quotas
            .requests_per_minute
            .unwrap_or(self.defaults.requests_per_minute);
        self.rates.check(&key.key_id, per_minute).map_err(Denied::TooMany)?;
        Ok(Caller {
            key_id: key.key_id.clone(),
            user: key.name.clone(),
            role: key.role,
            queued_limit: key.quotas.queued.unwrap_or(self.defaults.queued),
            running_limit: key.quotas.running.or(self.defaults.running),
        })
    }

    /// The keys as they were at most so long ago.
    async fn keys(&self, age: Duration) -> Result<Keys> {
        if let Some(keys) = self.fresh(age) {
            return Ok(keys);
        }
        let _reading = self.reading.lock().await;
        if let Some(keys) = self.fresh(age) {
            return Ok(keys);
        }
        let since = Instant::now();
        let rows = all_keys(&self.queries).await?;
        let keys: Keys = Arc::new(rows.into_iter().map(|key| (key.key_id.clone(), key)).collect());
        *self.known.lock() = Some((since, Arc::clone(&keys)));
        Ok(keys)
    }

    fn fresh(&self, age: Duration) -> Option<Keys> {
        let known = self.known.lock();
        let (since, keys) = known.as_ref()?;
        (since.elapsed() < age).then(|| Arc::clone(keys))
    }
}
