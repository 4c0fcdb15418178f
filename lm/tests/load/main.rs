//! Opening checkpoints, and their tokenizers and chat templates, compared with what transformers, tokenizers and gguf make of them.
//! `lm/tests/reference/load.py` and `smollm2.py` make the files in `fixtures`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod chats;
mod faults;
mod models;
mod pull;
mod smollm2;
mod support;
mod tokenizers;
