//! `[prompts]`: how long prompts may be, and files of the user that they are made of.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What prompts are made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptsConfig {
    /// Most tokens of one prompt.
    pub max_tokens: u64,
    /// Folder of skills: one Markdown file a task, and `general.md` for every task.
    pub skills: Option<PathBuf>,
    /// Folder of templates that take the place of the built-in ones of the same names.
    pub templates: Option<PathBuf>,
}
