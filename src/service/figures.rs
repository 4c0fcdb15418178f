//! Figures of the service for Prometheus.

use std::fmt;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::queue::{Claim, Class, JobState};

type Labels = Vec<(&'static str, String)>;

/// All figures. Those that rows tell are set when they are asked for.
pub struct Figures {
    registry: Registry,
    requests: Family<Labels, Counter>,
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
            registry: Registry::with_prefix("clade"),
            requests: Family::default(),
            ended: Family::default(),
            jobs: Family::default(),
            waiting: Family::default(),
            workers: Family::default(),
            queued_seconds: seconds(),
            running_seconds: seconds(),
        };
        let registry = &mut figures.registry;
        registry.register(
            "requests",
            "Requests by method, route and code",
            figures.requests.clone(),
        );
        registry.register(
            "jobs_ended",
            "Jobs that ended since the start, by state",
            figures.ended.clone(),
        );
        registry.register("jobs", "Jobs of the store by state", figures.jobs.clone());
        registry.register(
            "queue_length",
            "Jobs that wait, by class of workers",
            figures.waiting.clone(),
        );
        registry.register("workers", "Workers by status", figures.workers.clone());
        registry.register(
            "job_queued_seconds",
            "Seconds from the request to the start",
            figures.queued_seconds.clone(),
        );
        registry.register(
            "job_running_seconds",
            "Seconds from the start to the end",
            figures.running_seconds.clone(),
        );
        figures
    }
}

impl fmt::Debug for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Figures")
    }
}

impl Figures {
    /// Counts a request.
    pub fn note_request(&self, method: &str, route: &str, code: u16) {
        let labels = vec![
            ("method", method.to_owned()),
            ("route", route.to_owned()),
            ("code", code.to_string()),
        ];
        self.requests.get_or_create(&labels).inc();
    }

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

    /// The text that Prometheus reads.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn seconds(from: i64, to: i64) -> f64 {
    (to - from).max(0) as f64 / 1e6
}
