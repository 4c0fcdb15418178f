//! Clade: an embedded analytical database for the evolution of machine-learning programs.
//!
//! Search history is tables, selection policies are views, and `SELECT … EXPAND WITH improve` turns rows into
//! model generations and sandbox jobs whose results come back as rows.

pub mod cli;
pub mod config;
pub mod dialect;
pub mod engine;
pub mod error;
mod figures;
pub mod grading;
pub mod gym;
pub mod memory;
pub mod model;
mod named_file;
pub mod operators;
pub mod plan;
pub mod plot;
pub mod policy;
pub mod report;
pub mod router;
pub mod sandbox;
pub mod scheduler;
pub mod service;
pub mod session;
pub mod suite;
pub mod templates;
mod turns;
pub mod worker;
