//! One worker on another machine, as its server knows it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::held::HeldJob;
use super::probe::Probe;
use super::wire::{Join, Slots};
use crate::service::queue::Class;

/// What a worker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    /// It has a free slot.
    Idle,
    /// All of its slots are taken.
    Busy,
    /// It gets no more jobs, as an admin wished.
    Draining,
    /// It gets no more jobs until a probe goes well.
    Quarantined,
    /// It gave no sign of life for too long.
    Lost,
}

impl MemberState {
    /// Name as shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Busy => "busy",
            Self::Draining => "draining",
            Self::Quarantined => "quarantined",
            Self::Lost => "lost",
        }
    }
}

/// One class of slots of a worker, as shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberStatus {
    /// The worker.
    pub worker_id: String,
    /// What it is.
    pub state: MemberState,
    /// Class of these slots.
    pub class: Class,
    /// Host name of its machine.
    pub host: String,
    /// Version of its engine.
    pub version: String,
    /// Name of its back end.
    pub backend: String,
    /// Jobs that it runs at once.
    pub slots: u32,
    /// When it gave a sign of life, microseconds UTC.
    pub last_seen: i64,
    /// The jobs that it runs, with their users.
    pub jobs: Vec<(String, String)>,
}

/// Why a worker gets no jobs, and the probe that it is to run.
#[derive(Debug)]
pub(super) struct Quarantine {
    pub(super) probed: Instant,
    pub(super) probe: Option<Probe>,
}

/// A worker.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) key_id: String,
    pub(super) facts: Join,
    pub(super) seen: Instant,
    pub(super) last_seen: i64,
    pub(super) is_draining: bool,
    pub(super) is_lost: bool,
    /// Suspicious ends in a row.
    pub(super) faults: u32,
    pub(super) quarantine: Option<Quarantine>,
    pub(super) jobs: HashMap<String, Arc<HeldJob>>,
}

impl Member {
    pub(super) fn new(key_id: String, facts: Join, now: i64) -> Self {
        Self {
            key_id,
            facts,
            seen: Instant::now(),
            last_seen: now,
            is_draining: false,
            is_lost: false,
            faults: 0,
            quarantine: None,
            jobs: HashMap::new(),
        }
    }

    /// It gave a sign of life.
    pub(super) fn touch(&mut self, now: i64) {
        (self.seen, self.last_seen, self.is_lost) = (Instant::now(), now, false);
    }

    /// Notes how a job of it ended.
    pub(super) fn note_end(&mut self, is_suspicious: bool, limit: u32) {
        if !is_suspicious {
            self.faults = 0;
            return;
        }
        self.faults += 1;
        if self.faults >= limit && self.quarantine.is_none() {
            tracing::warn!(
                worker = self.facts.worker_id,
                faults = self.faults,
                "the sandbox of a worker fails: it gets no more jobs until a probe goes well"
            );
            self.quarantine = Some(Quarantine {
                probed: Instant::now(),
                probe: None,
            });
        }
    }

    /// The probe that is due in a slot of a class.
    pub(super) fn due_probe(&mut self, class: Class, every: Duration) -> Option<&Probe> {
        let quarantine = self.quarantine.as_mut()?;
        // Where there are slots with a GPU, one of them is looked at: it needs all that the others need.
        let is_class = class == Class::Gpu || self.facts.slots.gpu == 0;
        if !is_class || quarantine.probed.elapsed() < every {
            return None;
        }
        quarantine.probed = Instant::now();
        quarantine.probe = Some(Probe::new(class));
        quarantine.probe.as_ref()
    }

    pub(super) fn running(&self, class: Class) -> u32 {
        let of_class = self.jobs.values().filter(|job| job.claim.request.class == class);
        u32::try_from(of_class.count()).unwrap_or(u32::MAX)
    }

    fn state(&self, class: Class) -> MemberState {
        match self {
            _ if self.is_lost => MemberState::Lost,
            _ if self.quarantine.is_some() => MemberState::Quarantined,
            _ if self.is_draining => MemberState::Draining,
            _ if self.running(class) >= self.facts.slots.of(class) => MemberState::Busy,
            _ => MemberState::Idle,
        }
    }

    /// What is shown of it: one entry a class that it has slots of.
    pub(super) fn status(&self) -> impl Iterator<Item = MemberStatus> + '_ {
        let slots: Slots = self.facts.slots;
        Class::ALL
            .into_iter()
            .filter(move |class| slots.of(*class) > 0)
            .map(move |class| {
                let of_class = self.jobs.values().filter(|job| job.claim.request.class == class);
                let mut jobs: Vec<(String, String)> = of_class
                    .map(|job| (job.claim.lease.job_id.clone(), job.claim.user.clone()))
                    .collect();
                jobs.sort();
                MemberStatus {
                    worker_id: self.facts.worker_id.clone(),
                    state: self.state(class),
                    class,
                    host: self.facts.host.clone(),
                    version: self.facts.version.clone(),
                    backend: self.facts.backend.clone(),
                    slots: slots.of(class),
                    last_seen: self.last_seen,
                    jobs,
                }
            })
    }
}
