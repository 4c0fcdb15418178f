//! The command line: every test runs the real program.

mod config;
mod evolve;
pub mod fixture;
mod help;
mod history;
mod shell;
mod sql;
mod terminal;
mod usage;
