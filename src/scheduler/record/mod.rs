//! The rows of an attempt: the attempt itself, its reply, its job, and the node it became with edges and prompt lineage.

pub mod statement_rows;

mod attempt_rows;
mod generation_rows;
mod job_rows;
mod node_rows;

pub use attempt_rows::{Ending, attempt_rows, cancelled_rows, planned_rows};
pub use generation_rows::generation_rows;
pub use job_rows::{JobPurpose, job_rows};
pub use node_rows::{Edge, Finished, NodeRecord, rows};

/// A count as a signed column keeps it.
fn signed(count: Option<u64>) -> Option<i64> {
    count.map(|count| i64::try_from(count).unwrap_or(i64::MAX))
}
