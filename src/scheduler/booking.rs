//! What a reply costs the budgets. Counts that can be right are booked as they were reported; where they are missing or
//! cannot be right, the worst case that was reserved is booked, so that a budget holds whatever a provider says.

use super::budget::Resource;
use super::reserve::Reserved;
use crate::model::Sample;

/// What is booked for one reply.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Booking {
    /// Tokens.
    pub tokens: f64,
    /// US dollars; 0 for a price that is not known.
    pub cost_usd: f64,
}

impl Booking {
    /// What is booked for a sample of an attempt that reserved so much. A blank one, of which nothing came, is not booked.
    pub fn of(sample: &Sample, reserved: &Reserved) -> Self {
        if sample.cached || sample.is_blank() {
            return Self::default();
        }
        let worst = Self {
            tokens: reserved.tokens,
            cost_usd: reserved.cost_usd,
        };
        match (sample.tokens_prompt, sample.tokens_completion) {
            (Some(prompt), Some(completion)) if sample.usage.problem.is_none() => Self {
                tokens: (prompt + completion) as f64,
                cost_usd: sample.cost_usd.unwrap_or(worst.cost_usd),
            },
            _ => worst,
        }
    }

    /// The same by resource.
    pub fn spend(self) -> [(Resource, f64); 2] {
        [(Resource::Tokens, self.tokens), (Resource::CostUsd, self.cost_usd)]
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::UsageDetails;

    const RESERVED: Reserved = Reserved {
        candidate_seconds: 1.0,
        evaluation_seconds: 1.0,
        tokens: 500.0,
        cost_usd: 0.5,
    };

    fn booked(tokens_prompt: Option<u64>, problem: Option<&str>) -> (f64, f64) {
        let sample = Sample {
            text: "x".to_owned(),
            reasoning: None,
            finish_reason: "stop".to_owned(),
            tokens_prompt,
            tokens_completion: Some(5),
            usage: UsageDetails {
                problem: problem.map(str::to_owned),
                ..UsageDetails::default()
            },
            cost_usd: tokens_prompt.map(|_| 0.1),
            cached: false,
            latency: Duration::ZERO,
        };
        let booking = Booking::of(&sample, &RESERVED);
        (booking.tokens, booking.cost_usd)
    }

    #[test]
    fn usage_that_is_missing_or_wrong_does_not_lift_a_budget() {
        assert_eq!(booked(Some(10), None), (15.0, 0.1));
        assert_eq!(booked(None, None), (500.0, 0.5));
        assert_eq!(booked(Some(u64::MAX / 4), Some("too many")), (500.0, 0.5));
    }
}
