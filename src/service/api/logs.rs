//! Logs of a job: a range of bytes, or all of it as it comes.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use datafusion::common::ScalarValue;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use utoipa::{IntoParams, ToSchema};

use super::App;
use super::error::{ApiError, ErrorBody};
use super::jobs::{id_of, own_job};
use crate::sandbox::LogStream;
use crate::service::access::Caller;
use crate::service::error::{Result, ServiceError};
use crate::service::queue::JobState;
use crate::service::run::{LogPiece, run_log};
use crate::session::ResultRow;

/// Bytes of one answer.
const USUAL_BYTES: usize = 64 << 10;
const MOST_BYTES: usize = 1 << 20;
/// Time between two looks at a job that waits.
const LOOK_AGAIN: Duration = Duration::from_millis(300);
/// Events that wait for a slow reader.
const EVENTS_KEPT: usize = 16;

/// Logs of a job that ended.
#[derive(Debug, Default)]
pub struct StoredLogs {
    outputs: [Vec<u8>; 2],
}

impl StoredLogs {
    fn piece(&self, stream: LogStream, offset: u64, most: usize) -> LogPiece {
        let all = &self.outputs[stream.index()];
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(all.len());
        let end = all.len().min(start.saturating_add(most));
        LogPiece {
            offset: start as u64,
            bytes: all[start..end].to_vec(),
            total: all.len() as u64,
        }
    }
}

/// The logs of a job that ended, as its row keeps them; none where no program ran.
///
/// # Errors
/// When the store fails.
pub async fn stored_logs(app: &App, job_id: &str) -> Result<StoredLogs> {
    const LOGS: &str = "SELECT stdout_head, stdout_tail, stdout_hash, stderr_head, stderr_tail, stderr_hash
         FROM sandbox.jobs WHERE job_id = $job";
    let rows = app
        .queries
        .rows(LOGS, &[("job", ScalarValue::from(job_id))], None, None)
        .await
        .map_err(ServiceError::query("logs"))?;
    let Some(row) = rows.first() else {
        return Ok(StoredLogs::default());
    };
    let mut logs = StoredLogs::default();
    for stream in LogStream::BOTH {
        let (excerpt, hash) = excerpt(row, stream.as_str()).map_err(ServiceError::query("logs"))?;
        logs.outputs[stream.index()] = match hash {
            Some(hash) => app.store.get_blob(&hash).await?,
            None => excerpt.into_bytes(),
        };
    }
    Ok(logs)
}

fn excerpt(row: ResultRow<'_>, name: &str) -> datafusion::error::Result<(String, Option<String>)> {
    let mut text = row.text(&format!("{name}_head"))?;
    text.push_str(&row.text(&format!("{name}_tail"))?);
    Ok((text, row.optional_text(&format!("{name}_hash"))?))
}

/// The log of a result.
pub fn run_log_of(logs: &StoredLogs) -> String {
    let [stdout, stderr] = &logs.outputs;
    run_log(&String::from_utf8_lossy(stdout), &String::from_utf8_lossy(stderr))
}

/// Which part of which log.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct LogQuery {
    /// stdout or stderr [default: stdout].
    #[param(pattern = "^(stdout|stderr)$")]
    stream: Option<String>,
    /// First byte [default: 0].
    offset: Option<u64>,
    /// Most bytes of the answer [default: 65536].
    #[param(minimum = 1, maximum = 1_048_576)]
    limit: Option<usize>,
    /// Send server-sent events with what comes, until the job ends [default: false].
    follow: Option<bool>,
}

/// Data of an event named `log`.
#[derive(Debug, Serialize, ToSchema)]
pub struct LogEvent {
    /// stdout or stderr.
    pub stream: &'static str,
    /// Place of the first byte in the log.
    pub offset: u64,
    /// Place after the last byte; also the id of the event, with which a reader may begin again.
    pub next_offset: u64,
    /// The text; what is no UTF-8 is replaced.
    pub text: String,
}

/// Data of the event named `end`, the last one.
#[derive(Debug, Serialize, ToSchema)]
pub struct EndEvent {
    /// State of the job.
    pub status: JobState,
}

