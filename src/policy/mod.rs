//! Selection policies: the contract, the draw, the trace; the shipped views and policies.

mod contract;
mod draw;
#[cfg(test)]
mod draw_tests;
mod error;
mod functions;
mod rows;
#[cfg(test)]
mod shipped_tests;
mod sources;
#[cfg(test)]
pub(crate) mod testkit;
mod trace;
mod trace_function;
#[cfg(test)]
mod trace_tests;
#[cfg(test)]
mod view_tests;

pub use contract::check_policy;
pub use draw::{Chance, Draw, DrawRecord, Lottery, OperatorChance, ParentChance, draw};
pub use error::PolicyError;
pub use functions::{CURRENT_RUN, CurrentRun, OptionNumber, register_functions};
pub use rows::{PolicyRow, read_rows};
pub use sources::{ShippedPolicy, ViewSource, relations, shipped, views, without_header};
pub use trace::{PolicyHistory, RecordedStep, TraceRow, trace_step};
pub use trace_function::{PolicyTrace, trace_schema};
