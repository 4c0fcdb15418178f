//! `[access]`: what statements may reach. What this configuration sets up itself is not bound by it.

use serde::{Deserialize, Serialize};

/// What statements may reach: patterns, separated by spaces, in which `*` stands for any letters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessConfig {
    /// Hosts that CREATE MODEL may name.
    pub model_hosts: String,
    /// Environment variables that CREATE MODEL may name as holding an API key.
    pub key_variables: String,
}
