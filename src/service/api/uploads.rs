//! Uploads: data folders that jobs name by their hash.

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};

use super::App;
use super::body::LimitedBody;
use super::caller::{may_submit, must_be_admin};
use super::error::{ApiError, ErrorBody};
use super::jobs::id_of;
use super::types::UploadAnswer;
use crate::service::access::Caller;
use crate::service::uploads::{PlaceLimits, UPLOAD_PREFIX, UploadFault};

/// Sends a folder as a tar file, plain or packed with gzip.
///
/// Only regular files and folders are taken. The same content has the same id, whatever its times, owners and order in the file.
#[utoipa::path(
    post,
    path = "/uploads",
    tag = "uploads",
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 200, description = "The folder is kept", body = UploadAnswer),
        (status = 400, description = "The body is broken off", body = ErrorBody),
        (status = 401, description = "No valid key", body = ErrorBody),
        (status = 403, description = "The key may only read", body = ErrorBody),
        (status = 408, description = "The body came too slowly", body = ErrorBody),
        (status = 413, description = "The folder is too large", body = ErrorBody),
        (status = 422, description = "The archive has something that is not taken", body = ErrorBody),
        (status = 429, description = "Too many requests, or uploads at once", body = ErrorBody),
        (status = 503, description = "The server is stopping", body = ErrorBody),
        (status = 507, description = "The disk of the server is full", body = ErrorBody),
    ),
    security(("key" = []))
)]
pub async fn upload(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<UploadAnswer>, ApiError> {
    may_submit(caller.role)?;
    if app.queue.is_closed() {
        return Err(ApiError::stopping());
    }
    let limit = app.uploads.limits().bytes;
    let mut body = LimitedBody::new(&headers, body, limit, app.config.upload_time()).await?;
    let limits = PlaceLimits {
        all: app.config.uploads_at_once,
        of_user: app.config.uploads_per_user,
    };
    let place = body.checked(app.places.take(&caller.user, limits)).await?;
    let mut incoming = app.uploads.incoming(place).await?;
    while let Some(part) = body.part().await? {
        let written = incoming.write(&part).await;
        body.checked(written).await?;
    }
    incoming.end().await?;
    let kept = app.uploads.keep(incoming, app.services.now()).await?;
    let refused = |status, code, fault: &UploadFault| {
        ApiError::new(
            status,
            code,
            fault.to_string(),
            "pack regular files and folders with relative names; docs/service.md has the limits",
        )
    };
    match kept {
        Ok(upload) => Ok(Json(upload.into())),
        Err(fault @ UploadFault::TooLarge(_)) => {
            Err(refused(StatusCode::PAYLOAD_TOO_LARGE, "upload_too_large", &fault))
        }
        Err(fault @ UploadFault::Full(_)) => Err(refused(StatusCode::PAYLOAD_TOO_LARGE, "uploads_full", &fault)),
        Err(fault @ UploadFault::Invalid(_)) => {
            Err(refused(StatusCode::UNPROCESSABLE_ENTITY, "invalid_upload", &fault))
        }
    }
}

/// Shows an upload.
#[utoipa::path(
    get,
    path = "/uploads/{id}",
    tag = "uploads",
    params(("id" = String, Path, description = "Upload: sha256:... or the hash alone")),
    responses(
        (status = 200, description = "The upload", body = UploadAnswer),
        (status = 400, description = "The path is wrong", body = ErrorBody),
        (status = 401, description = "No valid key", body = ErrorBody),
        (status = 404, description = "There is no such upload", body = ErrorBody),
        (status = 429, description = "Too many requests", body = ErrorBody),
    ),
    security(("key" = []))
)]
pub async fn show(
    State(app): State<App>,
    _caller: Caller,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<UploadAnswer>, ApiError> {
    let id = id_of(path)?;
    let hash = id.strip_prefix(UPLOAD_PREFIX).unwrap_or(&id);
    let upload = app.uploads.find(hash).await?.ok_or_else(|| unknown(&id))?;
    Ok(Json(upload.into()))
}

fn unknown(id: &str) -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "unknown_upload",
        format!("there is no upload '{id}'"),
        "send the folder to POST /api/v1/uploads",
    )
}

/// Removes an upload that no waiting or running job needs.
///
/// Uploads belong to all users, so only admins may. The answer is the upload that was removed.
#[utoipa::path(
    delete,
    path = "/uploads/{id}",
    tag = "uploads",
    params(("id" = String, Path, description = "Upload: sha256:... or the hash alone")),
    responses(
        (status = 200, description = "It is removed", body = UploadAnswer),
        (status = 400, description = "The path is wrong", body = ErrorBody),
        (status = 401, description = "No valid key", body = ErrorBody),
        (status = 403, description = "The key is no admin's", body = ErrorBody),
        (status = 404, description = "There is no such upload", body = ErrorBody),
        (status = 409, description = "A job needs it", body = ErrorBody),
        (status = 429, description = "Too many requests", body = ErrorBody),
    ),
    security(("key" = []))
)]
pub async fn remove(
    State(app): State<App>,
    caller: Caller,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<UploadAnswer>, ApiError> {
    must_be_admin(caller.role)?;
    let id = id_of(path)?;
    let hash = id.strip_prefix(UPLOAD_PREFIX).unwrap_or(&id);
    // No job comes in between.
    let alone = app.uploads.alone().await;
    let upload = app.uploads.find(hash).await?.ok_or_else(|| unknown(&id))?;
    if app.queue.needs_upload(hash).await? {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "upload_in_use",
            format!("a job that waits or runs needs the upload '{id}'"),
            "cancel the jobs that need it, or wait for their end",
        ));
    }
    app.uploads.remove(&upload).await?;
    drop(alone);
    Ok(Json(upload.into()))
}
