//! What a client is told when something is wrong: by the router itself, or by a server.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tracing::error;

use crate::router::servers::Reply;
use crate::service::api::ApiError;

/// Time after which a server may answer again.
const COME_AGAIN: Duration = Duration::from_secs(2);

/// An answer that says what is wrong.
#[derive(Debug)]
pub(in crate::router) enum Refused {
    /// The router says so.
    Own(ApiError),
    /// A server said so.
    Passed(Box<Reply>),
}

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        Self::Own(error)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        match self {
            Self::Own(error) => error.into_response(),
            Self::Passed(reply) => reply.into_response(),
        }
    }
}

/// Servers do not answer, and without them it cannot be said.
pub(super) fn unreachable(names: &[Arc<str>]) -> ApiError {
    let message = match names {
        [] => "no server answers".to_owned(),
        [name] => format!("server {name} does not answer"),
        names => format!("servers {} do not answer", names.join(", ")),
    };
    ApiError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "server_unreachable",
        message,
        "try again after Retry-After seconds; with the same idempotency key a job is handed in once",
    )
    .after(COME_AGAIN)
}

/// No server takes a job.
pub(in crate::router) fn no_server(reasons: &str) -> ApiError {
    ApiError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "no_server",
        format!("no server takes the job: {reasons}"),
        "try again after Retry-After seconds",
    )
    .after(COME_AGAIN)
}

/// A fault of the router: it is logged, and the client is told no more than that it may try again.
pub(super) fn internal(fault: &impl std::fmt::Display) -> ApiError {
    error!(error = %fault, "a request failed");
    ApiError::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal",
        "the router could not do this",
        "try again; the log of the router says what is wrong",
    )
}
