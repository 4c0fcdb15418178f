//! The HTTP job service, seen from outside.

mod access;
pub mod clients;
pub mod contract;
pub mod fixture;
mod jobs;
mod kills;
mod logs;
mod order;
pub mod process;
mod refusals;
pub mod remote;
mod remote_executor;
mod remote_jobs;
mod submissions;
pub mod uploads;
mod workers;
