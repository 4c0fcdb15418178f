//! Answers that an async task may await and a thread may wait for.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use futures::channel::oneshot;

use super::shared::Shared;
use crate::error::Result;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks the thread until a future is ready. It may be called anywhere, also inside of another executor.
pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// The outcome of something that the engine was told to do.
#[derive(Debug)]
pub struct Reply {
    receiver: oneshot::Receiver<Result<()>>,
    shared: Arc<Shared>,
}

impl Reply {
    pub(super) fn new(receiver: oneshot::Receiver<Result<()>>, shared: Arc<Shared>) -> Self {
        Self { receiver, shared }
    }

    /// Blocks the thread until it is done.
    ///
    /// # Errors
    /// When it failed, or the engine ended before.
    pub fn wait(self) -> Result<()> {
        block_on(self)
    }
}

impl Future for Reply {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.receiver)
            .poll(context)
            .map(|outcome| outcome.unwrap_or_else(|_| Err(self.shared.stopped())))
    }
}
