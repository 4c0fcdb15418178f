//! Direction of a metric.

mod signed_score;
pub mod udf;

pub use signed_score::signed_score;
