//! `POST /v1/chat/completions`.

use axum::Json;
use axum::body::Body as HttpBody;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use clade_lm_api::messages::Event;
use clade_lm_api::{ApiError as LmError, Fault, FaultKind};

use super::answer::{AnswerMessage, Choice, Completion, Logprobs, TokenLogprob, Usage};
use super::body::Body;
use super::stream;
use crate::model::torch::Answers;
use crate::scheduler::fresh_id;
use crate::service::access::Caller;
use crate::service::api::body::json;
use crate::service::api::caller::may_submit;
use crate::service::api::{ApiError, App};

/// What all answers to a request share.
pub(super) struct Head {
    pub id: String,
    pub created: i64,
    pub model: String,
    pub has_logprobs: bool,
}

/// Answers a conversation.
pub(super) async fn complete(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    body: HttpBody,
) -> Result<Response, ApiError> {
    may_submit(caller.role)?;
    if app.stop.is_cancelled() {
        return Err(ApiError::stopping());
    }
    let body = json(&headers, body, app.config.body_size.bytes(), app.config.body_time()).await?;
    let body = Body::read(body)?;
    let model = app.chat.get(&app.services.models, &body.model).await?;
    let head = Head {
        id: format!("chatcmpl-{}", fresh_id()),
        created: chrono::Utc::now().timestamp(),
        model: body.model.clone(),
        has_logprobs: body.wants_logprobs(),
    };
    let (is_stream, tells_usage) = (body.stream == Some(true), body.tells_usage());
    let request = body.request(model.handle())?;
    let samples = request.samples;
    let answers = model.generate(&request).map_err(|error| refused(&error))?;
    if is_stream {
        return Ok(stream::response(head, answers, samples, tells_usage, app.stop.clone()));
    }
    tokio::select! {
        whole = whole(head, answers, samples) => Ok(Json(whole?).into_response()),
        () = app.stop.cancelled() => Err(ApiError::stopping()),
    }
}

/// Waits for all answers.
async fn whole(head: Head, mut answers: Answers, samples: usize) -> Result<Completion, ApiError> {
    let mut usage = Usage::default();
    let mut choices: Vec<Choice> = (0..samples)
        .map(|index| Choice {
            index,
            message: AnswerMessage {
                role: "assistant",
                content: String::new(),
            },
            logprobs: head.has_logprobs.then(Logprobs::default),
            finish_reason: String::new(),
        })
        .collect();
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
                let Some(choice) = choices.get_mut(sample) else {
                    continue;
                };
                choice.message.content.push_str(&text);
                if let (Some(logprobs), Some(written), Some(logprob)) = (&mut choice.logprobs, written, logprob) {
                    logprobs.content.push(TokenLogprob::new(written, logprob, top));
                }
            }
            Event::End {
                sample,
                reason,
                fault,
                text,
                usage: used,
            } => {
                if let Some(fault) = fault {
                    return Err(of_fault(&fault));
                }
                let Some(choice) = choices.get_mut(sample) else {
                    continue;
                };
                choice.message.content.push_str(&text);
                choice.finish_reason = reason;
                usage.add(used);
            }
        }
    }
    Ok(Completion {
        id: head.id,
        object: "chat.completion",
        created: head.created,
        model: head.model,
        choices,
        usage,
    })
}

fn refused(error: &LmError) -> ApiError {
    match error {
        LmError::Fault(fault) => of_fault(fault),
        other => of_fault(&Fault {
            kind: FaultKind::Internal,
            message: other.to_string(),
        }),
    }
}

/// A fault as clients are told of it.
pub(super) fn of_fault(fault: &Fault) -> ApiError {
    let (status, code, advice) = match fault.kind {
        FaultKind::Request => (
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid_request",
            "docs/models.md lists the fields with their ranges",
        ),
        FaultKind::TooLong => (
            StatusCode::UNPROCESSABLE_ENTITY,
            "context_length_exceeded",
            "shorten the conversation, or make the model with more context_tokens or cache_memory",
        ),
        FaultKind::Memory => (
            StatusCode::SERVICE_UNAVAILABLE,
            "out_of_memory",
            "ask for fewer or shorter answers, or try again when others have ended",
        ),
        FaultKind::Model | FaultKind::Internal => (
            StatusCode::INTERNAL_SERVER_ERROR,
            "model_failed",
            "the log of the server says more",
        ),
    };
    ApiError::new(status, code, fault.message.clone(), advice)
}
