//! Workers on other machines. They come to the server over HTTP, run programs, and hand in what those wrote; the server scores it
//! itself, so no hidden answer and no metric ever leaves it.

mod ends;
mod held;
mod member;
mod probe;
mod refusal;
mod routes;
pub mod wire;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

pub use self::member::{MemberState, MemberStatus};
pub use self::refusal::{Refusal, UNKNOWN_WORKER};
pub use self::routes::routes;

use self::held::HeldJob;
use self::member::Member;
use self::wire::{Attempt, Claimed, Heartbeat, Join, Joined, Orders, Probed};
use super::error::{Result as ServiceResult, ServiceError};
use super::queue::{Claim, Class, Ended, JobSource, Queue, Ran, Worker};
use super::run::{DataFinder, LiveJobs, metric_hash};
use super::submissions::Submissions;
use super::uploads::Packer;
use crate::sandbox::{Judging, ResultState, SandboxError, Scoring};
use crate::scheduler::{Sandbox, Services, WorkDir};

/// Time in which a worker must have heard of a job that was given to it; else the answer was lost on the way.
const ANSWER_TIME: Duration = Duration::from_secs(15);
/// Longest time between two signs of life.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// Time for which a worker that is lost is shown.
const LOST_SHOWN: Duration = Duration::from_secs(3600);
/// Time after which a worker that gets no jobs is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Most workers that are known at once.
const MOST_MEMBERS: usize = 10_000;

/// What a fleet works with.
#[derive(Debug)]
pub struct FleetParts {
    /// The queue.
    pub queue: Arc<Queue>,
    /// Limits, folders, time.
    pub services: Arc<Services>,
    /// Back end whose evaluator scores submissions.
    pub sandbox: Sandbox,
    /// Finds the data.
    pub data: DataFinder,
    /// Jobs that run.
    pub live: Arc<LiveJobs>,
    /// Where submissions are kept.
    pub submissions: Arc<Submissions>,
    /// Evaluate in the warm pool.
    pub warm: bool,
    /// Suspicious ends in a row after which a worker gets no more jobs.
    pub quarantine_after: u32,
    /// Time between two probes.
    pub probe_every: Duration,
    /// The server is to end.
    pub stop: CancellationToken,
}

/// All workers on other machines.
#[derive(Debug)]
pub struct Fleet {
    parts: FleetParts,
    members: Mutex<HashMap<String, Member>>,
    packer: Packer,
    /// A worker may get jobs again, or no more.
    changed: Notify,
    evaluations: TaskTracker,
}

/// Whether a slot may have a job now.
enum Admission {
    Open,
    Shut,
    Probe(Box<wire::ProbeOrder>),
}

/// Who asks for a job, and for which slot.
#[derive(Debug, Clone)]
struct Asking {
    worker_id: String,
    key_id: String,
    class: Class,
}

type Answer = oneshot::Sender<Result<Claimed, Refusal>>;

impl Fleet {
    /// A fleet without workers.
    pub fn new(parts: FleetParts) -> Self {
        Self {
            parts,
            members: Mutex::default(),
            packer: Packer::default(),
            changed: Notify::new(),
            evaluations: TaskTracker::new(),
        }
    }

    /// Whether a worker takes jobs of a class.
    pub fn serves(&self, class: Class) -> bool {
        let members = self.members.lock();
        members
            .values()
            .any(|member| !member.is_lost && member.facts.slots.of(class) > 0)
    }

    /// All workers, one entry a class.
    pub fn status(&self) -> Vec<MemberStatus> {
        let members = self.members.lock();
        let mut all: Vec<MemberStatus> = members.values().flat_map(Member::status).collect();
        all.sort_by(|a, b| (&a.worker_id, a.class).cmp(&(&b.worker_id, b.class)));
        all
    }

