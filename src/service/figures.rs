//! Figures of the service for Prometheus.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use super::exposition::{Exposition, Labels};
use super::queue::{Claim, Class, JobState};

/// All figures. Those that rows tell are set when they are asked for.
#[derive(Debug)]
pub struct Figures {
    pub(super) exposition: Exposition,
    ended: Family<Labels, Counter>,
    jobs: Family<Labels, Gauge>,
    waiting: Family<Labels, Gauge>,
    workers: Family<Labels, Gauge>,
    queued_seconds: Histogram,
    running_seconds: Histogram,
}

impl Default for Figures {
    fn default() -> Self {
        let seconds = || Histogram::new(exponential_buckets(0.01, 3.0, 13));
        let mut figures = Self {
            exposition: Exposition::new("clade"),
            ended: Family::default(),
            jobs: Family::default(),
            waiting: Family::default(),
            workers: Family::default(),
            queued_seconds: seconds(),
            running_seconds: seconds(),
        };
        let exposition = &mut figures.exposition;
        exposition.add(
            "jobs_ended",
            "Jobs that ended since the start, by state",
            figures.ended.clone(),
        );
        exposition.add("jobs", "Jobs of the store by state", figures.jobs.clone());
        exposition.add(
            "queue_length",
            "Jobs that wait, by class of workers",
            figures.waiting.clone(),
        );
        exposition.add("workers", "Workers by status", figures.workers.clone());
        exposition.add(
            "job_queued_seconds",
            "Seconds from the request to the start",
            figures.queued_seconds.clone(),
        );
        exposition.add(
            "job_running_seconds",
            "Seconds from the start to the end",
            figures.running_seconds.clone(),
        );
        figures
    }
}

impl Figures {
    /// Notes that a job was taken up.
    pub fn note_start(&self, claim: &Claim) {
        self.queued_seconds.observe(seconds(claim.queued_at, claim.started_at));
    }

    /// Notes that a job ended.
    pub fn note_end(&self, claim: &Claim, state: JobState, now: i64) {
        self.running_seconds.observe(seconds(claim.started_at, now));
        let labels = vec![("state", state.as_str().to_owned())];
        self.ended.get_or_create(&labels).inc();
    }

    /// Sets how many jobs are in each state.
    pub fn set_jobs(&self, by_state: &[(String, i64)]) {
        for state in JobState::ALL {
            let known = by_state.iter().find(|(name, _)| name == state.as_str());
            let labels = vec![("state", state.as_str().to_owned())];
            self.jobs
                .get_or_create(&labels)
                .set(known.map_or(0, |(_, count)| *count));
        }
    }

    /// Sets how many jobs wait for a class.
    pub fn set_waiting(&self, class: Class, count: usize) {
        let labels = vec![("class", class.as_str().to_owned())];
        self.waiting.get_or_create(&labels).set(signed(count));
    }

    /// Sets how many workers are busy and idle.
    pub fn set_workers(&self, busy: usize, idle: usize) {
        for (status, count) in [("busy", busy), ("idle", idle)] {
            let labels = vec![("status", status.to_owned())];
            self.workers.get_or_create(&labels).set(signed(count));
        }
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn seconds(from: i64, to: i64) -> f64 {
    (to - from).max(0) as f64 / 1e6
}
