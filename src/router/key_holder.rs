//! Which server has the job of an idempotency key: all are asked whose key is not remembered.

use std::sync::Arc;

use serde_json::Value;

use super::api::{App, Refused};
use super::hand_in::{KeyId, Request};
use super::holders::{Answers, ask_all, key_only};
use super::servers::{Ask, Server, Setup};

/// The server that has the request, or may have it.
///
/// # Errors
/// When one that does not answer may have it.
pub(super) async fn key_holder(app: &App, setup: &Setup, request: &Request) -> Result<Option<Arc<Server>>, Refused> {
    let known = app.keys.get(&request.id);
    if let Some(server) = known.and_then(|name| setup.server(&name).cloned()) {
        return Ok(Some(server));
    }
    if request.is_new {
        return Ok(None);
    }
    let known_down = setup.down();
    let mut answers = ask_all(setup, &question(request)).await;
    for (server, _) in &answers.told {
        server.note_key_answer(true);
    }
    // Those that were down before are not waited for, nor those that are at fault again and again. One that fails just now may have
    // the job.
    answers.silent.retain(|name| {
        let Some(server) = setup.server(name).filter(|_| !known_down.contains(name)) else {
            return false;
        };
        server.note_key_answer(false);
        let view = server.view();
        view.is_up && !view.is_failing
    });
    match oldest(&mut answers)? {
        Some(server) => {
            app.keys.put(request.id.clone(), &server.name);
            Ok(Some(server))
        }
        None if answers.silent.is_empty() => Ok(None),
        None => Err(app.unreachable(answers.silent).into()),
    }
}

/// Whether a server that was at fault with a request says that it has no job of it.
pub(super) async fn has_no_job(server: &Server, request: &Request) -> bool {
    let answer = server.ask(&question(request)).await;
    let reply = answer.ok().filter(|reply| !reply.status.is_server_error());
    server.note_key_answer(reply.is_some());
    let list: Option<Value> = reply
        .filter(|reply| reply.status.is_success())
        .and_then(|reply| reply.json());
    list.is_some_and(|list| list["jobs"].as_array().is_some_and(Vec::is_empty))
}

/// The question for the job of a request.
fn question(request: &Request) -> Ask {
    let KeyId { user, key } = &request.id;
    let query = form_encoded(&[("idempotency_key", key), ("user", user), ("limit", "1")]);
    Ask::get(format!("/jobs?{query}"), key_only(&request.ask.headers))
}

/// The server with the oldest job; where a request went elsewhere from one that came back, there are two.
fn oldest(answers: &mut Answers) -> Result<Option<Arc<Server>>, Refused> {
    let mut best: Option<(String, Arc<Server>)> = None;
    for (server, reply) in answers.told.drain(..) {
        if !reply.status.is_success() {
            return Err(Refused::Passed(Box::new(reply)));
        }
        let list: Option<Value> = reply.json();
        let job_id = list.as_ref().and_then(|list| list["jobs"][0]["job_id"].as_str());
        if let Some(job_id) = job_id
            && best.as_ref().is_none_or(|(known, _)| job_id < known.as_str())
        {
            best = Some((job_id.to_owned(), server));
        }
    }
    Ok(best.map(|(_, server)| server))
}

/// Parameters as they follow a question mark.
fn form_encoded(parameters: &[(&str, &str)]) -> String {
    let mut url = String::new();
    for (name, value) in parameters {
        if !url.is_empty() {
            url.push('&');
        }
        url.push_str(name);
        url.push('=');
        for byte in value.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => url.push(char::from(byte)),
                _ => url.push_str(&format!("%{byte:02X}")),
            }
        }
    }
    url
}
