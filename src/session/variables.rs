//! Session variables under the prefix `clade`, set by `SET clade.x = …`.

use datafusion::common::config::ConfigExtension;
use datafusion::common::extensions_options;

extensions_options! {
    /// Variables of a session. An empty text means that the variable is not set and the configured default holds.
    pub struct CladeVariables {
        /// Run that `run.*` and the policies show.
        pub run_id: String, default = String::new()
        /// Snapshot that statements read; empty for the newest.
        pub snapshot: String, default = String::new()
        /// Generator of EXPAND and EVOLVE.
        pub model: String, default = String::new()
        /// Executor of EXPAND and EVOLVE.
        pub sandbox: String, default = String::new()
        /// Policy of EVOLVE.
        pub policy: String, default = String::new()
    }
}

impl ConfigExtension for CladeVariables {
    const PREFIX: &'static str = "clade";
}
