//! Work above single runs, such as a suite: one process at a time has it, and what stops runs stops it too.

use std::sync::Arc;

use clade_catalog::Txn;
use rusqlite::Connection;

use super::conducted::{Place, RunControl};
use super::lease::{self, RunLeaseError};
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

    /// Checks that this process still has the work.
    ///
    /// # Errors
    /// When another process has taken it over, or the store fails.
    pub async fn keep(&self) -> Result<()> {
        let (id, owner) = (self.id.clone(), self.services.owner.clone());
        let kept = move |conn: &Connection| lease::keep_run(conn, &id, &owner);
        Ok(self.services.store.control_read(kept).await?)
    }

    /// Commits rows of the work.
    ///
    /// # Errors
    /// When another process has taken the work over: then nothing is written. When the store fails.
    pub async fn commit(&self, mut txn: Txn) -> Result<()> {
        let (id, owner) = (self.id.clone(), self.services.owner.clone());
        txn.control(move |tx| lease::keep_run(tx, &id, &owner));
        self.services.store.commit(txn).await?;
        Ok(())
    }

    /// Gives the work up in one commit with its last rows.
    ///
    /// # Errors
    /// As [`Held::commit`].
    pub async fn release(self, mut txn: Txn) -> Result<()> {
        let (id, owner) = (self.id.clone(), self.services.owner.clone());
        txn.control(move |tx| {
            lease::keep_run(tx, &id, &owner)?;
            lease::give_up_run(tx, &id, &owner).map_err(RunLeaseError::from)
        });
        self.services.store.commit(txn).await?;
        Ok(())
    }

    /// Gives the work up after a fault, which is what the user is told; a lease that cannot be given up lapses by itself.
    pub async fn release_after(self, fault: &impl std::fmt::Display) {
        if let Err(error) = lease::release_run(&self.services, &self.id).await {
            tracing::warn!(id = self.id, %error, %fault, "a lease could not be given up; it lapses");
        }
    }
}
