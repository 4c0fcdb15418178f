//! Benchmarks: suites of searches, final selection and grading, competitions of MLE-Bench.

mod command;
mod mle_bench;
pub mod naturebench;
mod profiles;
mod protocols;
mod selection;
mod suites;
