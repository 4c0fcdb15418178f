//! Work above single runs, such as a suite: one process at a time has it, and what stops runs stops it too.

use std::sync::Arc;

use clade_catalog::Txn;

use super::conducted::{Place, RunControl};
use super::lease;
use crate::scheduler::control::Scheduler;
use crate::scheduler::error::Result;
use crate::scheduler::services::Services;

/// Work that this process holds; other processes are refused until it is released or this process dies.
#[derive(Debug)]
pub struct Held {
    id: String,
    services: Arc<Services>,
    control: RunControl,
    _place: Place,
}

impl Scheduler {
    /// Takes work of an id that is no run.
    ///
    /// # Errors
    /// When this or another living process has it, or the store fails.
    pub async fn hold(&self, id: &str) -> Result<Held> {
        let (place, control) = self.enter(id)?;
        lease::hold_run(&self.services, id).await?;
        self.ensure_heartbeat();
        Ok(Held {
            id: id.to_owned(),
            services: Arc::clone(&self.services),
            control,
            _place: place,
        })
    }
}

impl Held {
    /// Whether nothing more may begin.
    pub fn is_stopped(&self) -> bool {
        self.control.drain.is_cancelled() || self.control.kill.is_cancelled()
    }

    /// Gives the work up in one commit with its last rows.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn release(self, mut txn: Txn) -> Result<()> {
        let (id, owner) = (self.id.clone(), self.services.owner.clone());
        txn.control(move |tx| lease::give_up_run(tx, &id, &owner));
        self.services.store.commit(txn).await?;
        Ok(())
    }
}
