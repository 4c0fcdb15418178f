//! The engine as its callers see it, over a model that gives every mistake away. One binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod model;
mod support;

mod batching;
mod faults;
mod output;
mod service;
mod sharing;
