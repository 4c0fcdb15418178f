//! What a reply costs the budgets. Counts that can be right are booked as they were reported; where they are missing or
//! cannot be right, the worst case that was reserved is booked, so that a budget holds whatever a provider says.

use super::reserve::Reserved;
use crate::model::{ReplyFault, Sample};
use crate::scheduler::budget::Resource;

/// What is booked for one reply.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Booking {
    /// Tokens.
    pub tokens: f64,
    /// US dollars; 0 for a price that is not known.
    pub cost_usd: f64,
}

impl Booking {
    /// What is booked for a sample of an attempt that reserved so much. A request that was turned away is not booked.
    pub fn of(sample: &Sample, fault: Option<&ReplyFault>, reserved: &Reserved) -> Self {
        let was_turned_away = sample.is_blank() && fault.is_some_and(|fault| !fault.may_have_cost());
        if sample.cached || was_turned_away {
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
        model_seconds: None,
    };

    fn sample(tokens_prompt: Option<u64>, problem: Option<&str>) -> Sample {
        Sample {
            text: "x".to_owned(),
            reasoning: None,
            finish_reason: "stop".to_owned(),
            tokens_prompt,
            tokens_completion: tokens_prompt.map(|_| 5),
            usage: UsageDetails {
                problem: problem.map(str::to_owned),
                ..UsageDetails::default()
            },
            cost_usd: tokens_prompt.map(|_| 0.1),
            cached: false,
            latency: Duration::ZERO,
        }
    }

    fn booked(sample: &Sample, fault: Option<&ReplyFault>) -> (f64, f64) {
        let booking = Booking::of(sample, fault, &RESERVED);
        (booking.tokens, booking.cost_usd)
    }

    #[test]
    fn usage_that_is_missing_or_wrong_does_not_lift_a_budget() {
        assert_eq!(booked(&sample(Some(10), None), None), (15.0, 0.1));
        assert_eq!(booked(&sample(None, None), None), (500.0, 0.5));
        assert_eq!(
            booked(&sample(Some(u64::MAX / 4), Some("too many")), None),
            (500.0, 0.5)
        );
    }

    #[test]
    fn a_request_of_which_nothing_came_costs_nothing_only_when_it_was_turned_away() {
        let blank = Sample {
            text: String::new(),
            ..sample(None, None)
        };
        let message = || "HTTP 500".to_owned();
        let stalled = ReplyFault::Stalled {
            setting: "first_byte_timeout_seconds",
            seconds: 1.0,
            bytes: 0,
        };
        for (fault, tokens) in [
            (ReplyFault::Failed { message: message() }, 0.0),
            (ReplyFault::Limited { message: message() }, 0.0),
            (ReplyFault::Rejected { message: message() }, 0.0),
            (ReplyFault::Reported { message: message() }, 0.0),
            (ReplyFault::NoChoices, 500.0),
            (stalled, 500.0),
        ] {
            assert_eq!(booked(&blank, Some(&fault)).0, tokens, "{fault}");
            assert_eq!(
                booked(&sample(None, None), Some(&fault)).0,
                500.0,
                "{fault}: a text came"
            );
        }
    }
}
