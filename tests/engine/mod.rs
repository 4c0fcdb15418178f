//! The engine as a whole: statements, searches, faults, on real stores.

pub mod fixture;
pub mod instant;
mod meeting;
pub mod metered;
mod money;
mod own_policies;
mod query_notes;
mod reference;
mod search;
mod slt;
mod statements;
mod stops;
