//! Grading: scoring a submission on the hidden test answers and placing it on the task's leaderboard.
//!
//! This is the only place that reads the final answers, and `bench.grades` the only home of what comes of it.

mod grade;
mod selection;
mod standing;

pub use grade::{Grade, GradeRole, GradeRow, grade_submission};
pub use selection::FinalSelection;
pub use standing::{Standing, median};
