//! Requests of each key in a minute.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use parking_lot::Mutex;

/// What each key has left. A key whose quota changes begins anew.
#[derive(Debug, Default)]
pub(super) struct Rates {
    clock: DefaultClock,
    limiters: Mutex<HashMap<String, (u32, Arc<DefaultDirectRateLimiter>)>>,
}

impl Rates {
    /// Counts a request; the error says after which time the next one is let in.
    pub(super) fn check(&self, key_id: &str, per_minute: u32) -> Result<(), Duration> {
        let limiter = {
            let mut limiters = self.limiters.lock();
            match limiters.get(key_id) {
                Some((quota, limiter)) if *quota == per_minute => Arc::clone(limiter),
                _ => {
                    let quota = Quota::per_minute(NonZeroU32::new(per_minute).unwrap_or(NonZeroU32::MIN));
                    let limiter = Arc::new(RateLimiter::direct(quota));
                    limiters.insert(key_id.to_owned(), (per_minute, Arc::clone(&limiter)));
                    limiter
                }
            }
        };
        limiter.check().map_err(|until| until.wait_time_from(self.clock.now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_its_own_quota() {
        let rates = Rates::default();
        for _ in 0..3 {
            assert!(rates.check("a", 3).is_ok());
        }
        let wait = rates.check("a", 3).err().unwrap_or_default();
        assert!(wait > Duration::ZERO && wait <= Duration::from_secs(20), "{wait:?}");
        assert!(rates.check("b", 3).is_ok());
    }
}
