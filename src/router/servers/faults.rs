//! Faults in a row: a server that says that it does well, and fails whatever it is asked.

use std::time::{Duration, Instant};

/// Faults in a row, and the time since the first of them, after which a server counts as failing.
const MANY: u32 = 3;
const LONG: Duration = Duration::from_secs(5);
/// Time after the last fault after which it is tried again.
const TRIED_AGAIN: Duration = Duration::from_secs(30);

/// The faults since the last good answer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Faults(Option<Row>);

#[derive(Debug, Clone, Copy)]
struct Row {
    count: u32,
    first: Instant,
    last: Instant,
}

impl Faults {
    /// Notes an answer.
    pub(super) fn note(&mut self, is_good: bool, now: Instant) {
        self.0 = match self.0 {
            _ if is_good => None,
            None => Some(Row {
                count: 1,
                first: now,
                last: now,
            }),
            Some(row) => Some(Row {
                count: row.count.saturating_add(1),
                last: now,
                ..row
            }),
        };
    }

    /// Whether there are so many that nothing is to be expected.
    pub(super) fn are_lasting(&self, now: Instant) -> bool {
        self.0.is_some_and(|row| {
            let since = |time: Instant| now.saturating_duration_since(time);
            row.count >= MANY && since(row.first) >= LONG && since(row.last) < TRIED_AGAIN
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_many_faults_over_some_time_without_a_good_answer_count() {
        let begin = Instant::now();
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        let mut faults = Faults::default();
        for _ in 0..9 {
            faults.note(false, begin);
        }
        assert!(!faults.are_lasting(at(1)), "they came all at once");
        faults.note(false, at(6));
        assert!(faults.are_lasting(at(6)));
        assert!(!faults.are_lasting(at(60)), "it may do better by now");
        faults.note(false, at(60));
        assert!(faults.are_lasting(at(60)));
        faults.note(true, at(61));
        faults.note(false, at(62));
        assert!(!faults.are_lasting(at(80)));
    }
}
