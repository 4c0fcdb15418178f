//! Tests of the functions through SQL, against the golden vectors, and of their invariants.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod properties;
mod reference;
mod session;
mod sql;
mod vectors;
