//! From the facts of an attempt to the reply of its model: context, prompt, cache, generator, and what that would cost.

pub mod context;
pub mod estimate;
pub mod generate;
pub mod overview;
pub mod prepare;
pub mod preview;
pub mod reply;
