//! Executors and the evaluator: running candidate programs in isolation.
