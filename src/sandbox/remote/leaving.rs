//! Cancels jobs that nobody waits for any more, on threads with runtimes of their own, so that this also happens when the program ends,
//! and its runtime before its executors.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::timeout;

use super::cancel_open;
use super::fault::Fault;
use super::notes::{self, OpenJob};
use super::service::Service;

/// Time that the service may take for it.
const LIMIT: Duration = Duration::from_secs(5);

/// The threads. Dropping this waits for them.
#[derive(Debug, Default)]
pub(super) struct Leaving(Mutex<Vec<JoinHandle<()>>>);

impl Leaving {
    /// Cancels a job, known by its id or by its name and key. Where that does not go well, its note stays, and the next start does it.
    pub(super) fn cancel(&self, service: &Arc<Service>, job_id: Option<String>, job: OpenJob, note: PathBuf) {
        let service = Arc::clone(service);
        let work = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let asked = runtime.map_err(|error| error.to_string()).and_then(|runtime| {
                let asked = runtime.block_on(async { timeout(LIMIT, ask(&service, job_id, &job)).await });
                match asked {
                    Ok(Ok(())) => Ok(()),
                    Ok(Err(fault)) => Err(fault.to_string()),
                    Err(_) => Err("it does not answer".to_owned()),
                }
            });
            match asked {
                Ok(()) => notes::remove(&note),
                Err(fault) => tracing::warn!(
                    job = job.name,
                    fault,
                    "a job may run on at the job service; the next start cancels it"
                ),
            }
        };
        let mut threads = self.0.lock();
        threads.retain(|thread| !thread.is_finished());
        match std::thread::Builder::new()
            .name("remote-leaving".to_owned())
            .spawn(work)
        {
            Ok(thread) => threads.push(thread),
            Err(error) => tracing::warn!(%error, "a job may run on at the job service; the next start cancels it"),
        }
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        for thread in self.0.get_mut().drain(..) {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

async fn ask(service: &Service, job_id: Option<String>, job: &OpenJob) -> Result<(), Fault> {
    // Connections of another runtime would be waited for in vain.
    let service = service.anew()?;
    match job_id {
        Some(job_id) => match service.cancel(&job_id).await {
            Err(fault) if !fault.is("unknown_job") => Err(fault),
            _ => Ok(()),
        },
        None => cancel_open(&service, job).await,
    }
}
