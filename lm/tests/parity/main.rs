//! Architectures give what transformers gives, whatever steps their sequences are cut into.

#![allow(clippy::unwrap_used, clippy::panic)]

mod engine;
mod faults;
mod logits;
mod sharing;
mod support;
