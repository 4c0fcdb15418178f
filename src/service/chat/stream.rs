//! A completion piece by piece, as server-sent events.

use std::convert::Infallible;

use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use clade_lm_api::messages::Event;
use serde::Serialize;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

use super::answer::{Chunk, ChunkChoice, Delta, Logprobs, TokenLogprob, Usage};
use super::completions::Head;
use crate::model::torch::Answers;

/// Pieces that wait for a slow reader; then the model's events wait in memory, which the length of answers bounds.
const PIECES_KEPT: usize = 64;

type Pieces = mpsc::Sender<Result<Sent, Infallible>>;

/// The answer to a request for a stream. When the client goes away, the request is cancelled.
pub(super) fn response(
    head: Head,
    answers: Answers,
    samples: usize,
    tells_usage: bool,
    stop: CancellationToken,
) -> Response {
    let (pieces, received) = mpsc::channel(PIECES_KEPT);
    tokio::spawn(async move {
        let sending = Sending {
            head,
            pieces: pieces.clone(),
        };
        tokio::select! {
            // Nobody is told when the reader is gone.
            _ = sending.send_all(answers, samples, tells_usage) => {}
            () = pieces.closed() => {}
            () = stop.cancelled() => {}
        }
    });
    Sse::new(ReceiverStream::new(received))
        .keep_alive(KeepAlive::default())
        .into_response()
}

struct Sending {
    head: Head,
    pieces: Pieces,
}

impl Sending {
    /// Sends everything; none when the reader is gone.
    async fn send_all(&self, mut answers: Answers, samples: usize, tells_usage: bool) -> Option<()> {
        let mut usage = Usage::default();
        for index in 0..samples {
            let delta = Delta {
                role: Some("assistant"),
                content: Some(String::new()),
            };
            self.choice(index, delta, None, None).await?;
        }
        while let Some(event) = answers.next().await {
            match event {
                Event::Token {
                    sample,
                    text,
                    written,
                    logprob,
                    top,
                    ..
                } => {
                    let logprobs = written.zip(logprob).map(|(written, logprob)| Logprobs {
                        content: vec![TokenLogprob::new(written, logprob, top)],
                    });
                    if text.is_empty() && logprobs.is_none() {
                        continue;
                    }
                    self.choice(sample, content(text), logprobs, None).await?;
                }
                Event::End { fault: Some(fault), .. } => {
                    let error = json!({"error": {"code": "model_failed", "message": fault.message}});
                    return self.send(&error).await;
                }
                Event::End {
                    sample,
                    reason,
                    text,
                    usage: used,
                    ..
                } => {
                    usage.add(used);
                    let delta = if text.is_empty() {
                        Delta::default()
                    } else {
                        content(text)
                    };
                    self.choice(sample, delta, None, Some(reason)).await?;
                }
            }
        }
        if tells_usage {
            self.chunk(Vec::new(), Some(usage)).await?;
        }
        self.pieces.send(Ok(Sent::default().data("[DONE]"))).await.ok()
    }

    async fn choice(
        &self,
        index: usize,
        delta: Delta,
        logprobs: Option<Logprobs>,
        finish_reason: Option<String>,
    ) -> Option<()> {
        let choice = ChunkChoice {
            index,
            delta,
            logprobs,
            finish_reason,
        };
        self.chunk(vec![choice], None).await
    }

    async fn chunk(&self, choices: Vec<ChunkChoice>, usage: Option<Usage>) -> Option<()> {
        self.send(&Chunk {
            id: &self.head.id,
            object: "chat.completion.chunk",
            created: self.head.created,
            model: &self.head.model,
            choices,
            usage,
        })
        .await
    }

    async fn send(&self, data: &impl Serialize) -> Option<()> {
        let piece = Sent::default().json_data(data).ok()?;
        self.pieces.send(Ok(piece)).await.ok()
    }
}

fn content(text: String) -> Delta {
    Delta {
        role: None,
        content: Some(text),
    }
}
