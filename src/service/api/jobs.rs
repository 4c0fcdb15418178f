//! Jobs: handing in, looking, listing, cancelling, waiting.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, timeout_at};
use utoipa::IntoParams;

use super::App;
use super::body::json;
use super::caller::may_submit;
use super::error::{ApiError, ErrorBody};
use super::job_body::JobBody;
use super::logs::{run_log_of, stored_logs};
use super::types::{Accepted, Job, JobList};
use crate::scheduler::sha256_hex;
use crate::service::access::{Caller, Role};
use crate::service::queue::{Class, DataRef, Filter, JobRecord, JobRequest, JobState, Submission, Submitted};
use crate::service::run::DataFault;

/// Header with the trace of a client.
pub const TRACE_HEADER: &str = "x-trace-id";
/// Header that says that a job is that of an earlier request.
pub const REPLAY_HEADER: &str = "idempotent-replay";
/// Jobs of a page.
pub const USUAL_PAGE: u32 = 50;
const LARGEST_PAGE: u32 = 500;
/// Longest wait of one request.
const LONGEST_WAIT: f64 = 600.0;
const USUAL_WAIT: f64 = 60.0;
/// Time after which a full queue may have room again.
const FULL_PAUSE: Duration = Duration::from_secs(5);
/// Time after which somebody who waits looks itself, in case another process ended the job.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Hands a job in.
#[utoipa::path(
    post,
    path = "/jobs",
    tag = "jobs",
    request_body = JobBody,
    params(("X-Trace-ID" = Option<String>, Header, description = "Kept with the job; the program finds it in TRACE_ID.")),
    responses(
        (status = 200, description = "The job is kept", body = Accepted),
        (status = 400, description = "The body is no JSON", body = ErrorBody),
        (status = 401, description = "No valid key", body = ErrorBody),
        (status = 403, description = "The key may only read", body = ErrorBody),
        (status = 408, description = "The body came too slowly", body = ErrorBody),
        (status = 409, description = "The idempotency key was used for another request", body = ErrorBody),
        (status = 413, description = "The body is too large", body = ErrorBody),
        (status = 415, description = "The body is not application/json", body = ErrorBody),
        (status = 422, description = "A field is wrong", body = ErrorBody),
        (status = 429, description = "Too many requests or jobs", body = ErrorBody),
        (status = 503, description = "The server is stopping", body = ErrorBody),
    ),
    security(("key" = []))
)]
pub async fn submit(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let (accepted, is_replay) = take(&app, &caller, &headers, body).await?;
    let mut response = Json(accepted).into_response();
    mark_replay(&mut response, is_replay);
    Ok(response)
}

fn mark_replay(response: &mut Response, is_replay: bool) {
    if is_replay {
        response
            .headers_mut()
            .insert(REPLAY_HEADER, HeaderValue::from_static("true"));
    }
}

/// How long is waited.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WaitQuery {
    /// Longest wait in seconds [default: 60].
    #[param(minimum = 0, maximum = 600)]
    timeout_s: Option<f64>,
}

impl WaitQuery {
    /// How long is waited.
    ///
    /// # Errors
    /// When it is too long, or none.
    pub fn time(&self) -> Result<Duration, ApiError> {
        let seconds = self.timeout_s.unwrap_or(USUAL_WAIT);
        if !(0.0..=LONGEST_WAIT).contains(&seconds) {
            return Err(ApiError::parameter(format!(
                "timeout_s must be from 0 to {LONGEST_WAIT}, not {seconds}"
            )));
        }
        Ok(Duration::from_secs_f64(seconds))
    }
}

