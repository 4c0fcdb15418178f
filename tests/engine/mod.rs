//! The engine as a whole: statements, searches, faults, on real stores.

mod estimates;
pub mod fixture;
pub mod instant;
mod kept_plans;
mod long_run;
mod meeting;
pub mod metered;
mod money;
mod own_policies;
mod pauses;
mod preflight;
mod prompts;
mod query_notes;
mod redaction;
mod reference;
mod refusals;
mod search;
mod slt;
mod statements;
mod stops;
mod summaries;
mod timed;
pub mod verbose;
