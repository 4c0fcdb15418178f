//! The heartbeat of this process: prolongs its leases while it lives.

use std::sync::Arc;
use std::time::Duration;

use datafusion::common::runtime::SpawnedTask;
use tracing::warn;

use super::lease::{self, HEARTBEAT_SECONDS};
use crate::scheduler::queue;
use crate::scheduler::services::Services;

/// Beats until it is dropped.
#[derive(Debug)]
pub struct Heartbeat {
    _task: SpawnedTask<()>,
}

impl Heartbeat {
    /// Starts beating.
    pub fn start(services: Arc<Services>) -> Self {
        let task = SpawnedTask::spawn(async move {
            loop {
                services.clock.sleep(Duration::from_secs(HEARTBEAT_SECONDS)).await;
                let (owner, until) = (services.owner.clone(), lease::lease_end(services.now()));
                if let Err(error) = services.store.control(move |tx| queue::renew(tx, &owner, until)).await {
                    warn!(%error, "leases could not be prolonged");
                }
            }
        });
        Self { _task: task }
    }
}
