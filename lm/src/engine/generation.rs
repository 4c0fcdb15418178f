//! What a caller holds of a request that runs.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures::Stream;
use futures::channel::mpsc::UnboundedReceiver;
use futures::stream::StreamExt;

use super::event::{End, EndReason, Event, TokenLogprobs, Usage};
use super::reply::block_on;
use super::shared::Shared;

/// Cancels a request from anywhere.
#[derive(Debug, Clone, Default)]
pub struct Canceller(Arc<AtomicBool>);

impl Canceller {
    /// Ends all samples of the request at the next step.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The events of a request: for each sample some tokens and an end, after which nothing more comes. Dropping it cancels the request.
#[derive(Debug)]
pub struct Generation {
    events: UnboundedReceiver<Event>,
    canceller: Canceller,
    /// Samples that have not ended.
    open: Vec<usize>,
    seed: u64,
    shared: Arc<Shared>,
}

impl Generation {
    pub(super) fn new(
        events: UnboundedReceiver<Event>,
        canceller: Canceller,
        samples: usize,
        seed: u64,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            events,
            canceller,
            open: (0..samples).collect(),
            seed,
            shared,
        }
    }

    /// Seed of the request, also where the engine chose it.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Ends all samples at the next step; their ends follow as events.
    pub fn cancel(&self) {
        self.canceller.cancel();
    }

    /// What cancels the request while another task waits for its events.
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// Blocks the thread until the next event; `None` after the last one. An async task awaits the stream instead.
    pub fn next_event(&mut self) -> Option<Event> {
        block_on(self.next())
    }

    /// Blocks the thread until all samples have ended.
    pub fn wait(mut self) -> Vec<Completion> {
        let mut completions = Completion::none(self.open.len());
        while let Some(event) = self.next_event() {
            Completion::add(&mut completions, event);
        }
        completions
    }
}

impl Stream for Generation {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        if self.open.is_empty() {
            return Poll::Ready(None);
        }
        let next = match Pin::new(&mut self.events).poll_next(context) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Some(event)) => event,
            // The engine went away without a word.
            Poll::Ready(None) => Event::End(End {
                sample: self.open[0],
                reason: EndReason::Error(Arc::new(self.shared.stopped())),
                text: String::new(),
                usage: Usage::default(),
            }),
        };
        if let Event::End(end) = &next {
            self.open.retain(|sample| *sample != end.sample);
        }
        Poll::Ready(Some(next))
    }
}

/// A whole answer, put together from events.
#[derive(Debug, Clone, Default)]
pub struct Completion {
    /// Its tokens, a stop token included.
    pub tokens: Vec<i64>,
    /// Its text, without a stop token or stop string.
    pub text: String,
    /// Log-probabilities of the tokens; empty where the request did not ask for them.
    pub logprobs: Vec<TokenLogprobs>,
    /// Why it ended; `None` while it goes on.
    pub reason: Option<EndReason>,
    /// What it used, once it ended.
    pub usage: Usage,
}

impl Completion {
    /// So many answers of which nothing is known.
    pub fn none(samples: usize) -> Vec<Self> {
        vec![Self::default(); samples]
    }

    /// Adds an event to the answer of its sample.
    pub fn add(completions: &mut [Self], event: Event) {
        let Some(completion) = completions.get_mut(event.sample()) else {
            return;
        };
        match event {
            Event::Token(token) => {
                completion.tokens.push(token.id);
                completion.text.push_str(&token.text);
                completion.logprobs.extend(token.logprobs);
            }
            Event::End(end) => {
                completion.text.push_str(&end.text);
                completion.reason = Some(end.reason);
                completion.usage = end.usage;
            }
        }
    }
}
