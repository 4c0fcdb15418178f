//! Architectures give what transformers gives, whatever steps their sequences are cut into.

mod faults;
mod logits;
mod sharing;
mod support;
