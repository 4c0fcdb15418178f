//! Golden vectors of what is more than a function: board and cards through the export, memory and selection through the shipped SQL.

mod board;
mod cards;
#[path = "harness/mod.rs"]
mod harness;
mod history;
mod islands;
mod memory;
mod outcomes;
mod totals;
