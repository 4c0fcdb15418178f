//! Output of a job while it runs: server-sent events, shown to an observer.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Response;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::answers::LogEvent;
use super::fault::{Fault, Patience};
use super::service::{Service, unreachable_service};
use crate::sandbox::observe::{LogObserver, LogPart, LogStream};

/// The service gives a sign of life more often than this.
const SILENCE: Duration = Duration::from_secs(60);
/// Longest event.
const MOST_EVENT: usize = 4 << 20;

/// Shows an output until the job ends. What was missed while the service was away is shown after that; where it stays away, the
/// log at the end has the rest.
pub(super) async fn follow(service: Arc<Service>, job_id: String, stream: LogStream, observer: LogObserver) {
    let mut patience = Patience::new(service.options.give_up);
    let never = CancellationToken::new();
    let mut offset = 0;
    loop {
        let before = offset;
        let show = |event: LogEvent| {
            observer.see(LogPart {
                stream,
                skipped: event.offset.saturating_sub(offset),
                bytes: event.text.as_bytes(),
            });
            offset = event.next_offset;
        };
        let followed = match service.follow(&job_id, stream, before).await {
            Ok(events) => read(events, show).await,
            Err(fault) => Err(fault),
        };
        if offset > before {
            patience.reset();
        }
        let fault = match followed {
            Ok(true) => return,
            Ok(false) => Fault::Unreachable("the log broke off".to_owned()),
            Err(fault) => fault,
        };
        if let Err(fault) = patience.after(fault, &never).await {
            tracing::warn!(job = job_id, %fault, "the output of a job cannot be followed");
            return;
        }
    }
}

/// Reads events; says whether the last one came.
async fn read(mut response: Response, mut show: impl FnMut(LogEvent)) -> Result<bool, Fault> {
    let mut events = Events::default();
    loop {
        let part = timeout(SILENCE, response.chunk())
            .await
            .map_err(|_| Fault::Unreachable("the log gives no sign of life".to_owned()))?;
        let Some(part) = part.map_err(unreachable_service)? else {
            return Ok(false);
        };
        events.push(&part)?;
        while let Some((name, data)) = events.next() {
            match name.as_str() {
                "log" => {
                    let event = serde_json::from_str(&data);
                    show(event.map_err(|error| Fault::Nonsense(format!("an event cannot be read: {error}")))?);
                }
                "end" => return Ok(true),
                // Comments, and what later versions may say.
                _ => {}
            }
        }
    }
}

/// Takes a stream of events apart.
#[derive(Debug, Default)]
struct Events {
    bytes: Vec<u8>,
}

impl Events {
    fn push(&mut self, part: &[u8]) -> Result<(), Fault> {
        self.bytes.extend_from_slice(part);
        if self.bytes.len() > MOST_EVENT {
            return Err(Fault::Nonsense(format!("an event has more than {MOST_EVENT} bytes")));
        }
        Ok(())
    }

    /// Name and data of the next whole event.
    fn next(&mut self) -> Option<(String, String)> {
        let end = self.bytes.windows(2).position(|pair| pair == b"\n\n")?;
        let text = String::from_utf8_lossy(&self.bytes[..end]).into_owned();
        self.bytes.drain(..end + 2);
        let (mut name, mut data) = (String::new(), Vec::new());
        for line in text.lines() {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => value.clone_into(&mut name),
                "data" => data.push(value),
                _ => {}
            }
        }
        Some((name, data.join("\n")))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn events_are_taken_apart_wherever_the_stream_is_cut() {
        let stream = b"event: log\nid: 3\ndata: {\"a\":\ndata: 1}\n\n:\n\nevent: end\ndata: {}\n\n";
        let expected = [("log", "{\"a\":\n1}"), ("", ""), ("end", "{}")];
        for cut in 0..stream.len() {
            let (mut events, mut found) = (Events::default(), Vec::new());
            for part in [&stream[..cut], &stream[cut..]] {
                events.push(part).unwrap();
                while let Some(event) = events.next() {
                    found.push(event);
                }
            }
            let found: Vec<(&str, &str)> = found.iter().map(|(name, data)| (&**name, &**data)).collect();
            assert_eq!(found, expected, "cut at {cut}");
        }
    }
}
