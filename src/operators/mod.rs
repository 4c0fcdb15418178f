//! Operators: draft, improve, debug, crossover; their context and prompts.

mod operator;

pub use operator::{Operator, UnknownOperator};