/// Hands a job in and waits for its end.
///
/// The answer is the job: with 200 when it has ended, with 202 when it has not. The job goes on when the client goes away.
#[utoipa::path(
    post,
    path = "/jobs/submit_and_wait",
    tag = "jobs",
    request_body = JobBody,
    params(WaitQuery, ("X-Trace-ID" = Option<String>, Header, description = "Kept with the job.")),
    responses(
        (status = 200, description = "The job has ended", body = Job),
        (status = 202, description = "The job has not ended yet", body = Job),
        (status = 400, description = "The body is no JSON, or a parameter is wrong", body = ErrorBody),
        (status = 401, description = "No valid key", body = ErrorBody),
        (status = 403, description = "The key may only read", body = ErrorBody),
        (status = 408, description = "The body came too slowly", body = ErrorBody),
        (status = 409, description = "The idempotency key was used for another request", body = ErrorBody),
        (status = 413, description = "The body is too large", body = ErrorBody),
        (status = 415, description = "The body is not application/json", body = ErrorBody),
        (status = 422, description = "A field is wrong", body = ErrorBody),
        (status = 429, description = "Too many requests or jobs", body = ErrorBody),
        (status = 503, description = "The server is stopping", body = ErrorBody),
    ),
    security(("key" = []))
)]
pub async fn submit_and_wait(
    State(app): State<App>,
    caller: Caller,
    query: Result<Query<WaitQuery>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let Query(query) = query.map_err(|error| ApiError::parameter(error.body_text()))?;
    let deadline = Instant::now() + query.time()?;
    // Asked before the job is there, so that its end is not missed.
    let mut ends = app.queue.ends();
    let (accepted, is_replay) = take(&app, &caller, &headers, body).await?;
    let job_id = accepted.job_id;
    let record = loop {
        let record = own_job(&app, &caller, &job_id).await?;
        if record.state.is_end() || Instant::now() >= deadline || app.stop.is_cancelled() {
            break record;
        }
        let look_again = deadline.min(Instant::now() + LOOK_AGAIN);
        let told = async {
            loop {
                match ends.recv().await {
                    Ok(ended) if *ended == *job_id => return,
                    Ok(_) => {}
                    Err(RecvError::Lagged(_) | RecvError::Closed) => return,
                }
            }
        };
        tokio::select! {
            _ = timeout_at(look_again, told) => {}
            () = app.stop.cancelled() => {}
        }
    };
    let status = match record.state.is_end() {
        true => StatusCode::OK,
        false => StatusCode::ACCEPTED,
    };
    let mut response = (status, Json(whole(&app, record).await?)).into_response();
    mark_replay(&mut response, is_replay);
    Ok(response)
}

/// Takes a request for a job; the flag says whether it was made before.
async fn take(app: &App, caller: &Caller, headers: &HeaderMap, body: Body) -> Result<(Accepted, bool), ApiError> {
    may_submit(caller.role)?;
    let service = &app.config;
    let value = json(headers, body, service.body_size.bytes(), service.body_time()).await?;
    if app.queue.is_closed() {
        return Err(ApiError::stopping());
    }
    let body = JobBody::read(value, service.max_job_seconds)?;
    let trace_id = trace(headers)?;
    let resource_type = body.resource_type.unwrap_or(Class::Cpu);
    let class = match resource_type {
        Class::Gpu if service.gpu_as_cpu => Class::Cpu,
        Class::Gpu if service.gpu_workers == 0 && !app.fleet.serves(Class::Gpu) => {
            return Err(ApiError::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "no_gpu",
                "field 'resource_type': no worker of this server has a GPU",
                "ask for 'cpu', or set service.gpu_as_cpu where jobs that ask for a GPU run well without one",
            ));
        }
        class => class,
    };
    // Until the job is in the queue: an upload that nobody needs may be removed.
    let _uploads = app.uploads.hold().await;
    let data = app.data.resolve(&body.data_dir, body.eval_split.as_deref()).await?;
    let data = data.map_err(|fault| match fault {
        DataFault::Split(problem) => ApiError::field("eval_split", problem),
        DataFault::Name(problem) | DataFault::Unknown(problem) => ApiError::field("data_dir", problem),
    })?;
    let output = body.output();
    if output.is_some() && matches!(data, DataRef::Task { .. }) {
        return Err(ApiError::field(
            if body.output_name.is_some() {
                "output_name"
            } else {
                "output_is_folder"
            },
            "the package of the task says what a program must write: leave it out",
        ));
    }
    let request = JobRequest {
        key_id: caller.key_id.clone(),
        name: body.name,
        data_dir: body.data_dir,
        data,
        eval_split: body.eval_split,
        timeout: body.timeout.unwrap_or(app.usual_seconds),
        resource_type,
        class,
        priority: body.priority,
        environment: body.environment,
        idempotency_key: body.idempotency_key,
        trace_id,
        code_hash: sha256_hex(body.code.as_bytes()),
        running_limit: caller.running_limit,
        output,
    };
    let submitted = app.queue.submit(Submission {
        user: caller.user.clone(),
        request,
        code: body.code,
        queued_limit: caller.queued_limit,
    });
    let full = |message: String| {
        ApiError::new(
            StatusCode::TOO_MANY_REQUESTS,
            "queue_full",
            message,
            "try again after Retry-After seconds, or cancel jobs that are not needed",
        )
        .after(FULL_PAUSE)
    };
    match submitted.await? {
        Submitted::New { job_id } => Ok((
            Accepted {
                job_id,
                status: JobState::Queued,
            },
            false,
        )),
        Submitted::Replayed { job_id, state } => Ok((Accepted { job_id, status: state }, true)),
        Submitted::Conflict { job_id } => Err(ApiError::new(
            StatusCode::CONFLICT,
            "idempotency_conflict",
            format!("the idempotency key was used for another request, which became job {job_id}"),
            "use a new key for a new request; the same key needs the very same request",
        )),
        Submitted::QueueFull { limit } => Err(full(format!("the queue is full: {limit} jobs wait"))),
        Submitted::UserFull { limit } => Err(full(format!("{limit} of your jobs wait, which is all that may"))),
    }
}

