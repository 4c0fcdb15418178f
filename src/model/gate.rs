//! What keeps requests back: the circuit breaker of a model, and the waits its provider asks for. While the gate is closed
//! nothing is sent; when its time is over one request goes first, and the others follow when that one succeeds.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;

use crate::error::ErrorClass;

/// Wait after the first rate limit that names no time.
const FIRST_WAIT: Duration = Duration::from_secs(2);
/// Shortest wait after a rate limit, also when the provider asks for none.
const SHORTEST_WAIT: Duration = Duration::from_secs(1);

/// When a gate closes and for how long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GateLimits {
    /// Failures in a row that open the circuit breaker.
    pub breaker_failures: u32,
    /// First pause of an open breaker; it doubles with every failed attempt to resume.
    pub breaker_pause: Duration,
    /// Longest pause before the provider is asked again, whatever it asked for.
    pub longest_pause: Duration,
    /// Time without any success after which rate limits count as failures.
    pub give_up_after: Duration,
}

/// Why and until when nothing is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// When the provider is asked again.
    pub until: DateTime<Utc>,
    /// What happened.
    pub reason: String,
    /// Class of what happened.
    pub class: ErrorClass,
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}; it is asked again at {} UTC",
            self.reason,
            self.until.format("%Y-%m-%d %H:%M:%S")
        )
    }
}

#[derive(Debug, Default)]
struct State {
    /// Failures of the provider since the last success.
    failures: u32,
    /// Pauses since the last success.
    pauses: u32,
    /// When the provider first asked to wait since the last success.
    limited_since: Option<DateTime<Utc>>,
    closed: Option<Pause>,
    /// The first request after a pause is on its way.
    is_probing: bool,
    /// Counts closings, so that what was sent before one does not open the gate again.
    closings: u64,
}

/// The gate of one model in this process.
#[derive(Debug)]
pub struct Gate {
    limits: GateLimits,
    state: Mutex<State>,
}

/// Leave to send one request. Dropped without a verdict (a cancelled request) it changes nothing.
#[derive(Debug)]
pub struct Pass<'a> {
    gate: &'a Gate,
    closings: u64,
    is_probe: bool,
}

impl Gate {
    /// An open gate.
    pub fn new(limits: GateLimits) -> Self {
        Self {
            limits,
            state: Mutex::default(),
        }
    }

    /// Asks for leave to send a request.
    ///
    /// # Errors
    /// The pause, while the gate is closed. One that is over says that the first request is on its way: look again soon.
    pub fn enter(&self, now: DateTime<Utc>) -> Result<Pass<'_>, Pause> {
        let mut state = self.state.lock();
        let mut is_probe = false;
        if let Some(pause) = &state.closed {
            if pause.until > now || state.is_probing {
                return Err(pause.clone());
            }
            is_probe = true;
            state.is_probing = true;
        }
        Ok(Pass {
            gate: self,
            closings: state.closings,
            is_probe,
        })
    }

    /// The pause, while the gate is closed.
    pub fn pause(&self, now: DateTime<Utc>) -> Option<Pause> {
        self.state.lock().closed.clone().filter(|pause| pause.until > now)
    }

    fn close(&self, state: &mut State, now: DateTime<Utc>, wait: Duration, class: ErrorClass, reason: String) -> Pause {
        let wait = wait.min(self.limits.longest_pause);
        let pause = Pause {
            until: now + TimeDelta::from_std(wait).unwrap_or(TimeDelta::days(1)),
            reason,
            class,
        };
        state.pauses = state.pauses.saturating_add(1);
        state.closings += 1;
        state.is_probing = false;
        state.closed = Some(pause.clone());
        pause
    }
}

/// `first`, doubled for every pause before.
fn doubled(first: Duration, pauses: u32) -> Duration {
    first.saturating_mul(1 << pauses.min(16))
}