/// Gives a part of a log, or follows it.
///
/// The places of the answer are in headers: X-Log-Offset is where it begins (later than asked for where bytes in between are not
/// kept), X-Log-Next-Offset is what to ask for next, X-Log-Total counts the bytes so far, and X-Log-Complete says whether nothing more
/// will come. With follow=true the answer is a stream of server-sent events: `log` with {stream, offset, next_offset, text}, at last
/// `end` with {status}.
#[utoipa::path(
    get,
    path = "/jobs/{id}/logs",
    tag = "jobs",
    params(("id" = String, Path, description = "Job"), LogQuery),
    responses(
        (status = 200, description = "Bytes of the log, or events", content(
            (String = "text/plain"),
            (LogEvent = "text/event-stream"),
        )),
        (status = 400, description = "A parameter is wrong", body = ErrorBody),
        (status = 401, description = "No valid key", body = ErrorBody),
        (status = 404, description = "There is no such job", body = ErrorBody),
        (status = 429, description = "Too many requests", body = ErrorBody),
    ),
    security(("key" = []))
)]
pub async fn logs(
    State(app): State<App>,
    caller: Caller,
    path: std::result::Result<Path<String>, PathRejection>,
    query: std::result::Result<Query<LogQuery>, QueryRejection>,
    headers: HeaderMap,
) -> std::result::Result<Response, ApiError> {
    let job_id = id_of(path)?;
    let Query(query) = query.map_err(|error| ApiError::parameter(error.body_text()))?;
    let stream = match query.stream.as_deref() {
        None => LogStream::Stdout,
        Some(name) => LogStream::BOTH
            .into_iter()
            .find(|stream| stream.as_str() == name)
            .ok_or_else(|| ApiError::parameter(format!("stream must be stdout or stderr, not '{name}'")))?,
    };
    let most = query.limit.unwrap_or(USUAL_BYTES);
    if !(1..=MOST_BYTES).contains(&most) {
        return Err(ApiError::parameter(format!(
            "limit must be from 1 to {MOST_BYTES}, not {most}"
        )));
    }
    let job = own_job(&app, &caller, &job_id).await?;
    let offset = query.offset.unwrap_or(0);
    if query.follow.unwrap_or(false) {
        let seen = headers
            .get("last-event-id")
            .and_then(|id| id.to_str().ok()?.parse().ok());
        return Ok(follow(app, job_id, stream, seen.unwrap_or(offset)));
    }
    let (piece, state) = match job.state.is_end() {
        true => (stored_logs(&app, &job_id).await?.piece(stream, offset, most), job.state),
        false => piece(&app, &job_id, stream, offset, most).await?,
    };
    let next = piece.offset + piece.bytes.len() as u64;
    let is_complete = state.is_end() && next >= piece.total;
    let places = [
        ("x-log-offset", piece.offset.to_string()),
        ("x-log-next-offset", next.to_string()),
        ("x-log-total", piece.total.to_string()),
        ("x-log-complete", is_complete.to_string()),
    ];
    let mut response = piece.bytes.into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    for (name, value) in places {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    Ok(response)
}

/// A part of a log and the state of its job.
async fn piece(app: &App, job_id: &str, stream: LogStream, offset: u64, most: usize) -> Result<(LogPiece, JobState)> {
    // First the live log: a job that ends meanwhile is in its row then.
    if let Some(job) = app.live.get(job_id) {
        return Ok((job.read(stream, offset, most), JobState::Running));
    }
    let state = app
        .queue
        .find(job_id)
        .await?
        .map_or(JobState::Cancelled, |job| job.state);
    let logs = match state.is_end() {
        true => stored_logs(app, job_id).await?,
        false => StoredLogs::default(),
    };
    Ok((logs.piece(stream, offset, most), state))
}

fn follow(app: App, job_id: String, stream: LogStream, offset: u64) -> Response {
    let (events, received) = mpsc::channel::<std::result::Result<Event, Infallible>>(EVENTS_KEPT);
    tokio::spawn(async move {
        if let Err(error) = send_events(&app, &job_id, stream, offset, &events).await {
            tracing::error!(%error, job = job_id, "a log could not be followed");
        }
    });
    Sse::new(ReceiverStream::new(received))
        .keep_alive(KeepAlive::default())
        .into_response()
}

type Events = mpsc::Sender<std::result::Result<Event, Infallible>>;

/// Sends what there is and what comes, until the job ends, the reader is gone or the server stops.
async fn send_events(app: &App, job_id: &str, stream: LogStream, offset: u64, events: &Events) -> Result<()> {
    let mut offset = offset;
    loop {
        let live = app.live.get(job_id);
        let mut changes = live.as_ref().map(|job| job.changes());
        let (piece, state) = match &live {
            Some(job) => (job.read(stream, offset, USUAL_BYTES), JobState::Running),
            None => piece(app, job_id, stream, offset, USUAL_BYTES).await?,
        };
        let length = match state.is_end() {
            true => piece.bytes.len(),
            false => whole_characters(&piece.bytes),
        };
        if length > 0 {
            let next_offset = piece.offset + length as u64;
            let data = LogEvent {
                stream: stream.as_str(),
                offset: piece.offset,
                next_offset,
                text: String::from_utf8_lossy(&piece.bytes[..length]).into_owned(),
            };
            if !send(events, "log", Some(next_offset), &data).await {
                return Ok(());
            }
            offset = next_offset;
            continue;
        }
        if state.is_end() {
            send(events, "end", None, &EndEvent { status: state }).await;
            return Ok(());
        }
        let wait = async {
            match &mut changes {
                // A sender that is gone says the same as a change: look again.
                Some(changes) => {
                    let _ = changes.changed().await;
                }
                None => tokio::time::sleep(LOOK_AGAIN).await,
            }
        };
        tokio::select! {
            () = wait => {}
            () = events.closed() => return Ok(()),
            () = app.stop.cancelled() => return Ok(()),
        }
    }
}

async fn send(events: &Events, name: &str, id: Option<u64>, data: &impl Serialize) -> bool {
    let event = Event::default().event(name);
    let event = match id {
        Some(id) => event.id(id.to_string()),
        None => event,
    };
    match event.json_data(data) {
        Ok(event) => events.send(Ok(event)).await.is_ok(),
        Err(_) => false,
    }
}

/// Bytes up to the last whole character: the rest of a cut one comes with the next part.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_not_cut() {
        let text = "aé€".as_bytes();
        assert_eq!(whole_characters(text), 6);
        assert_eq!(whole_characters(&text[..5]), 3);
        assert_eq!(whole_characters(&text[..2]), 1);
        assert_eq!(whole_characters(&[0xff, b'a']), 2, "what is no text is passed on");
    }
}
