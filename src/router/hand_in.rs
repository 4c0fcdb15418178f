//! Handing a job in, so that a request with an idempotency key is one job, whatever breaks on the way.
//!
//! Before a request is sent it is noted which server gets it, and the note goes only when that server certainly has no job of it: there
//! was no connection, or it said no. Otherwise the same request goes to the same server again, which knows the key if it has the job.

use std::fmt;
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use reqwest::Method;
use serde_json::Value;
use tracing::warn;

use super::api::{App, Refused, no_server};
use super::caller::Caller;
use super::holders::{ask_all, key_only};
use super::key_holder::{has_no_job, key_holder};
use super::place::{Candidate, order};
use super::servers::{Ask, Fault, Placement, Reply, Server, Setup};
use crate::service::{Class, UPLOAD_PREFIX};

/// An idempotency key and its user.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct KeyId {
    pub(super) user: String,
    pub(super) key: String,
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyId({})", self.user)
    }
}

/// A request for a job.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) id: KeyId,
    /// The router made the key, so no server knows it.
    pub(super) is_new: bool,
    class: Class,
    /// The upload that the job reads.
    upload: Option<String>,
    /// What a server is asked.
    pub(super) ask: Ask,
}

/// A job that a server has taken.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) server: Arc<Server>,
    pub(super) reply: Reply,
}

/// What became of a request at a server.
enum Tried {
    /// It answered, and the job is its own, or the request is wrong wherever it goes.
    Answered(Reply),
    /// It has no job of it.
    Not(Option<Reply>),
}

impl Request {
    /// Reads what the router must know of a request; whether it is right is for the server to say. It gets a key if it has none.
    pub(super) fn new(mut body: Value, caller: &Caller, headers: HeaderMap) -> Self {
        let text = |name: &str| body[name].as_str().map(str::to_owned);
        let class = text("resource_type").and_then(|name| Class::parse(&name.to_ascii_lowercase()));
        let upload = text("data_dir").filter(|name| name.starts_with(UPLOAD_PREFIX));
        let given = text("idempotency_key");
        let is_new = given.is_none();
        let key = given.unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
        if let Value::Object(fields) = &mut body
            && fields.get("idempotency_key").is_none_or(Value::is_null)
        {
            fields.insert("idempotency_key".to_owned(), Value::from(key.as_str()));
        }
        Self {
            id: KeyId {
                user: caller.user.clone(),
                key,
            },
            is_new,
            class: class.unwrap_or(Class::Cpu),
            upload,
            ask: Ask {
                method: Method::POST,
                path: "/jobs".to_owned(),
                headers,
                body: Bytes::from(body.to_string()),
            },
        }
    }
}

/// Hands a request in: to the server that has it already, or to the best one that takes it.
///
/// # Errors
/// When it is refused, or the server that may have it does not answer.
pub(super) async fn hand_in(app: &App, request: &Request) -> Result<Taken, Refused> {
    let _turn = app.turns.take(request.id.clone()).await;
    let setup = app.setup();
    let mut gone = None;
    if let Some(server) = key_holder(app, &setup, request).await? {
        if server.is_gone(setup.config.failover_time) {
            warn!(
                server = &*server.name,
                "a request goes to another server, since its own has not answered for too long; its job may run twice"
            );
            app.keys.forget(&request.id, &server.name);
            gone = Some(server);
        } else if let Tried::Answered(reply) = again(app, &server, request).await? {
            return answered(app, server, reply);
        }
    }
    place(app, &setup, request, gone.as_deref()).await
}

/// Sends a request to the server that may have it.
async fn again(app: &App, server: &Arc<Server>, request: &Request) -> Result<Tried, Refused> {
    let reply = server
        .ask(&request.ask)
        .await
        .map_err(|_| app.unreachable(vec![Arc::clone(&server.name)]))?;
    // The key is looked for before the room: there is no job of it.
    if is_full(&reply) || has_failed(server, request, &reply).await {
        app.keys.forget(&request.id, &server.name);
        return Ok(Tried::Not(Some(reply)));
    }
    Ok(Tried::Answered(reply))
}

/// Gives a request that no server has to the best one that takes it.
async fn place(app: &App, setup: &Setup, request: &Request, gone: Option<&Server>) -> Result<Taken, Refused> {
    let holders = match &request.upload {
        Some(upload) => Some(holders(app, setup, upload, &request.ask.headers).await?),
        None => None,
    };
    let mut left: Vec<Arc<Server>> = setup.servers.to_vec();
    let mut reasons = Vec::new();
    left.retain(|server| {
        let reason = why_not(server, gone, holders.as_deref());
        reasons.extend(reason.map(|reason| format!("{} {reason}", server.name)));
        reason.is_none()
    });
    let mut refusals = Vec::new();
    let turn = app.next_turn();
    while !left.is_empty() {
        let (server, placement) = choose(app, &mut left, request.class, turn);
        match attempt(app, &server, request, placement).await? {
            Tried::Answered(reply) => return answered(app, server, reply),
            Tried::Not(Some(reply)) => refusals.push(reply),
            Tried::Not(None) => reasons.push(format!("{} does not answer", server.name)),
        }
    }
    match mildest(refusals) {
        Some(reply) => Err(Refused::Passed(Box::new(reply))),
        None if setup.up().is_empty() => Err(app.unreachable(setup.down()).into()),
        None => Err(no_server(&reasons.join(", ")).into()),
    }
}