impl Pass<'_> {
    /// The provider answered sensibly, be it with an error of ours.
    pub fn succeeded(self) {
        let mut state = self.gate.state.lock();
        state.failures = 0;
        if self.closings == state.closings {
            state.pauses = 0;
            state.limited_since = None;
            state.closed = None;
            state.is_probing = false;
        }
    }

    /// The provider failed. Returns the pause that this failure led to, if any.
    pub fn failed(self, now: DateTime<Utc>, message: &str) -> Option<Pause> {
        let gate = self.gate;
        let mut state = gate.state.lock();
        state.failures = state.failures.saturating_add(1);
        let is_late = self.closings != state.closings;
        if is_late || (!self.is_probe && state.failures < gate.limits.breaker_failures) {
            return None;
        }
        let wait = doubled(gate.limits.breaker_pause, state.pauses);
        let reason = format!("{} failures in a row, the last: {message}", state.failures);
        Some(gate.close(&mut state, now, wait, ErrorClass::Provider, reason))
    }

    /// The provider asked to wait. Returns the pause; none when it has done nothing else for too long.
    pub fn limited(self, now: DateTime<Utc>, asked: Option<Duration>, message: &str) -> Option<Pause> {
        let gate = self.gate;
        let mut state = gate.state.lock();
        let since = *state.limited_since.get_or_insert(now);
        if (now - since).to_std().unwrap_or_default() > gate.limits.give_up_after {
            return None;
        }
        let wait = asked.map_or_else(|| doubled(FIRST_WAIT, state.pauses), |asked| asked.max(SHORTEST_WAIT));
        let mut reason = format!("rate limited: {message}");
        if wait > gate.limits.longest_pause {
            let asked_until = now + TimeDelta::from_std(wait).unwrap_or(TimeDelta::days(3650));
            reason.push_str(&format!(
                " (it asked to wait {} s, until {} UTC; the wait is capped at max_retry_after_seconds = {} s)",
                wait.as_secs(),
                asked_until.format("%Y-%m-%d %H:%M:%S"),
                gate.limits.longest_pause.as_secs_f64()
            ));
        }
        // A request that was sent before the gate closed may only prolong the pause.
        if let Some(pause) = &state.closed
            && self.closings != state.closings
            && pause.until >= now + TimeDelta::from_std(wait.min(gate.limits.longest_pause)).unwrap_or_default()
        {
            return Some(pause.clone());
        }
        Some(gate.close(&mut state, now, wait, ErrorClass::RateLimit, reason))
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if self.is_probe {
            let mut state = self.gate.state.lock();
            if self.closings == state.closings {
                state.is_probing = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn gate() -> Gate {
        Gate::new(GateLimits {
            breaker_failures: 3,
            breaker_pause: Duration::from_secs(10),
            longest_pause: Duration::from_secs(60),
            give_up_after: Duration::from_secs(3600),
        })
    }

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
    }

    fn open(gate: &Gate) {
        for _ in 0..3 {
            gate.enter(at(0)).unwrap().failed(at(0), "HTTP 500");
        }
    }

    #[test]
    fn the_breaker_opens_after_failures_in_a_row_and_one_request_tries_first() {
        let gate = gate();
        gate.enter(at(0)).unwrap().failed(at(0), "HTTP 500");
        gate.enter(at(0)).unwrap().succeeded();
        open(&gate);
        let pause = gate.enter(at(9)).unwrap_err();
        assert_eq!((pause.until, pause.class), (at(10), ErrorClass::Provider));
        assert!(
            pause
                .to_string()
                .starts_with("3 failures in a row, the last: HTTP 500; it is asked again at ")
        );
        let probe = gate.enter(at(10)).unwrap();
        assert_eq!(gate.enter(at(11)).unwrap_err().until, at(10), "one at a time");
        probe.succeeded();
        let _first = gate.enter(at(10)).unwrap();
        let _second = gate.enter(at(10)).unwrap();
    }

    #[test]
    fn failed_probes_pause_longer_up_to_the_cap() {
        let gate = gate();
        open(&gate);
        let mut now = at(10);
        let mut waits = Vec::new();
        for _ in 0..4 {
            let pause = gate.enter(now).unwrap().failed(now, "HTTP 500").unwrap();
            waits.push((pause.until - now).num_seconds());
            now = pause.until;
        }
        assert_eq!(waits, [20, 40, 60, 60]);
    }

    #[test]
    fn a_cancelled_probe_lets_the_next_one_try() {
        let gate = gate();
        open(&gate);
        drop(gate.enter(at(10)).unwrap());
        gate.enter(at(10)).unwrap().succeeded();
    }

    #[test]
    fn a_wait_of_fourteen_hours_is_capped_and_says_until_when() {
        let gate = gate();
        let pass = gate.enter(at(0)).unwrap();
        let pause = pass
            .limited(at(0), Some(Duration::from_secs(51_000)), "slow down")
            .unwrap();
        assert_eq!((pause.until, pause.class), (at(60), ErrorClass::RateLimit));
        assert!(pause.reason.contains("51000 s, until 2027-01-15 "), "{}", pause.reason);
        assert!(gate.enter(at(59)).is_err());
    }

    #[test]
    fn a_provider_that_asks_for_no_wait_is_not_asked_without_end() {
        let gate = gate();
        let pass = gate.enter(at(0)).unwrap();
        assert_eq!(pass.limited(at(0), Some(Duration::ZERO), "x").unwrap().until, at(1));
    }

    #[test]
    fn an_answer_to_an_older_request_does_not_end_a_wait() {
        let gate = gate();
        let older = gate.enter(at(0)).unwrap();
        let limited = gate.enter(at(0)).unwrap();
        limited
            .limited(at(0), Some(Duration::from_secs(30)), "slow down")
            .unwrap();
        older.succeeded();
        assert_eq!(gate.pause(at(1)).unwrap().until, at(30));
    }

    #[test]
    fn rate_limits_without_a_time_double_and_count_as_failures_in_the_end() {
        let gate = gate();
        let waits: Vec<_> = [0, 2, 6]
            .map(|second| {
                gate.enter(at(second))
                    .unwrap()
                    .limited(at(second), None, "x")
                    .unwrap()
                    .until
            })
            .into();
        assert_eq!(waits, [at(2), at(6), at(14)]);
        assert!(gate.enter(at(4000)).unwrap().limited(at(4000), None, "x").is_none());
    }
}
