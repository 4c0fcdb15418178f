//! The engine: a store with everything that works on it, and sessions that run statements.

mod columns;
mod defaults;
mod describe;
mod error;
mod expand_handler;
mod folder;
mod functions_table;
mod history;
mod leases_table;
mod models;
mod models_table;
mod names;
mod notice;
mod open;
mod output;
mod place;
mod policies;
mod problems;
mod prompts;
mod query_note;
mod recordings;
mod reference;
mod refusal;
mod session;
mod settings;
mod settings_table;
mod statements;
mod targets;
mod tasks;

pub use defaults::Defaults;
pub use error::{EngineError, Result};
#[cfg(test)]
pub(crate) use leases_table::LeasesTable;
pub use names::{NEWEST_RUN, Subject};
pub use notice::Notice;
pub use open::{Engine, Extensions, OpenMode, sandboxes};
pub use output::QueryOutput;
pub use prompts::PromptRequest;
pub use session::{Session, SessionOptions};
