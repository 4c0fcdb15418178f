//! The engine as a whole: statements, searches, faults, on real stores.

pub mod fixture;
pub mod instant;
mod meeting;
pub mod metered;
mod money;
mod reference;
mod search;
mod slt;
mod statements;
