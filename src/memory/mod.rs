//! Memory in words: what a memory model says of the programs that a prompt is about to show (paper, section 5). Facts are rows of their
//! own; words are made for nodes that are shown, once a node, and kept in `evo.summaries`.

mod facts;
mod prompt;
mod summary;

pub use facts::{FACTS_SQL, NodeFacts, ParentFacts, SAME_REQUEST_SQL, STORED_SQL};
pub use prompt::{MemoryPromptError, MemoryPrompts};
pub use summary::{LONGEST_FIELD, Summary, SummaryFault};