fn trace(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    const MOST: usize = 256;
    let Some(trace) = headers.get(TRACE_HEADER) else {
        return Ok(None);
    };
    match trace.to_str() {
        Ok("") => Ok(None),
        Ok(trace) if trace.len() <= MOST => Ok(Some(trace.to_owned())),
        _ => Err(ApiError::parameter(format!(
            "the header X-Trace-ID must be printable ASCII of at most {MOST} characters"
        ))),
    }
}

/// A job that the caller may see.
///
/// # Errors
/// When there is none.
pub async fn own_job(app: &App, caller: &Caller, job_id: &str) -> Result<JobRecord, ApiError> {
    match app.queue.find(job_id).await? {
        Some(record) if caller.may_see(&record.user) => Ok(record),
        _ => Err(ApiError::no_job(job_id)),
    }
}

/// The id of a path.
///
/// # Errors
/// When it is none.
pub fn id_of(path: Result<Path<String>, PathRejection>) -> Result<String, ApiError> {
    match path {
        Ok(Path(id)) => Ok(id),
        Err(error) => Err(ApiError::parameter(error.body_text())),
    }
}

/// The answer about a job with its log.
async fn whole(app: &App, record: JobRecord) -> Result<Job, ApiError> {
    let run_log = match record.state.is_end() && record.result.is_some() {
        true => Some(run_log_of(&stored_logs(app, &record.job_id).await?)),
        false => None,
    };
    Ok(Job::new(record, run_log))
}

/// Shows a job.
#[utoipa::path(
    get,
    path = "/jobs/{id}",
    tag = "jobs",
    params(("id" = String, Path, description = "Job")),
    responses(
        (status = 200, description = "The job", body = Job),
        (status = 400, description = "The path is wrong", body = ErrorBody),
        (status = 401, description = "No valid key", body = ErrorBody),
        (status = 404, description = "There is no such job", body = ErrorBody),
        (status = 429, description = "Too many requests", body = ErrorBody),
    ),
    security(("key" = []))
)]
pub async fn show(
    State(app): State<App>,
    caller: Caller,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, ApiError> {
    let record = own_job(&app, &caller, &id_of(path)?).await?;
    let trace = record.request.trace_id.clone();
    let mut response = Json(whole(&app, record).await?).into_response();
    if let Some(trace) = trace.and_then(|trace| HeaderValue::from_str(&trace).ok()) {
        response.headers_mut().insert(TRACE_HEADER, trace);
    }
    Ok(response)
}

/// Which jobs are listed.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// queued, running, completed, failed or cancelled.
    #[param(pattern = "^(queued|running|completed|failed|cancelled)$")]
    status: Option<String>,
    /// Name of the job.
    name: Option<String>,
    /// User; only admins may name another than themselves.
    user: Option<String>,
    /// Jobs of a page [default: 50].
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
    /// The job of an idempotency key. Keys belong to users: it is one of the caller's, also where an admin names no user.
    idempotency_key: Option<String>,
    /// next_cursor of the page before.
    cursor: Option<String>,
}