/// Why a server gets no new job.
fn why_not(server: &Server, gone: Option<&Server>, holders: Option<&[Arc<str>]>) -> Option<&'static str> {
    let view = server.view();
    if !view.is_up || gone.is_some_and(|gone| gone.name == server.name) {
        return Some("does not answer");
    }
    if server.drain {
        return Some("gets no new jobs");
    }
    if view.is_failing {
        return Some("fails whatever it is asked");
    }
    if view.is_stopping {
        return Some("is stopping");
    }
    let has_upload = holders.is_none_or(|holders| holders.contains(&server.name));
    (!has_upload).then_some("does not have the upload")
}

/// The best of some servers, which is taken out and counts as having the job.
fn choose(app: &App, left: &mut Vec<Arc<Server>>, class: Class, turn: usize) -> (Arc<Server>, Placement) {
    let _placing = app.placing.lock();
    let candidates: Vec<Candidate> = left
        .iter()
        .map(|server| {
            let view = server.view();
            Candidate {
                load: view.load,
                placed: view.placed(class),
            }
        })
        .collect();
    let best = order(&candidates, class, turn);
    let server = left.swap_remove(best.first().copied().unwrap_or_default());
    let placement = server.note_placement(class);
    (server, placement)
}

/// Sends a new request to a server.
async fn attempt(app: &App, server: &Arc<Server>, request: &Request, placement: Placement) -> Result<Tried, Refused> {
    app.keys.put(request.id.clone(), &server.name);
    let not_there = |placement: Placement| {
        app.keys.forget(&request.id, &server.name);
        placement.undo();
    };
    match server.ask(&request.ask).await {
        Ok(reply) if is_full(&reply) || has_no_gpu(&reply) || has_failed(server, request, &reply).await => {
            not_there(placement);
            app.figures.note_refused(&server.name);
            Ok(Tried::Not(Some(reply)))
        }
        Ok(reply) => {
            if reply.status.is_client_error() && reply.status != StatusCode::CONFLICT {
                not_there(placement);
            } else if reply.status.is_success() {
                app.figures.note_placed(&server.name);
            }
            Ok(Tried::Answered(reply))
        }
        Err(Fault::NotSent(_)) => {
            not_there(placement);
            Ok(Tried::Not(None))
        }
        Err(Fault::Broken(_) | Fault::Silent(_)) => Err(app.unreachable(vec![Arc::clone(&server.name)]).into()),
    }
}

/// It has no room now; that it says only of a request whose key it does not know.
fn is_full(reply: &Reply) -> bool {
    reply.status == StatusCode::TOO_MANY_REQUESTS && reply.code().as_deref() == Some("queue_full")
}

/// The server itself was at fault, or is about to end, and says that it has no job of the request. Without that it may have one: its first
/// answer may have been lost, and this be the second.
async fn has_failed(server: &Server, request: &Request, reply: &Reply) -> bool {
    let code = reply.code().filter(|_| reply.status.is_server_error());
    matches!(code.as_deref(), Some("internal" | "disk_full" | "stopping")) && has_no_job(server, request).await
}

/// Another server may have what the job needs.
fn has_no_gpu(reply: &Reply) -> bool {
    reply.status == StatusCode::UNPROCESSABLE_ENTITY && reply.code().as_deref() == Some("no_gpu")
}

/// The refusal after which the client may come again first; one that says no for good only where all do.
fn mildest(refusals: Vec<Reply>) -> Option<Reply> {
    refusals
        .into_iter()
        .min_by_key(|reply| reply.retry_after().unwrap_or(u64::MAX))
}

fn answered(app: &App, server: Arc<Server>, reply: Reply) -> Result<Taken, Refused> {
    if !reply.status.is_success() {
        return Err(Refused::Passed(Box::new(reply)));
    }
    let job: Option<Value> = reply.json();
    if let Some(job_id) = job.as_ref().and_then(|job| job["job_id"].as_str()) {
        app.jobs.put(job_id.to_owned(), &server.name);
    }
    Ok(Taken { server, reply })
}

/// Names of the servers that have an upload.
async fn holders(app: &App, setup: &Setup, upload: &str, headers: &HeaderMap) -> Result<Vec<Arc<str>>, Refused> {
    let hash = upload.strip_prefix(UPLOAD_PREFIX).unwrap_or(upload);
    if hash.is_empty() || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        // Any server says what is wrong with it.
        return Ok(setup.servers.iter().map(|server| Arc::clone(&server.name)).collect());
    }
    let question = Ask::get(format!("/uploads/{UPLOAD_PREFIX}{hash}"), key_only(headers));
    let answers = ask_all(setup, &question).await;
    let have: Vec<Arc<str>> = answers
        .told
        .iter()
        .filter(|(_, reply)| reply.status.is_success())
        .map(|(server, _)| Arc::clone(&server.name))
        .collect();
    if !have.is_empty() {
        return Ok(have);
    }
    if !answers.silent.is_empty() {
        return Err(app.unreachable(answers.silent).into());
    }
    // None has it, which any of them says.
    Ok(setup.servers.iter().map(|server| Arc::clone(&server.name)).collect())
}
