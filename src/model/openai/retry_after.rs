//! The header `Retry-After`: seconds, or a date.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// How long the header asks to wait; none when it cannot be read.
pub(super) fn parse(value: &str, now: DateTime<Utc>) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = DateTime::parse_from_rfc2822(value).ok()?.with_timezone(&Utc);
    // A date that has passed asks for no wait at all.
    Some((until - now).to_std().unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn seconds_and_dates_are_read() {
        let now = DateTime::parse_from_rfc3339("2026-10-21T07:28:00Z").unwrap().to_utc();
        for (text, seconds) in [
            ("51000", Some(51_000)),
            (" 1 ", Some(1)),
            ("Wed, 21 Oct 2026 07:30:00 GMT", Some(120)),
            ("Wed, 21 Oct 2020 07:30:00 GMT", Some(0)),
            ("soon", None),
            ("-5", None),
            ("inf", None),
        ] {
            assert_eq!(parse(text, now), seconds.map(Duration::from_secs), "{text}");
        }
        assert_eq!(parse("0.5", now), Some(Duration::from_millis(500)));
    }
}
