//! Axes of the charts: horizontal places as shares of the width, vertical ones in pixels.

use serde::Serialize;

use crate::plot::{step_ticks, ticks};

/// Pixels of a chart's panel.
pub(super) const HEIGHT: f64 = 260.0;

/// Free room left and right of the first and last mark, as a share of the width.
const MARGIN: f64 = 0.012;

/// A labelled place of an axis.
#[derive(Debug, Serialize)]
pub(super) struct Tick {
    pub at: String,
    pub text: String,
}

/// A horizontal axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Across {
    last: f64,
    unit: Unit,
}

/// What a horizontal axis counts.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Unit {
    Steps,
    /// Seconds, in units of so many with this name.
    Time(f64, &'static str),
}

impl Across {
    /// An axis of steps from 1.
    pub fn steps(last: i64) -> Self {
        Self {
            last: last.max(1) as f64,
            unit: Unit::Steps,
        }
    }

    /// An axis of seconds from 0.
    pub fn time(last: f64) -> Self {
        let unit = match last {
            last if last < 180.0 => Unit::Time(1.0, "seconds"),
            last if last < 3.0 * 3600.0 => Unit::Time(60.0, "minutes"),
            _ => Unit::Time(3600.0, "hours"),
        };
        Self {
            last: if last > 0.0 { last } else { 1.0 },
            unit,
        }
    }

    /// Place of a value from 0 to 1.
    pub fn at(&self, value: f64) -> f64 {
        let first = if self.unit == Unit::Steps { 1.0 } else { 0.0 };
        let share = if self.last > first {
            (value - first) / (self.last - first)
        } else {
            0.5
        };
        MARGIN + share * (1.0 - 2.0 * MARGIN)
    }

    /// Name of the unit.
    pub fn unit(&self) -> &'static str {
        match self.unit {
            Unit::Steps => "step",
            Unit::Time(_, name) => name,
        }
    }

    /// The labelled places.
    pub fn ticks(&self, count: usize) -> Vec<Tick> {
        match self.unit {
            Unit::Steps => {
                let steps = step_ticks(self.last as u64, count);
                // All steps of a short run have room on a wide screen only.
                let every = steps.len().div_ceil(count + 1);
                let labelled = steps.into_iter().step_by(every);
                labelled
                    .map(|step| tick(self.at(step as f64), step.to_string()))
                    .collect()
            }
            Unit::Time(seconds, _) => {
                let (values, decimals) = ticks(0.0, self.last / seconds, count);
                values
                    .into_iter()
                    .map(|value| tick(self.at(value * seconds), format!("{value:.decimals$}")))
                    .collect()
            }
        }
    }
}

fn tick(share: f64, text: String) -> Tick {
    Tick {
        at: percent(share),
        text,
    }
}

/// A vertical axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Upwards {
    low: f64,
    high: f64,
    height: f64,
}

impl Upwards {
    /// An axis between two different values.
    pub fn new(low: f64, high: f64, height: f64) -> Self {
        Self { low, high, height }
    }

    /// Pixels from the top; values beyond the axis are at its edge.
    pub fn at(&self, value: f64) -> f64 {
        let share = (value.clamp(self.low, self.high) - self.low) / (self.high - self.low);
        self.height * (1.0 - share)
    }

    /// The labelled places.
    pub fn ticks(&self, count: usize) -> Vec<Tick> {
        let (values, decimals) = ticks(self.low, self.high, count);
        values
            .into_iter()
            .map(|value| Tick {
                at: pixels(self.at(value)),
                text: if value.abs() >= 1e6 {
                    format!("{value:.2e}")
                } else {
                    format!("{value:.decimals$}")
                },
            })
            .collect()
    }
}

/// A share of the width as an attribute.
pub(super) fn percent(share: f64) -> String {
    format!("{}%", short(share * 100.0, 2))
}

/// Pixels as an attribute.
pub(super) fn pixels(value: f64) -> String {
    short(value, 1)
}

/// A share of the width in the units of a path: thousandths.
pub(super) fn units(share: f64) -> String {
    short(share * 1000.0, 1)
}

/// A number with at most so many decimals, as short as it can be: a page has thousands of them.
fn short(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_short_and_inside() {
        let axis = Across::steps(40);
        assert!(axis.at(1.0) > 0.0 && axis.at(40.0) < 1.0);
        assert_eq!(Across::steps(1).at(1.0), 0.5);
        assert_eq!([percent(0.5), pixels(-0.01), units(0.123_45)], ["50%", "0", "123.5"]);
        let labels: Vec<String> = Across::steps(24).ticks(8).into_iter().map(|tick| tick.text).collect();
        assert!(labels.len() <= 9, "{labels:?}");
    }

    #[test]
    fn time_has_the_unit_that_suits_it() {
        assert_eq!(Across::time(90.0).unit(), "seconds");
        assert_eq!(Across::time(5_000.0).unit(), "minutes");
        let axis = Across::time(43_200.0);
        assert_eq!(axis.unit(), "hours");
        assert_eq!(
            axis.ticks(6).last().map(|tick| tick.text.clone()),
            Some("12".to_owned())
        );
        assert!(Across::time(0.0).at(0.0).is_finite());
    }

    #[test]
    fn a_value_beyond_the_axis_is_at_its_edge() {
        let axis = Upwards::new(0.0, 2.0, 200.0);
        assert_eq!([axis.at(1.0), axis.at(9.0), axis.at(-1.0)], [100.0, 0.0, 200.0]);
    }
}
