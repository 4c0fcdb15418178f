//! Waiting before another try: longer each time, spread by the attempt's seed, never longer than a cap. What the provider
//! asked for is honoured up to the cap.

use std::time::Duration;

use crate::error::ErrorClass;
use crate::scheduler::error::SchedulerError;
use crate::scheduler::ids;

/// Longest pause between two tries.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(120);
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// What the fault itself asked to wait.
pub fn asked_pause(error: &SchedulerError) -> Option<Duration> {
    match error {
        SchedulerError::Model(error) => error.retry_after(),
        _ => None,
    }
}

/// Pause after try number `tries`.
pub fn pause(class: ErrorClass, tries: i64, asked: Option<Duration>, seed: i64) -> Duration {
    if let Some(asked) = asked {
        return asked.min(LONGEST_PAUSE);
    }
    let first = if class == ErrorClass::RateLimit {
        FIRST_PAUSE * 8
    } else {
        FIRST_PAUSE
    };
    let doublings = u32::try_from(tries.clamp(1, 16) - 1).unwrap_or(15);
    let full = first.saturating_mul(1 << doublings).min(LONGEST_PAUSE);
    // Between half and all of it, so that many attempts that failed together do not come back together.
    let share = ids::derive_seed(seed, "pause", tries, 0) % 1000;
    full / 2 + full.mul_f64(share as f64 / 2000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_of_fourteen_hours_is_capped() {
        assert_eq!(
            pause(ErrorClass::RateLimit, 1, Some(Duration::from_secs(51_000)), 7),
            LONGEST_PAUSE
        );
    }

    #[test]
    fn pauses_grow_and_stay_under_the_cap() {
        let pauses: Vec<_> = (1..40).map(|tries| pause(ErrorClass::Infra, tries, None, 7)).collect();
        assert!(pauses.iter().all(|pause| *pause <= LONGEST_PAUSE));
        assert!(pauses[4] > pauses[0]);
    }
}