    /// Takes a worker in, or back. Of the jobs that it has, those whose leases still hold stay with it.
    async fn join(&self, key_id: &str, facts: Join) -> Result<Joined, Refusal> {
        if !wire::suits(&facts.version) {
            return Err(Refusal::Version(facts.version));
        }
        check_facts(&facts)?;
        let (worker_id, now) = (facts.worker_id.clone(), self.parts.services.now());
        let jobs = facts.jobs.clone();
        {
            let mut members = self.members.lock();
            let is_full = members.len() >= MOST_MEMBERS;
            match members.get_mut(&worker_id) {
                Some(member) if member.key_id != key_id => return Err(Refusal::Taken(worker_id)),
                Some(member) => {
                    member.facts = facts;
                    member.touch(now);
                }
                None if is_full => {
                    return Err(Refusal::Malformed(format!(
                        "{MOST_MEMBERS} workers are known, which is all that may be"
                    )));
                }
                None => {
                    info!(worker = worker_id, host = facts.host, "a worker joined");
                    members.insert(worker_id.clone(), Member::new(key_id.to_owned(), facts, now));
                }
            }
        }
        for attempt in &jobs {
            self.take_over(&worker_id, attempt).await?;
        }
        let orders = self.heartbeat(&worker_id, key_id, Heartbeat { jobs }).await?;
        self.changed.notify_waiters();
        Ok(Joined {
            heartbeat_seconds: (self.parts.queue.lease() / 6).min(HEARTBEAT).as_secs_f64(),
            lost: orders.lost,
        })
    }

    /// Gives a worker back a job that it had before this server began, if its lease still holds.
    async fn take_over(&self, worker_id: &str, attempt: &Attempt) -> Result<(), Refusal> {
        let is_held = |members: &HashMap<String, Member>| {
            let member = members.get(worker_id);
            member.is_some_and(|member| member.jobs.contains_key(&attempt.job_id))
        };
        if is_held(&self.members.lock()) {
            return Ok(());
        }
        let Some(claim) = self.parts.queue.take_over(&attempt.lease(worker_id)).await? else {
            return Ok(());
        };
        let Some(job) = self.prepare(claim).await else {
            return Ok(());
        };
        self.hold(worker_id, job).await
    }

    /// Notes a sign of life: leases are prolonged, and the worker hears what became of its jobs meanwhile.
    async fn heartbeat(&self, worker_id: &str, key_id: &str, heartbeat: Heartbeat) -> Result<Orders, Refusal> {
        let now = self.parts.services.now();
        let (known, unheard, drain) = self.with(worker_id, key_id, |member| {
            member.touch(now);
            let has = |job: &HeldJob| {
                heartbeat
                    .jobs
                    .iter()
                    .any(|said| said.job_id == job.claim.lease.job_id && said.attempt == job.claim.lease.attempt)
            };
            let unheard: Vec<Arc<HeldJob>> = member
                .jobs
                .values()
                .filter(|job| !has(job) && job.since.elapsed() > ANSWER_TIME)
                .cloned()
                .collect();
            for job in &unheard {
                member.jobs.remove(&job.claim.lease.job_id);
            }
            let known: Vec<Arc<HeldJob>> = member.jobs.values().cloned().collect();
            (known, unheard, member.is_draining || member.quarantine.is_some())
        })?;
        for job in unheard {
            warn!(
                worker = worker_id,
                job = job.claim.lease.job_id,
                "a worker never heard of its job, which goes back"
            );
            self.give_up(job).await;
        }
        let mut orders = Orders {
            drain,
            ..Orders::default()
        };
        let mut held = Vec::new();
        for job in known {
            let job_id = job.claim.lease.job_id.clone();
            match self.parts.queue.extend(&job.claim.lease).await {
                Ok(is_cancelled) => {
                    if is_cancelled {
                        job.live.job.cancel();
                        orders.cancel.push(job_id.clone());
                    }
                    held.push(job_id);
                }
                Err(ServiceError::LeaseLost { .. }) => self.drop_job(worker_id, &job),
                Err(error) => return Err(error.into()),
            }
        }
        // A job that was given to the worker only now is no lost one.
        let lost = |said: &&Attempt| !held.contains(&said.job_id) && !self.is_known(worker_id, &said.job_id);
        orders.lost = heartbeat
            .jobs
            .iter()
            .filter(lost)
            .map(|said| said.job_id.clone())
            .collect();
        Ok(orders)
    }

    fn is_known(&self, worker_id: &str, job_id: &str) -> bool {
        let members = self.members.lock();
        let member = members.get(worker_id);
        member.is_some_and(|member| member.jobs.contains_key(job_id))
    }

    /// Removes a job whose lease is lost from its worker.
    fn drop_job(&self, worker_id: &str, job: &Arc<HeldJob>) {
        let mut members = self.members.lock();
        let Some(member) = members.get_mut(worker_id) else {
            return;
        };
        let job_id = &job.claim.lease.job_id;
        // One that ended meanwhile is not counted twice.
        if member.jobs.get(job_id).is_some_and(|held| Arc::ptr_eq(held, job)) {
            member.jobs.remove(job_id);
            self.parts.queue.note_lost(&job.claim);
        }
    }

