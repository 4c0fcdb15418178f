//! Processes that are killed or that share a store: nothing is lost, nothing is doubled, nothing is left behind.

pub mod invariants;
mod kills;
pub mod leftovers;
mod native;
pub mod process;
mod together;
