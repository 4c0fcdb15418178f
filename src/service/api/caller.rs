//! The key of a request.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};

use super::error::ApiError;
use super::{App, PREFIX};
use crate::service::access::{Caller, Denied, Role};

/// Header of the published clients.
pub const KEY_HEADER: &str = "x-api-key";
/// What is said of a request without a key.
pub const NO_KEY: &str = "the request has no API key";

impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let Some(key) = key_of(&parts.headers) else {
            return Err(unauthorized(NO_KEY));
        };
        match app.access.caller(key).await {
            Ok(caller) if caller.role == Role::Worker && !is_for_workers(parts.uri.path()) => Err(ApiError::new(
                StatusCode::FORBIDDEN,
                "forbidden",
                "a key with the role worker opens nothing but the routes of workers",
                "use a key with the role read or submit",
            )),
            Ok(caller) => Ok(caller),
            Err(Denied::WrongKey) => Err(unauthorized("the API key is unknown, wrong or revoked")),
            Err(Denied::TooMany(wait)) => Err(ApiError::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_requests",
                "the key makes more requests in a minute than it may",
                "try again after Retry-After seconds",
            )
            .after(wait)),
            Err(Denied::Fault(fault)) => Err(fault.into()),
        }
    }
}

fn is_for_workers(path: &str) -> bool {
    // Nested routes see their path without the prefix.
    path.strip_prefix(PREFIX).unwrap_or(path).starts_with("/workers/")
}

/// The key that a request sends.
pub fn key_of(headers: &HeaderMap) -> Option<&str> {
    if let Some(key) = headers.get(KEY_HEADER) {
        return key.to_str().ok().map(str::trim);
    }
    let (scheme, key) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
}

/// A request without a key that is good.
pub fn unauthorized(message: &'static str) -> ApiError {
    ApiError::new(
        StatusCode::UNAUTHORIZED,
        "unauthorized",
        message,
        "send the header X-API-Key, or Authorization: Bearer; `clade key create` makes keys",
    )
}

/// A role that may change something.
///
/// # Errors
/// When it may only read.
pub fn may_submit(role: Role) -> Result<(), ApiError> {
    if role >= Role::Submit {
        return Ok(());
    }
    Err(ApiError::new(
        StatusCode::FORBIDDEN,
        "forbidden",
        format!("a key with the role {role} can only read"),
        "use a key with the role submit",
    ))
}

/// A caller that may run jobs.
///
/// # Errors
/// When its role is another.
pub fn may_work(caller: &Caller) -> Result<(), ApiError> {
    if matches!(caller.role, Role::Worker | Role::Admin) {
        return Ok(());
    }
    Err(ApiError::new(
        StatusCode::FORBIDDEN,
        "forbidden",
        format!("a key with the role {} cannot run jobs", caller.role),
        "use a key with the role worker: `clade key create NAME --role worker`",
    ))
}

/// A role that may say what servers and workers do.
///
/// # Errors
/// When it is no admin.
pub fn must_be_admin(role: Role) -> Result<(), ApiError> {
    if role == Role::Admin {
        return Ok(());
    }
    Err(ApiError::new(
        StatusCode::FORBIDDEN,
        "forbidden",
        format!("a key with the role {role} cannot do this"),
        "use a key with the role admin",
    ))
}
