//! Tests of the store as its users see it. One binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs
)]

mod mount;
mod support;

mod cold;
mod commits;
mod concurrency;
mod evolution;
mod failures;
mod processes;
mod properties;
mod s3;