impl ListQuery {
    /// Jobs of a page.
    ///
    /// # Errors
    /// When it is too many, or none.
    pub fn page(&self) -> Result<u32, ApiError> {
        let limit = self.limit.unwrap_or(USUAL_PAGE);
        if !(1..=LARGEST_PAGE).contains(&limit) {
            return Err(ApiError::parameter(format!(
                "limit must be from 1 to {LARGEST_PAGE}, not {limit}"
            )));
        }
        Ok(limit)
    }
}

/// Lists jobs, the newest first.
#[utoipa::path(
    get,
    path = "/jobs",
    tag = "jobs",
    params(ListQuery),
    responses(
        (status = 200, description = "A page of jobs", body = JobList),
        (status = 400, description = "A parameter is wrong", body = ErrorBody),
        (status = 401, description = "No valid key", body = ErrorBody),
        (status = 403, description = "The user is another", body = ErrorBody),
        (status = 429, description = "Too many requests", body = ErrorBody),
    ),
    security(("key" = []))
)]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<JobList>, ApiError> {
    let Query(query) = query.map_err(|error| ApiError::parameter(error.body_text()))?;
    let limit = query.page()?;
    let state = match query.status.as_deref() {
        None => None,
        Some(name) => Some(JobState::parse(name).ok_or_else(|| {
            ApiError::parameter(format!(
                "status must be queued, running, completed, failed or cancelled, not '{name}'"
            ))
        })?),
    };
    let user = match (query.user, caller.role) {
        (Some(user), Role::Admin) => Some(user),
        (None, Role::Admin) if query.idempotency_key.is_none() => None,
        (None, _) => Some(caller.user.clone()),
        (Some(user), _) if user == caller.user => Some(user),
        (Some(_), _) => {
            return Err(ApiError::new(
                StatusCode::FORBIDDEN,
                "forbidden",
                "only admins see the jobs of other users",
                "leave 'user' out",
            ));
        }
    };
    let before = query.cursor.as_deref().map(read_cursor).transpose()?;
    let mut records = app
        .queue
        .list(Filter {
            user,
            state,
            name: query.name,
            idempotency_key: query.idempotency_key,
            before,
            limit: limit + 1,
        })
        .await?;
    let is_more = records.len() > limit as usize;
    records.truncate(limit as usize);
    let next_cursor = records
        .last()
        .filter(|_| is_more)
        .map(|last| cursor_after(&last.job_id));
    Ok(Json(JobList {
        jobs: records.into_iter().map(|record| Job::new(record, None)).collect(),
        next_cursor,
    }))
}

/// The cursor of the page that begins after a job.
pub fn cursor_after(job_id: &str) -> String {
    URL_SAFE_NO_PAD.encode(job_id)
}

fn read_cursor(cursor: &str) -> Result<String, ApiError> {
    URL_SAFE_NO_PAD
        .decode(cursor)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| ApiError::parameter("cursor must be the next_cursor of a page"))
}

/// Cancels a job.
///
/// One that waits is cancelled at once, one that runs as soon as its program is stopped. Nothing happens to one that has ended.
#[utoipa::path(
    delete,
    path = "/jobs/{id}",
    tag = "jobs",
    params(("id" = String, Path, description = "Job")),
    responses(
        (status = 202, description = "It is cancelled, or had ended before", body = Accepted),
        (status = 400, description = "The path is wrong", body = ErrorBody),
        (status = 401, description = "No valid key", body = ErrorBody),
        (status = 403, description = "The key may only read", body = ErrorBody),
        (status = 404, description = "There is no such job", body = ErrorBody),
        (status = 429, description = "Too many requests", body = ErrorBody),
    ),
    security(("key" = []))
)]
pub async fn cancel(
    State(app): State<App>,
    caller: Caller,
    path: Result<Path<String>, PathRejection>,
) -> Result<(StatusCode, Json<Accepted>), ApiError> {
    may_submit(caller.role)?;
    let record = own_job(&app, &caller, &id_of(path)?).await?;
    let status = app.queue.cancel(&record).await?;
    let accepted = Accepted {
        job_id: record.job_id,
        status,
    };
    Ok((StatusCode::ACCEPTED, Json(accepted)))
}
