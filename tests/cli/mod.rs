//! The command line: every test runs the real program.

mod config;
mod evolve;
pub mod fixture;
mod help;
mod history;
mod interrupt;
mod model;
mod prompt;
mod shell;
mod sql;
pub mod tasks;
mod terminal;
mod usage;
