//! What a client is told when something is wrong: `{"error": {"code", "message", "advice"}}`, whatever it was.

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tracing::error;
use utoipa::ToSchema;

use crate::service::error::ServiceError;
use crate::service::uploads::NoPlace;

/// Time after which an upload may have a place.
const PLACE_PAUSE: Duration = Duration::from_secs(2);

/// An answer that says what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    advice: &'static str,
    retry_after: Option<u64>,
}

/// Body of an answer that says what is wrong.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorBody {
    /// What is wrong.
    pub error: ErrorDetail,
}

/// What is wrong.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorDetail {
    /// Short name for programs.
    pub code: &'static str,
    /// What is wrong, for people.
    pub message: String,
    /// What to do about it.
    pub advice: &'static str,
}

impl ApiError {
    /// An error of a status.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>, advice: &'static str) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            advice,
            retry_after: None,
        }
    }

    /// The same, with the time after which trying again may help.
    pub fn after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait.as_secs_f64().ceil().max(1.0) as u64);
        self
    }

    /// The same, with more about it.
    pub fn about(mut self, more: impl std::fmt::Display) -> Self {
        self.message = format!("{}: {more}", self.message);
        self
    }

    /// A field of the request is wrong.
    pub fn field(name: &str, problem: impl std::fmt::Display) -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid_field",
            format!("field '{name}': {problem}"),
            "GET /api/v1/openapi.json describes the fields",
        )
    }

    /// A parameter of the address is wrong.
    pub fn parameter(problem: impl std::fmt::Display) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "invalid_parameter",
            problem.to_string(),
            "GET /api/v1/openapi.json describes the parameters",
        )
    }

    /// There is no such job, or the caller may not know of it.
    pub fn no_job(job_id: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "unknown_job",
            format!("there is no job '{job_id}' of yours"),
            "GET /api/v1/jobs lists your jobs",
        )
    }

    /// The server is about to end.
    pub fn stopping() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "stopping",
            "the server is stopping and takes no more jobs",
            "try again after Retry-After seconds; jobs that were taken are kept",
        )
        .after(Duration::from_secs(5))
    }

    /// There is no room for what was sent.
    pub fn full_disk() -> Self {
        Self::new(
            StatusCode::INSUFFICIENT_STORAGE,
            "disk_full",
            "the disk of the server is full; nothing was kept",
            "try again when whoever runs the server has made room",
        )
    }

    /// The body has more bytes than are taken.
    pub fn too_large(limit: u64) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_too_large",
            format!("the body has more than {limit} bytes"),
            "send data with POST /api/v1/uploads; the configuration has the limits of bodies and uploads",
        )
    }
}

impl From<ServiceError> for ApiError {
    /// A fault of ours: it is logged, and the client is told no more than that it may try again.
    fn from(fault: ServiceError) -> Self {
        error!(error = %fault, "a request failed");
        if fault.is_full_disk() {
            return Self::full_disk();
        }
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "the server could not do this",
            "try again; the log of the server says what is wrong",
        )
    }
}

impl From<NoPlace> for ApiError {
    fn from(fault: NoPlace) -> Self {
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too_many_uploads",
            fault.to_string(),
            "try again after Retry-After seconds; uploads_at_once and uploads_per_user of the configuration are the limits",
        )
        .after(PLACE_PAUSE)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = ErrorBody {
            error: ErrorDetail {
                code: self.code,
                message: self.message,
                advice: self.advice,
            },
        };
        let mut response = (self.status, Json(body)).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        match self.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            // What is left of the body is not read, so nothing more can come on this connection.
            StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT => {
                headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            _ => {}
        }
        response
    }
}
