//! One address in front of several servers of the job service, with the same routes, so that clients need not know which server has
//! their job.
//!
//! It keeps nothing that a restart would lose: what it remembers it can ask the servers for. See `docs/router.md`.

mod api;
mod caller;
mod config;
mod error;
mod figures;
mod hand_in;
mod holders;
mod key_holder;
mod memory;
mod place;
mod reload;
mod serve;
mod servers;

pub use error::RouterError;
pub use serve::{RouterOptions, RouterServer};
