//! Selection policies: the contract, the draw, their replay on recorded runs; the shipped views and policies.

mod arguments;
mod compare;
mod compare_function;
#[cfg(test)]
mod compare_tests;
mod constants;
mod contract;
mod draw;
mod draw_function;
#[cfg(test)]
mod draw_tests;
mod error;
mod functions;
mod payoff;
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

pub use compare::{Choice, ComparedStep, PolicyView, compare_step};
pub use compare_function::{PolicyCompare, compare_schema};
pub use contract::check_policy;
pub use draw::{Chance, Draw, DrawRecord, Lottery, OperatorChance, ParentChance, draw};
pub use draw_function::DrawRecordFunction;
pub use error::PolicyError;
pub use functions::{CURRENT_RUN, CurrentRun, OptionNumber, register_functions};
pub use payoff::Payoffs;
pub use rows::{PolicyRow, read_rows, read_rows_with};
pub use sources::{ShippedPolicy, ViewSource, relations, shipped, views, without_header};
pub use trace::{PolicyHistory, RecordedNode, RecordedStep, TraceRow, trace_step};
pub use trace_function::{PolicyTrace, trace_schema};
