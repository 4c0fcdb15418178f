//! Opening checkpoints, and their tokenizers and chat templates, compared with what transformers, tokenizers and gguf make of them.
//! `lm/tests/reference/load.py` makes the files in `fixtures`.

mod chats;
mod faults;
mod models;
mod pull;
mod smollm2;
mod support;
mod tokenizers;
