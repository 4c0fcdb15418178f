//! One binary for all integration tests: one module an area.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../shared/mod.rs"]
mod shared;

#[path = "../gym/mod.rs"]
mod gym;
#[path = "../sandbox/mod.rs"]
mod sandbox;

#[path = "../bench/mod.rs"]
mod bench;
#[path = "../cli/mod.rs"]
mod cli;
#[path = "../engine/mod.rs"]
mod engine;
#[path = "../model/mod.rs"]
mod model;
#[path = "../vectors/mod.rs"]
mod vectors;

#[path = "../crash/mod.rs"]
mod crash;
#[path = "../peers/mod.rs"]
mod peers;
#[path = "../readers/mod.rs"]
mod readers;
#[path = "../report/mod.rs"]
mod report;
#[path = "../service/mod.rs"]
mod service;

#[path = "../router/mod.rs"]
mod router;
