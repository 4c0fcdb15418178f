//! Chat templates: how a conversation becomes a text.

mod json;
mod python;
mod template;

pub use self::json::Json;
pub(super) use self::template::SpecialTokens;
pub use self::template::{ChatOptions, ChatTemplate};
