//! Removes containers and their directories on a thread with a runtime of its own, so that this also happens when the program
//! ends, and its runtime before its executors.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error;
use bollard::query_parameters::RemoveContainerOptionsBuilder;
use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use super::engine;
use crate::sandbox::SandboxError;
use crate::sandbox::scratch::JobDir;

/// Time that the last removals may take when the executor ends.
const END_LIMIT: Duration = Duration::from_secs(30);

/// What a program leaves.
struct Left {
    container: String,
    /// Removed after the container: before, a program could still write into it.
    directory: Option<JobDir>,
}

/// Hands things over for removal. The cleaner lives as long as somebody may still do so.
#[derive(Debug, Clone)]
pub(super) struct Remover(UnboundedSender<Left>);

impl Remover {
    /// Has a container removed, running or not, and then its directory.
    pub(super) fn remove(&self, container: String, directory: Option<JobDir>) {
        // Where the thread has given up, the next start sweeps what is left.
        let _ = self.0.send(Left { container, directory });
    }
}

/// The thread. Dropping it waits until everything handed over is gone.
#[derive(Debug)]
pub(super) struct Cleaner {
    /// `None` once it ends.
    remover: Option<Remover>,
    ended: Mutex<Receiver<()>>,
}

impl Cleaner {
    /// Starts the thread, with a connection of its own.
    pub(super) fn start(address: Option<String>) -> Result<Self, SandboxError> {
        let failed =
            |error: std::io::Error| SandboxError::Helper(format!("cannot start the removal of containers: {error}"));
        let (sender, receiver) = unbounded_channel();
        let (end, ended) = channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        std::thread::Builder::new()
            .name("container-cleaner".to_owned())
            .spawn(move || {
                runtime.block_on(clean(address, receiver));
                drop(end);
            })
            .map_err(failed)?;
        Ok(Self {
            remover: Some(Remover(sender)),
            ended: Mutex::new(ended),
        })
    }

    /// For those who make containers; `None` once the executor ends.
    pub(super) fn remover(&self) -> Option<Remover> {
        self.remover.clone()
    }
}

impl Drop for Cleaner {
    fn drop(&mut self) {
        self.remover = None;
        // The thread ends when the last container that is still being made has been handed over too.
        if self.ended.get_mut().recv_timeout(END_LIMIT) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("the engine is slow to remove containers; the next start removes what is left");
        }
    }
}

async fn clean(address: Option<String>, mut receiver: UnboundedReceiver<Left>) {
    let docker = match engine::connect(address.as_deref()).await {
        Ok(docker) => docker,
        Err(error) => {
            tracing::warn!(%error, "containers are left; the next start removes them");
            return;
        }
    };
    let mut removals = JoinSet::new();
    while let Some(left) = receiver.recv().await {
        let docker = docker.clone();
        removals.spawn(async move {
            remove(&docker, &left.container).await;
            drop(left.directory);
        });
        while removals.try_join_next().is_some() {}
    }
    while removals.join_next().await.is_some() {}
}

/// Removes a container with everything in it, running or not.
pub(super) async fn remove(docker: &Docker, id: &str) -> bool {
    let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
    match docker.remove_container(id, Some(options)).await {
        Ok(()) => true,
        // Somebody else has removed it, or is about to: two processes that start sweep the same containers.
        Err(Error::DockerResponseServerError {
            status_code: 404 | 409, ..
        }) => true,
        Err(error) => {
            tracing::warn!(container = id, %error, "a container is left; the next start removes it");
            false
        }
    }
}
