//! Text and tokens: tokenizers, detokenizing a stream, chat templates.

mod chat;
mod detokenizer;
pub(crate) mod gguf;
pub(crate) mod hugging_face;
mod tokenizer;

pub use self::chat::{ChatOptions, ChatTemplate, Json};
pub use self::detokenizer::Detokenizer;
pub use self::tokenizer::Tokenizer;
