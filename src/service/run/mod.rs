//! Running jobs: their data, their program, their result, and the workers that take them from the queue.

mod data;
mod execute;
mod live;
mod result;
mod run_log;
mod tasks;
mod worker;

pub use self::data::{DataFault, DataFinder, Found};
pub use self::execute::{Runner, environment, keep_submission, metric_hash};
pub use self::live::{LiveJob, LiveJobs, LivePlace, LogPiece};
pub use self::result::{job_row, result_of};
pub use self::run_log::run_log;
pub use self::worker::{Board, WorkerStatus, keep_alive, report, work};
