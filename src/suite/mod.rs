//! Suites: several tasks, each searched several times with the same options, conducted as one.
//!
//! What a suite wants is recorded before its first search begins: a row of `bench.suites`, and a row of `bench.suite_runs` for
//! each search, also for tasks that are not imported. So it can be resumed after anything, with nothing changed.

mod conduct;
mod definition;
mod error;
mod plan;
mod record;
mod settings;

pub use conduct::{Event, Outcome, resume, start};
pub use definition::Definition;
pub use error::{Result, SuiteError};
pub use plan::{Search, SearchStatus, Suite, SuiteRequest};
