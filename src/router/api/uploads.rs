//! Uploads: each is kept by all servers that answer, so that any of them may get a job that reads it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Json;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::future::join_all;
use http_body::{Frame, SizeHint};
use reqwest::Method;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;

use super::refused::internal;
use super::types::SpreadUpload;
use super::{App, Refused, distinct, headers_for, is_id};
use crate::router::caller::caller;
use crate::router::config::RouterConfig;
use crate::router::holders::{Answers, ask_all};
use crate::router::servers::{Ask, Reply};
use crate::service::api::body::LimitedBody;
use crate::service::api::caller::{may_submit, must_be_admin};
use crate::service::api::jobs::id_of;
use crate::service::api::types::UploadAnswer;
use crate::service::api::{ApiError, ErrorBody};
use crate::service::{PlaceLimits, is_full};

/// Bytes that are read at once.
const PART_BYTES: usize = 256 << 10;
/// Parts that wait for a slow server.
const PARTS_KEPT: usize = 4;

/// Sends a folder as a tar file, plain or packed with gzip, to all servers.
///
/// Only regular files and folders are taken. The same content has the same id, whatever its times, owners and order in the file. It is
/// kept when one server takes it; `servers` says which have it, and jobs that read it go to these.
#[utoipa::path(
    post,
    path = "/uploads",
    tag = "uploads",
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 200, description = "The folder is kept", body = SpreadUpload),
        (status = 400, description = "The body is broken off", body = ErrorBody),
        (status = 401, description = "No valid key", body = ErrorBody),
        (status = 403, description = "The key may only read", body = ErrorBody),
        (status = 408, description = "The body came too slowly", body = ErrorBody),
        (status = 413, description = "The folder is too large", body = ErrorBody),
        (status = 422, description = "The archive has something that is not taken", body = ErrorBody),
        (status = 429, description = "Too many requests, or uploads at once", body = ErrorBody),
        (status = 507, description = "The disk of the router or of a server is full", body = ErrorBody),
    ),
    security(("key" = []))
)]
pub(super) async fn upload(
    State(app): State<App>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<SpreadUpload>, Refused> {
    let caller = caller(&app, &headers).await?;
    may_submit(caller.role)?;
    if app.stop.is_cancelled() {
        return Err(ApiError::stopping().into());
    }
    let setup = app.setup();
    let config = &setup.config;
    let mut body = LimitedBody::new(&headers, body, config.upload_bytes.bytes(), config.upload_time).await?;
    let limits = PlaceLimits {
        all: config.uploads_at_once,
        of_user: config.uploads_per_user,
    };
    let _place = body.checked(app.places.take(&caller.user, limits)).await?;
    let (file, length) = spool(config, body).await?;
    let file = Arc::new(file);
    let passed = headers_for(&headers, &["content-type"])?;
    let time = config.upload_time.saturating_add(config.answer_time);
    let sent = setup.up().into_iter().map(|server| {
        let (body, passed) = (FileBody::new(Arc::clone(&file), length), passed.clone());
        async move {
            let request = server.request_to(Method::POST, "/uploads", passed);
            let answer = server.deliver(request.body(reqwest::Body::wrap(body)), time).await;
            (server, answer)
        }
    });
    let mut answers = Answers {
        told: Vec::new(),
        silent: setup.down(),
    };
    for (server, answer) in join_all(sent).await {
        match answer {
            Ok(reply) => answers.told.push((server, reply)),
            Err(_) => answers.silent.push(Arc::clone(&server.name)),
        }
    }
    let took = answers.told.iter().filter(|(_, reply)| reply.status.is_success());
    let servers = distinct(took.map(|(server, _)| Arc::clone(&server.name)).collect());
    match answers.take_found().and_then(|(_, reply)| reply.json::<UploadAnswer>()) {
        Some(upload) => Ok(Json(SpreadUpload { upload, servers })),
        None => Err(answers.refusal(&app)),
    }
}

/// Writes a body into a file without a name, which goes with the router.
async fn spool(config: &RouterConfig, mut body: LimitedBody) -> Result<(File, u64), Refused> {
    let folder = config.spool_dir.clone().unwrap_or_else(std::env::temp_dir);
    let broken = |error: io::Error| {
        let fault = internal(&format!("an upload cannot be kept in {}: {error}", folder.display()));
        if is_full(&error) { ApiError::full_disk() } else { fault }
    };
    let file = tempfile::tempfile_in(&folder).map_err(broken)?;
    let mut writer = tokio::fs::File::from_std(file.try_clone().map_err(broken)?);
    let mut length = 0;
    while let Some(part) = body.part().await? {
        let written = writer.write_all(&part).await.map_err(broken);
        body.checked(written).await?;
        length += part.len() as u64;
    }
    writer.flush().await.map_err(broken)?;
    Ok((file, length))
}

/// The content of a file as the body of a request.
struct FileBody {
    parts: mpsc::Receiver<io::Result<Bytes>>,
    left: u64,
}

impl FileBody {
    fn new(file: Arc<File>, length: u64) -> Self {
        let (parts, received) = mpsc::channel(PARTS_KEPT);
        tokio::task::spawn_blocking(move || read(&file, length, &parts));
        Self {
            parts: received,
            left: length,
        }
    }
}

/// Reads a file until its end, or until nobody wants more.
fn read(file: &File, length: u64, parts: &mpsc::Sender<io::Result<Bytes>>) {
    let mut offset = 0;
    while offset < length {
        let mut part = vec![0; PART_BYTES];
        let read = match file.read_at(&mut part, offset) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                part.truncate(n);
                offset += n as u64;
                Ok(Bytes::from(part))
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let is_broken = read.is_err();
        if parts.blocking_send(read).is_err() || is_broken {
            return;
        }
    }
}

impl HttpBody for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.parts.poll_recv(context).map(|part| {
            let part = part?;
            if let Ok(bytes) = &part {
                self.left = self.left.saturating_sub(bytes.len() as u64);
            }
            Some(part.map(Frame::data))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// Shows an upload.
pub(super) async fn show(
    State(app): State<App>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let ask = ask_of(&app, path, &headers, Method::GET).await?;
    let mut answers = ask_all(&app.setup(), &ask).await;
    match answers.take_found() {
        Some((_, reply)) => Ok(reply.into_response()),
        None => Err(answers.refusal(&app)),
    }
}

/// Removes an upload from all servers. The answer is that of one that had it; a server that does not answer may have it still, and
/// then the client is told so.
pub(super) async fn remove(
    State(app): State<App>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    must_be_admin(caller(&app, &headers).await?.role)?;
    let ask = ask_of(&app, path, &headers, Method::DELETE).await?;
    let mut answers = ask_all(&app.setup(), &ask).await;
    let has_all = answers.silent.is_empty();
    let is_refused = |reply: &Reply| !reply.status.is_success() && !reply.is_missing();
    if has_all
        && !answers.told.iter().any(|(_, reply)| is_refused(reply))
        && let Some((_, reply)) = answers.take_found()
    {
        return Ok(reply.into_response());
    }
    answers.told.retain(|(_, reply)| !reply.status.is_success());
    Err(answers.refusal(&app))
}

/// The question about an upload, for all servers.
async fn ask_of(
    app: &App,
    path: Result<Path<String>, PathRejection>,
    headers: &HeaderMap,
    method: Method,
) -> Result<Ask, Refused> {
    let id = id_of(path);
    let plain = id.as_ref().ok().filter(|id| is_id(id));
    let Some(plain) = plain else {
        caller(app, headers).await?;
        return Err(no_upload(&id?).into());
    };
    Ok(Ask {
        method,
        path: format!("/uploads/{plain}"),
        headers: headers_for(headers, &[])?,
        body: Bytes::new(),
    })
}

fn no_upload(id: &str) -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "unknown_upload",
        format!("there is no upload '{id}'"),
        "send the folder to POST /api/v1/uploads",
    )
}
