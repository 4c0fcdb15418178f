//! Operators: draft, improve, debug, crossover; their context and prompts.

mod context;
mod operator;
mod prompt;

pub use context::{ContextNode, ContextSizes, context_sql};
pub use operator::{Operator, UnknownOperator};
pub use prompt::{PromptBudget, PromptError, Prompts, operator_version};