    /// Puts a job back whose worker does not go on with it; that is no attempt.
    async fn give_up(&self, job: Arc<HeldJob>) {
        let given = self.parts.queue.give_back(&job.claim).await;
        self.note_fault(&job.claim, given);
    }

    /// Waits for a job for a free slot of a worker, and answers. It goes on to its end when nobody waits for the answer any more, so
    /// that no job is lost on the way.
    async fn assign(self: Arc<Self>, asking: Asking, wait: Duration, mut answer: Answer) {
        let deadline = tokio::time::Instant::now() + wait;
        let worker = Worker {
            worker_id: asking.worker_id.clone(),
            owner: wire::owner(&asking.worker_id),
            class: asking.class,
        };
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let admission = match self.admit(&asking) {
                Ok(admission) => admission,
                Err(refusal) => return reply(answer, Err(refusal)),
            };
            let is_open = match admission {
                Admission::Open => true,
                Admission::Shut => false,
                Admission::Probe(order) => {
                    let claimed = Claimed {
                        probe: Some(*order),
                        job: None,
                    };
                    return reply(answer, Ok(claimed));
                }
            };
            let is_over = AtomicBool::new(false);
            let patience = async {
                tokio::select! {
                    () = tokio::time::sleep_until(deadline) => {}
                    () = answer.closed() => {}
                    () = self.parts.stop.cancelled() => {}
                    () = changed => return,
                    () = tokio::time::sleep(LOOK_AGAIN), if !is_open => return,
                }
                is_over.store(true, Ordering::SeqCst);
            };
            let claimed = if is_open {
                self.parts.queue.claim_until(&worker, patience).await
            } else {
                patience.await;
                Ok(None)
            };
            match claimed {
                Ok(Some(claim)) => {
                    if let Some(job) = self.prepare(claim).await {
                        return self.hand_out(&asking.worker_id, job, answer).await;
                    }
                }
                Ok(None) if self.parts.queue.is_closed() => return reply(answer, Err(Refusal::Stopping)),
                Ok(None) if is_over.load(Ordering::SeqCst) => {
                    return reply(answer, Ok(Claimed::default()));
                }
                Ok(None) => {}
                Err(fault) => return reply(answer, Err(fault.into())),
            }
        }
    }

    async fn hand_out(&self, worker_id: &str, job: HeldJob, answer: Answer) {
        let (job_id, assignment) = (job.claim.lease.job_id.clone(), job.assignment());
        if let Err(refusal) = self.hold(worker_id, job).await {
            return reply(answer, Err(refusal));
        }
        let claimed = Claimed {
            job: Some(assignment),
            probe: None,
        };
        if answer.send(Ok(claimed)).is_err()
            && let Some(job) = self.take_away(worker_id, &job_id)
        {
            self.give_up(job).await;
        }
    }

    /// Notes that the end of a job could not be written: it begins anew when its lease ends.
    fn note_fault(&self, claim: &Claim, written: ServiceResult<()>) {
        let Err(error) = written else { return };
        warn!(job = claim.lease.job_id, %error, "what became of a job could not be written");
        // The queue itself notes a lease that is lost.
        if !matches!(error, ServiceError::LeaseLost { .. }) {
            self.parts.queue.note_lost(claim);
        }
    }

    fn take_away(&self, worker_id: &str, job_id: &str) -> Option<Arc<HeldJob>> {
        self.members.lock().get_mut(worker_id)?.jobs.remove(job_id)
    }

    /// Notes that a worker has a job; one that left meanwhile does not get it.
    async fn hold(&self, worker_id: &str, job: HeldJob) -> Result<(), Refusal> {
        let job = Arc::new(job);
        let is_there = {
            let mut members = self.members.lock();
            let member = members.get_mut(worker_id);
            member
                .map(|member| member.jobs.insert(job.claim.lease.job_id.clone(), Arc::clone(&job)))
                .is_some()
        };
        if is_there {
            return Ok(());
        }
        self.give_up(job).await;
        Err(Refusal::Unknown(worker_id.to_owned()))
    }

    fn admit(&self, asking: &Asking) -> Result<Admission, Refusal> {
        let now = self.parts.services.now();
        self.with(&asking.worker_id, &asking.key_id, |member| {
            member.touch(now);
            if member.running(asking.class) >= member.facts.slots.of(asking.class) {
                return Err(Refusal::NoSlot);
            }
            if member.quarantine.is_some() {
                let probe = member.due_probe(asking.class, self.parts.probe_every);
                return Ok(probe.map_or(Admission::Shut, |probe| {
                    Admission::Probe(Box::new(probe.order(&self.parts.services.candidate_limits)))
                }));
            }
            Ok(if member.is_draining {
                Admission::Shut
            } else {
                Admission::Open
            })
        })?
    }

    /// Makes a job ready for its worker. One that cannot run anywhere ends here.
    async fn prepare(&self, claim: Claim) -> Option<HeldJob> {
        let ended = match self.try_prepare(&claim).await {
            Ok(Ok(job)) => return Some(job),
            Ok(Err(ended)) => ended,
            Err(error) => Ended::Failed {
                reason: error.to_string(),
                retry: true,
            },
        };
        let finished = self.parts.queue.finish(&claim, ended).await;
        self.note_fault(&claim, finished);
        None
    }

    async fn try_prepare(&self, claim: &Claim) -> ServiceResult<Result<HeldJob, Ended>> {
        let services = &self.parts.services;
        let failed = |reason: String| Ok(Err(Ended::Failed { reason, retry: false }));
        let found = match self.parts.data.find(&claim.request).await {
            Ok(found) => found,
            Err(reason) => return failed(reason),
        };
        let metric_hash = metric_hash(&found.scoring).await?;
        let mut limits = services.candidate_limits.clone();
        limits.wall = Duration::from_secs_f64(claim.request.timeout);
        if let Some(candidate) = self.judging(&found.scoring).before_start(&claim.code) {
            return Ok(Err(Ended::Ran(Box::new(Ran {
                backend: String::new(),
                candidate,
                limits,
                metric_hash,
            }))));
        }
        let data = match self.packer.hash(&found.dir).await? {
            Ok(hash) => hash,
            Err(reason) => return failed(reason),
        };
        let parent = &services.work_dir;
        let work =
            WorkDir::create(parent, &claim.lease.job_id).map_err(SandboxError::io("make a folder in", parent))?;
        Ok(Ok(HeldJob {
            claim: claim.clone(),
            live: self
                .parts
                .live
                .enter(&claim.lease.job_id, limits.log_bytes, &self.parts.stop),
            found,
            data,
            metric_hash,
            limits,
            work,
            since: Instant::now(),
            writing: tokio::sync::Mutex::default(),
        }))
    }

    fn judging(&self, scoring: &Scoring) -> Judging {
        Judging {
            scoring: scoring.clone(),
            limits: self.parts.services.evaluation_limits.clone(),
            warm: self.parts.warm,
            self_reported: clade_udfs::text::final_validation_score,
        }
    }

    /// Where the data of a job lies that a worker has.
    fn data_of(&self, worker_id: &str, key_id: &str, job_id: &str, hash: &str) -> Result<PathBuf, Refusal> {
        let job = self.held(worker_id, key_id, job_id)?;
        if job.data == hash {
            return Ok(job.found.dir.clone());
        }
        Err(Refusal::Malformed(format!("the data of job '{job_id}' is not {hash}")))
    }

    fn held(&self, worker_id: &str, key_id: &str, job_id: &str) -> Result<Arc<HeldJob>, Refusal> {
        let now = self.parts.services.now();
        let job = self.with(worker_id, key_id, |member| {
            member.touch(now);
            member.jobs.get(job_id).cloned()
        })?;
        job.ok_or_else(|| Refusal::NotHeld(job_id.to_owned()))
    }

    /// The job of an attempt that a worker has.
    fn held_attempt(&self, worker_id: &str, key_id: &str, attempt: &Attempt) -> Result<Arc<HeldJob>, Refusal> {
        let job = self.held(worker_id, key_id, &attempt.job_id)?;
        if job.claim.lease.attempt == attempt.attempt {
            return Ok(job);
        }
        Err(Refusal::NotHeld(attempt.job_id.clone()))
    }

    /// Puts a job back that its worker cannot bring to its end.
    async fn give_back(&self, worker_id: &str, key_id: &str, attempt: &Attempt) -> Result<(), Refusal> {
        let job = self.held_attempt(worker_id, key_id, attempt)?;
        if self.take_away(worker_id, &attempt.job_id).is_some() {
            self.give_up(job).await;
        }
        Ok(())
    }

    /// A worker goes; what it still has goes back.
    async fn leave(&self, worker_id: &str, key_id: &str) -> Result<(), Refusal> {
        self.with(worker_id, key_id, |_| ())?;
        let Some(member) = self.members.lock().remove(worker_id) else {
            return Ok(());
        };
        info!(worker = worker_id, "a worker left");
        for job in member.jobs.into_values() {
            self.give_up(job).await;
        }
        self.changed.notify_waiters();
        Ok(())
    }

    /// Notes what a probe printed; a good one releases the worker.
    fn probed(&self, worker_id: &str, key_id: &str, probed: &Probed) -> Result<(), Refusal> {
        self.with(worker_id, key_id, |member| {
            let is_good = member
                .quarantine
                .as_mut()
                .and_then(|quarantine| quarantine.probe.take())
                .is_some_and(|probe| probe.is_good(probed));
            if is_good {
                info!(worker = worker_id, "a probe went well: the worker gets jobs again");
                (member.quarantine, member.faults) = (None, 0);
            } else {
                warn!(worker = worker_id, problem = probed.problem, "a probe did not go well");
            }
        })?;
        self.changed.notify_waiters();
        Ok(())
    }

    /// Lets a worker have no more jobs, or jobs again.
    fn drain(&self, worker_id: &str, is_draining: bool) -> Result<(), Refusal> {
        match self.members.lock().get_mut(worker_id) {
            Some(member) => member.is_draining = is_draining,
            None => return Err(Refusal::Unknown(worker_id.to_owned())),
        }
        self.changed.notify_waiters();
        Ok(())
    }

    /// Looks for workers that give no sign of life: their jobs go to others.
    pub fn sweep(&self) {
        let lease = self.parts.queue.lease();
        let mut members = self.members.lock();
        for (worker_id, member) in members.iter_mut() {
            if member.is_lost || member.seen.elapsed() <= lease {
                continue;
            }
            warn!(
                worker = worker_id,
                jobs = member.jobs.len(),
                "a worker gives no sign of life"
            );
            member.is_lost = true;
            for (_, job) in member.jobs.drain() {
                self.parts.queue.note_lost(&job.claim);
            }
        }
        members.retain(|_, member| !member.is_lost || member.seen.elapsed() < LOST_SHOWN);
    }

    /// Waits for the evaluations that run.
    pub async fn close(&self) {
        self.evaluations.close();
        self.evaluations.wait().await;
    }

    /// Does something with a worker of a key.
    fn with<T>(&self, worker_id: &str, key_id: &str, act: impl FnOnce(&mut Member) -> T) -> Result<T, Refusal> {
        match self.members.lock().get_mut(worker_id) {
            Some(member) if member.key_id == key_id => Ok(act(member)),
            _ => Err(Refusal::Unknown(worker_id.to_owned())),
        }
    }
}

