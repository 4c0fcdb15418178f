//! What comes back for one request: an error, a whole answer, or a stream of pieces.

use std::time::Instant;

use chrono::Utc;
use serde_json::Value as Json;

use super::events::Events;
use super::failure::{Reported, Speaker, Trouble};
use super::reply::Reply;
use super::retry_after;
use super::secret::{ApiKey, redact};
use super::transport::{Answer, TransportError};
use super::usage::Asked;
use crate::model::{ReplyFault, Sample};

/// Longest answer that is read.
const LONGEST_ANSWER: usize = 64 << 20;
/// Longest body of an error that is read.
const LONGEST_ERROR: usize = 64 << 10;

/// An answer, and what is wrong with it.
type Judged = (Sample, Option<ReplyFault>);

/// Reads the answer to one request.
#[derive(Debug)]
pub(super) struct Reading<'a> {
    /// Who asked whom.
    pub speaker: Speaker<'a>,
    /// Key that no text may hold.
    pub key: Option<&'a ApiKey>,
    /// What was asked for.
    pub asked: Asked<'a>,
    /// When it was sent.
    pub started: Instant,
}

impl Reading<'_> {
    /// The answer as a sample.
    pub(super) async fn answer(&self, sent: Result<Answer, TransportError>) -> Result<Sample, Trouble> {
        let mut answer = sent.map_err(|error| self.speaker.transport(error, self.partial(Reply::default())))?;
        let status = answer.status();
        if !(200..300).contains(&status) {
            let asked = answer
                .header("retry-after")
                .and_then(|value| retry_after::parse(value, Utc::now()));
            let (body, _) = answer.body(LONGEST_ERROR).await;
            let body = redact(self.key, String::from_utf8_lossy(&body).into_owned());
            return Err(self.speaker.http_error(status, asked, &body));
        }
        let is_stream = answer
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("text/event-stream"));
        let (sample, fault) = if is_stream {
            self.stream(&mut answer).await?
        } else {
            self.whole(&mut answer).await?
        };
        match fault {
            None => Ok(sample),
            Some(fault) => Err(self.speaker.fault(fault, sample)),
        }
    }

    async fn whole(&self, answer: &mut Answer) -> Result<Judged, Trouble> {
        let (bytes, broken) = answer.body(LONGEST_ANSWER).await;
        let text = redact(self.key, String::from_utf8_lossy(&bytes).into_owned());
        let nothing = || self.partial(Reply::default());
        if let Some(error) = broken {
            // What had come is no JSON, so it is kept as it is.
            let partial = Sample { text, ..nothing() };
            return Err(self.speaker.broken_off(error, partial));
        }
        // Some services name no type for their streams.
        if text.trim_start().starts_with("data:") {
            let mut events = Events::default();
            let mut pieces = events.push(text.as_bytes());
            pieces.extend(events.finish());
            let mut reply = Reply::default();
            let is_done = self.take_pieces(&mut reply, pieces)?;
            return self.end_of_stream(reply, is_done, None);
        }
        let json: Json = serde_json::from_str(&text).map_err(|error| {
            let problem = format!("it is no JSON: {error}");
            self.speaker.malformed(problem, &text, nothing())
        })?;
        if let Some(reported) = Reported::of_json(&json) {
            return Err(self.speaker.reported(reported, nothing()));
        }
        Ok(Reply::of_completion(&json, self.speaker.profile).judge(&self.asked, self.started.elapsed()))
    }

    async fn stream(&self, answer: &mut Answer) -> Result<Judged, Trouble> {
        let mut reply = Reply::default();
        let mut events = Events::default();
        let mut bytes_read = 0;
        loop {
            let (pieces, end) = match answer.piece().await {
                Ok(Some(bytes)) => {
                    bytes_read += bytes.len();
                    (events.push(&bytes), None)
                }
                Ok(None) => (events.finish().into_iter().collect(), Some(None)),
                Err(error) => (Vec::new(), Some(Some(error))),
            };
            let is_done = self.take_pieces(&mut reply, pieces)?;
            if is_done {
                return self.end_of_stream(reply, is_done, None);
            }
            if let Some(error) = end {
                return self.end_of_stream(reply, is_done, error);
            }
            if bytes_read > LONGEST_ANSWER {
                let error = TransportError::Broken(format!("it is longer than {LONGEST_ANSWER} bytes"));
                return self.end_of_stream(reply, is_done, Some(error));
            }
        }
    }

    /// Takes pieces of a stream; says whether its end mark was among them.
    fn take_pieces(&self, reply: &mut Reply, pieces: Vec<String>) -> Result<bool, Trouble> {
        for data in pieces {
            if data.trim() == "[DONE]" {
                return Ok(true);
            }
            let data = redact(self.key, data);
            let piece: Json = match serde_json::from_str(&data) {
                Ok(piece) => piece,
                Err(error) => {
                    let problem = format!("a piece of the stream is no JSON: {error}");
                    let partial = self.partial(std::mem::take(reply));
                    return Err(self.speaker.malformed(problem, &data, partial));
                }
            };
            if let Some(reported) = Reported::of_json(&piece) {
                let partial = self.partial(std::mem::take(reply));
                return Err(self.speaker.reported(reported, partial));
            }
            reply.add_piece(&piece, self.speaker.profile);
        }
        Ok(false)
    }

    /// Judges what a stream has brought when it ends, by itself or with an error.
    fn end_of_stream(&self, reply: Reply, is_done: bool, error: Option<TransportError>) -> Result<Judged, Trouble> {
        // With a finish reason all of the answer has come; only its tail, the token counts, may be missing.
        if is_done || reply.is_complete() {
            return Ok(reply.judge(&self.asked, self.started.elapsed()));
        }
        let error = error.unwrap_or_else(|| TransportError::Broken("it ended without a finish reason".to_owned()));
        Err(self.speaker.broken_off(error, self.partial(reply)))
    }

    /// What had come of an answer that broke off.
    fn partial(&self, reply: Reply) -> Sample {
        reply.partial(&self.asked, self.started.elapsed())
    }
}
