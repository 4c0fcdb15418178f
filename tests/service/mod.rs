//! The HTTP job service, seen from outside.

mod access;
mod clients;
mod contract;
mod fixture;
mod jobs;
mod kills;
mod logs;
mod order;
mod refusals;
mod remote;
mod remote_executor;
mod remote_jobs;
mod submissions;
mod uploads;
mod workers;
