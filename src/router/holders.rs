//! Who has it: all servers are asked at the same time.

use std::sync::Arc;

use axum::http::HeaderMap;
use futures::future::join_all;

use super::api::{App, Refused};
use super::servers::{Ask, Fault, Reply, Server, Setup};
use crate::service::api::caller::KEY_HEADER;

/// What all servers answered.
#[derive(Debug)]
pub(super) struct Answers {
    /// Those that answered, with what they said.
    pub(super) told: Vec<(Arc<Server>, Reply)>,
    /// Names of those that did not, or were at fault.
    pub(super) silent: Vec<Arc<str>>,
}

/// Asks all servers; those that are known to be down are silent without being asked.
pub(super) async fn ask_all(setup: &Setup, ask: &Ask) -> Answers {
    ask_each(setup.up().into_iter().map(|server| (server, ask.clone())), setup.down()).await
}

/// Asks servers a question each.
pub(super) async fn ask_each(questions: impl Iterator<Item = (Arc<Server>, Ask)>, silent: Vec<Arc<str>>) -> Answers {
    let asked = questions.map(|(server, ask)| async move {
        let answer = server.ask(&ask).await;
        (server, answer)
    });
    let mut answers = Answers {
        told: Vec::new(),
        silent,
    };
    for (server, answer) in join_all(asked).await {
        answers.add(server, answer);
    }
    answers
}

impl Answers {
    /// Adds what a server said.
    pub(super) fn add(&mut self, server: Arc<Server>, answer: Result<Reply, Fault>) {
        match answer {
            // A server at fault has not said that it does not have it.
            Ok(reply) if reply.status.is_server_error() => self.silent.push(Arc::clone(&server.name)),
            Ok(reply) => self.told.push((server, reply)),
            Err(_) => self.silent.push(Arc::clone(&server.name)),
        }
    }

    /// The first server that has it, and its answer.
    pub(super) fn take_found(&mut self) -> Option<(Arc<Server>, Reply)> {
        let place = self.told.iter().position(|(_, reply)| reply.status.is_success())?;
        Some(self.told.swap_remove(place))
    }

    /// What the client is told when no server has it: a refusal that is none of "there is no such thing", else that servers do not
    /// answer, else the first answer.
    pub(super) fn refusal(self, app: &App) -> Refused {
        let mut missing = None;
        for (_, reply) in self.told {
            if !reply.is_missing() {
                return Refused::Passed(Box::new(reply));
            }
            missing.get_or_insert(reply);
        }
        match missing {
            Some(reply) if self.silent.is_empty() => Refused::Passed(Box::new(reply)),
            _ => app.unreachable(self.silent).into(),
        }
    }
}

/// The API key among headers.
pub(super) fn key_only(headers: &HeaderMap) -> HeaderMap {
    let mut only = HeaderMap::new();
    if let Some(key) = headers.get(KEY_HEADER) {
        only.insert(KEY_HEADER, key.clone());
    }
    only
}

/// The server of a job.
#[derive(Debug)]
pub(super) struct Holder {
    pub(super) server: Arc<Server>,
    /// It was not asked just now.
    pub(super) is_remembered: bool,
}

/// The server of a job, which is remembered from then on. Where it is not known yet, all are asked.
///
/// # Errors
/// When no server has it, or one that does not answer may have it.
pub(super) async fn job_holder(app: &App, job_id: &str, ask: &Ask) -> Result<Holder, Refused> {
    let setup = app.setup();
    let known = app.jobs.get(&job_id.to_owned());
    if let Some(server) = known.and_then(|name| setup.server(&name).cloned()) {
        return Ok(Holder {
            server,
            is_remembered: true,
        });
    }
    let mut answers = ask_all(&setup, ask).await;
    match answers.take_found() {
        Some((server, _)) => {
            app.jobs.put(job_id.to_owned(), &server.name);
            Ok(Holder {
                server,
                is_remembered: false,
            })
        }
        None => Err(answers.refusal(app)),
    }
}
