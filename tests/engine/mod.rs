//! The engine as a whole: statements, searches, faults, on real stores.

mod fixture;
mod instant;
mod search;
mod slt;
mod statements;