/// Whether a job's end says that something is wrong with its worker.
fn is_suspicious(state: Option<ResultState>) -> bool {
    state == Some(ResultState::SandboxUnconfirmed)
}

fn reply(answer: Answer, result: Result<Claimed, Refusal>) {
    // Nobody waits any more: nothing was given out either.
    let _ = answer.send(result);
}

/// Refuses what no worker of ours would say of itself.
fn check_facts(facts: &Join) -> Result<(), Refusal> {
    const MOST_SLOTS: u32 = 1024;
    let is_name = |text: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        (1..=128).contains(&text.len()) && text.chars().all(is_plain)
    };
    let malformed = |problem: &str| Err(Refusal::Malformed(problem.to_owned()));
    if !is_name(&facts.worker_id) {
        return malformed("field 'worker_id': at most 128 letters, digits, '-', '_' and '.'");
    }
    if !is_name(&facts.host) || !is_name(&facts.backend) {
        return malformed("fields 'host' and 'backend': at most 128 letters, digits, '-', '_' and '.'");
    }
    let slots = facts.slots;
    if slots.cpu > MOST_SLOTS || slots.gpu > MOST_SLOTS || slots.cpu + slots.gpu == 0 {
        return malformed("field 'slots': from 1 to 1024");
    }
    Ok(())
}
