//! Operators: draft, improve, debug, crossover; their context and prompts.

mod change;
mod context;
mod cut;
mod facts;
mod operator;
mod packages;
mod prompt;
mod sample;
mod skills;
#[cfg(test)]
mod tests;

pub use change::describe_changes;
pub use context::{ContextNode, ContextSizes, board_sql, context_sql, facts_sql};
pub use facts::{BoardFacts, FamilyFacts, LimitFacts, PromptBudget, PromptFacts, TaskFacts};
pub use operator::{Operator, UnknownOperator};
pub use packages::{Interpreter, Package, Packages};
pub use prompt::{Prompt, PromptError, Prompts};
pub use skills::{SkillTexts, Skills};
