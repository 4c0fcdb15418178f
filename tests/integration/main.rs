//! One binary for all integration tests: one module an area.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../sandbox/mod.rs"]
mod sandbox;
