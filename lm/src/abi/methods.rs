//! The methods, one function each.

use std::collections::BTreeSet;

use clade_lm_api::messages::{
    Begun, Cancel, CloseTokenizer, Count, Counted, Description, Event, Generate, Info, Likely, Load, Loaded, Memory,
    Method, OpenTokenizer, Opened, PullSmolLm2, Pulled, Replace, Unload, Usage, Watch,
};
use clade_lm_api::{Fault, FaultKind};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::events::Events;
use super::{fault, handles};
use crate::engine::{EndReason, Event as EngineEvent, Generation};
use crate::error::{LmError, Result};
use crate::load;
use crate::local::{LocalModel, needs, usage};

type Answer = std::result::Result<Json, Fault>;

/// Does what a method says.
pub(super) fn call(method: &[u8], body: &[u8], events: Option<Events>) -> Answer {
    match std::str::from_utf8(method).unwrap_or_default() {
        Info::NAME => with(body, info),
        Load::NAME => with(body, |request| load_model(&request, events)),
        Memory::NAME => with(body, |Memory { load }| needs(&load)),
        Unload::NAME => with(body, |Unload { model }| handles::forget_model(model)),
        Generate::NAME => with(body, |request| generate(request, events)),
        Cancel::NAME => with(body, |Cancel { generation }| {
            handles::cancel(generation);
            Ok(())
        }),
        OpenTokenizer::NAME => with(body, |OpenTokenizer { path }| {
            let tokenizer = handles::keep_tokenizer(load::open(&path)?.tokenizer()?);
            Ok(Opened { tokenizer })
        }),
        CloseTokenizer::NAME => with(body, |CloseTokenizer { tokenizer }| {
            handles::forget_tokenizer(tokenizer)
        }),
        Count::NAME => with(body, |Count { tokenizer, text }| {
            let tokens = handles::tokenizer(tokenizer)?.encode(&text, true)?.len();
            Ok(Counted { tokens })
        }),
        Watch::NAME => with(body, |Watch { model }| Ok(handles::model(model)?.activity())),
        Replace::NAME => with(body, |Replace { model, path }| handles::model(model)?.replace(&path)),
        PullSmolLm2::NAME => with(body, |PullSmolLm2 { python, to }| {
            let path = load::pull_smollm2(&python, to.as_deref())?;
            Ok(Pulled { path })
        }),
        other => Err(Fault {
            kind: FaultKind::Internal,
            message: format!("the model library has no method '{other}'"),
        }),
    }
}

fn with<T: DeserializeOwned, R: Serialize>(body: &[u8], run: impl FnOnce(T) -> Result<R>) -> Answer {
    let internal = |error: serde_json::Error| Fault {
        kind: FaultKind::Internal,
        message: format!("a message makes no sense: {error}"),
    };
    let request = serde_json::from_slice(body).map_err(internal)?;
    let done = run(request).map_err(|error| fault(&error))?;
    serde_json::to_value(done).map_err(internal)
}

fn info(request: Info) -> Result<Description> {
    let info = load::open(&request.path)?.info();
    Ok(Description {
        facts: serde_json::to_value(&info).map_err(|error| LmError::Request(error.to_string()))?,
        text: info.to_string(),
    })
}

fn load_model(request: &Load, events: Option<Events>) -> Result<Loaded> {
    // Tensors may be read by several threads.
    let events = events.map(Mutex::new);
    let model = LocalModel::load(request, |progress| {
        if let Some(events) = &events {
            events.lock().send(&progress);
        }
    })?;
    let facts = model.facts().clone();
    let handle = handles::keep_model(model);
    if let Some(events) = &events {
        events.lock().begin();
    }
    Ok(Loaded { model: handle, ..facts })
}

fn generate(request: Generate, events: Option<Events>) -> Result<Begun> {
    let model = handles::model(request.model)?;
    let (generation, prompt_tokens) = model.generate(&request)?;
    let (seed, samples) = (generation.seed(), request.samples);
    let handle = handles::keep_generation(generation.canceller());
    let follow = move |mut events: Option<Events>| {
        if let Some(events) = &mut events {
            events.begin();
        }
        pass_on(&model, generation, samples, events.as_ref());
        handles::forget_generation(handle);
    };
    let thread = std::thread::Builder::new().name("lm-events".to_owned());
    let started = thread.spawn(move || follow(events));
    started.map_err(|error| {
        handles::forget_generation(handle);
        LmError::Request(format!("no thread could be started for the request: {error}"))
    })?;
    Ok(Begun {
        generation: handle,
        seed,
        prompt_tokens,
    })
}

/// Gives the events of a request to its caller until all its answers have ended. When a token cannot be read, those that have not
/// ended end with the fault, and the request is cancelled.
fn pass_on(model: &LocalModel, mut generation: Generation, samples: usize, events: Option<&Events>) {
    let Some(events) = events else {
        while generation.next_event().is_some() {}
        return;
    };
    let mut open: BTreeSet<usize> = (0..samples).collect();
    while let Some(event) = generation.next_event() {
        if let EngineEvent::End(end) = &event {
            open.remove(&end.sample);
        }
        match told(model, event) {
            Ok(event) => events.send(&event),
            Err(error) => {
                for sample in open {
                    events.send(&Event::End {
                        sample,
                        reason: "error".to_owned(),
                        fault: Some(fault(&error)),
                        text: String::new(),
                        usage: Usage::default(),
                    });
                }
                return;
            }
        }
    }
}

fn told(model: &LocalModel, event: EngineEvent) -> Result<Event> {
    Ok(match event {
        EngineEvent::Token(token) => {
            let logprobs = token.logprobs.as_ref();
            let top = logprobs.map(|logprobs| logprobs.top.as_slice()).unwrap_or_default();
            let likely = top.iter().map(|likely| {
                Ok(Likely {
                    id: likely.id,
                    text: model.written(likely.id)?,
                    logprob: likely.logprob,
                })
            });
            Event::Token {
                sample: token.sample,
                id: token.id,
                text: token.text,
                written: logprobs.map(|_| model.written(token.id)).transpose()?,
                logprob: logprobs.map(|logprobs| logprobs.model),
                sampling_logprob: logprobs.map(|logprobs| logprobs.sampling),
                top: likely.collect::<Result<_>>()?,
            }
        }
        EngineEvent::End(end) => Event::End {
            sample: end.sample,
            reason: end.reason.as_str().to_owned(),
            fault: match &end.reason {
                EndReason::Error(error) => Some(fault(error)),
                _ => None,
            },
            text: end.text,
            usage: usage(end.usage),
        },
    })
}
