//! Requests to a server.

use std::time::Duration;

use axum::body::Bytes;
use axum::http::HeaderMap;
use reqwest::{Method, RequestBuilder, Response};
use tokio::time::timeout;
use tracing::warn;

use super::Server;
use super::reply::Reply;
use crate::error::with_causes;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::router) enum Fault {
    /// There was no connection: the server has not seen the request.
    #[error("{0}")]
    NotSent(String),
    /// The connection broke: the server may have done what was asked.
    #[error("{0}")]
    Broken(String),
    /// No answer came in time: the server may do what was asked even now.
    #[error("{0}")]
    Silent(String),
}

/// What a server is asked.
#[derive(Debug, Clone)]
pub(in crate::router) struct Ask {
    pub(in crate::router) method: Method,
    /// Below `/api/v1`, with what follows a question mark.
    pub(in crate::router) path: String,
    pub(in crate::router) headers: HeaderMap,
    pub(in crate::router) body: Bytes,
}

impl Ask {
    /// A question without a body.
    pub(in crate::router) fn get(path: impl Into<String>, headers: HeaderMap) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            headers,
            body: Bytes::new(),
        }
    }
}

impl Server {
    /// The whole answer to a request. One that is not known to answer is not asked.
    ///
    /// Whatever is asked may be asked twice: a request for a job has an idempotency key. So a connection that breaks, as one does that
    /// was idle too long, is tried again.
    pub(in crate::router) async fn ask(&self, ask: &Ask) -> Result<Reply, Fault> {
        self.ask_for(ask, Duration::ZERO).await
    }

    /// The same, where the answer may take so much longer.
    pub(in crate::router) async fn ask_for(&self, ask: &Ask, longer: Duration) -> Result<Reply, Fault> {
        let time = self.times.answer.saturating_add(longer);
        self.twice(|| self.deliver(self.request(ask), time)).await
    }

    /// The answer to a request as it begins; the rest comes later. One that is not known to answer is not asked.
    pub(in crate::router) async fn open(&self, ask: &Ask) -> Result<Response, Fault> {
        self.twice(|| async {
            self.check_up()?;
            self.bounded(self.times.answer, self.send(self.request(ask))).await
        })
        .await
    }

    /// The whole answer to a request that is made once.
    pub(in crate::router) async fn deliver(&self, request: RequestBuilder, time: Duration) -> Result<Reply, Fault> {
        self.check_up()?;
        let whole = async {
            let response = self.send(request).await?;
            Reply::read(response).await.map_err(Fault::Broken)
        };
        self.bounded(time, whole).await
    }

    async fn twice<T, F: Future<Output = Result<T, Fault>>>(&self, attempt: impl Fn() -> F) -> Result<T, Fault> {
        match attempt().await {
            Err(fault @ Fault::Broken(_)) => warn!(server = &*self.name, %fault, "a request is made again"),
            answered => return answered,
        }
        self.state.note_retry();
        match attempt().await {
            // The first attempt may have arrived.
            Err(Fault::NotSent(fault)) => Err(Fault::Broken(fault)),
            answered => answered,
        }
    }

    /// A request below `/api/v1`.
    pub(in crate::router) fn request_to(&self, method: Method, path: &str, headers: HeaderMap) -> RequestBuilder {
        self.http
            .request(method, format!("{}/api/v1{path}", self.url))
            .headers(headers)
    }

    fn request(&self, ask: &Ask) -> RequestBuilder {
        let request = self.request_to(ask.method.clone(), &ask.path, ask.headers.clone());
        match ask.body.is_empty() {
            true => request,
            false => request.body(ask.body.clone()),
        }
    }

    fn check_up(&self) -> Result<(), Fault> {
        let view = self.view();
        match view.is_up {
            true => Ok(()),
            false => Err(Fault::NotSent(
                view.fault.unwrap_or_else(|| "nothing was heard of it yet".to_owned()),
            )),
        }
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Fault> {
        request.send().await.map_err(|error| {
            let is_connect = error.is_connect();
            let text = with_causes(&error.without_url());
            match is_connect {
                true => {
                    self.note(Err(text.clone()));
                    Fault::NotSent(text)
                }
                false => Fault::Broken(text),
            }
        })
    }

    /// Waits for an answer so long, and no longer than the server gives any.
    async fn bounded<T>(&self, time: Duration, answer: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        tokio::select! {
            answered = timeout(time, answer) => {
                answered.unwrap_or_else(|_| Err(Fault::Silent(format!("no answer in {time:?}"))))
            }
            () = self.until_down() => Err(Fault::Silent("it gives no answers any more".to_owned())),
        }
    }

    async fn until_down(&self) {
        // What is under way just then often says more.
        const LATER: Duration = Duration::from_millis(100);
        self.state.until_down().await;
        tokio::time::sleep(LATER).await;
    }
}
