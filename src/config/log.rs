//! `[log]`: what is logged to standard error.

use serde::{Deserialize, Serialize};

/// What is logged to standard error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogConfig {
    /// Level or filter, such as `warn` or `warn,clade=debug`.
    pub level: String,
    /// One JSON object a line.
    pub json: bool,
}
