//! Whose a key is. The router has no keys: it asks a server, and remembers the answer for a moment. Whatever is done with the key is
//! checked by the server that does it, so that this only keeps strangers' bodies out and tells users apart.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderValue, StatusCode};
use parking_lot::Mutex;

use super::api::{App, Refused};
use super::servers::Ask;
use crate::scheduler::sha256_hex;
use crate::service::Role;
use crate::service::api::caller::{KEY_HEADER, NO_KEY, key_of, unauthorized};
use crate::service::api::types::Identity;

/// Time that an answer is remembered.
const REMEMBERED: Duration = Duration::from_secs(5);
/// Answers that are remembered.
const MOST: usize = 10_000;

/// Whose a key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Caller {
    /// User.
    pub(super) user: String,
    /// What the key may do.
    pub(super) role: Role,
    /// The key, as servers get it.
    pub(super) headers: HeaderMap,
}

/// Whose keys are that were seen just now, by the hashes of the keys.
#[derive(Debug, Default)]
pub(super) struct Callers(Mutex<HashMap<String, (Instant, Arc<Caller>)>>);

impl Callers {
    fn get(&self, hash: &str) -> Option<Arc<Caller>> {
        let known = self.0.lock();
        let (since, caller) = known.get(hash)?;
        (since.elapsed() < REMEMBERED).then(|| Arc::clone(caller))
    }

    fn put(&self, hash: String, caller: Arc<Caller>) {
        let mut known = self.0.lock();
        if known.len() >= MOST {
            known.retain(|_, (since, _)| since.elapsed() < REMEMBERED);
        }
        if known.len() < MOST {
            known.insert(hash, (Instant::now(), caller));
        }
    }
}

/// Who makes a request, as the first server says that answers; it may have said so a moment ago.
///
/// # Errors
/// When the key is none, or no server answers.
pub(super) async fn caller(app: &App, headers: &HeaderMap) -> Result<Arc<Caller>, Refused> {
    let key = key_of(headers).ok_or_else(|| unauthorized(NO_KEY))?;
    let hash = sha256_hex(key.as_bytes());
    if let Some(caller) = app.callers.get(&hash) {
        return Ok(caller);
    }
    let caller = Arc::new(ask(app, key).await?);
    app.callers.put(hash, Arc::clone(&caller));
    Ok(caller)
}

/// The same, where a server says so now.
///
/// # Errors
/// As [`caller`].
pub(super) async fn caller_now(app: &App, headers: &HeaderMap) -> Result<Caller, Refused> {
    let key = key_of(headers).ok_or_else(|| unauthorized(NO_KEY))?;
    ask(app, key).await
}

async fn ask(app: &App, key: &str) -> Result<Caller, Refused> {
    let mut headers = HeaderMap::new();
    let value = HeaderValue::from_str(key).map_err(|_| unauthorized("the API key is unknown, wrong or revoked"))?;
    headers.insert(KEY_HEADER, value);
    let question = Ask::get("/whoami", headers.clone());
    let setup = app.setup();
    let up = setup.up();
    let first = rand::random_range(0..up.len().max(1));
    for server in up.iter().cycle().skip(first).take(up.len()) {
        let Ok(reply) = server.ask(&question).await else {
            continue;
        };
        if reply.status == StatusCode::OK
            && let Some(identity) = reply.json::<Identity>()
            && let Some(role) = Role::parse(&identity.role)
        {
            return Ok(Caller {
                user: identity.user,
                role,
                headers,
            });
        }
        // An older server does not know the question.
        if reply.status.is_client_error() && !reply.is_missing() {
            return Err(Refused::Passed(Box::new(reply)));
        }
    }
    let names = setup.servers.iter().map(|server| Arc::clone(&server.name)).collect();
    Err(app.unreachable(names).into())
}
