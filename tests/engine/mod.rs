//! The engine as a whole: statements, searches, faults, on real stores.

pub mod fixture;
pub mod instant;
mod reference;
mod search;
mod slt;
mod statements;
