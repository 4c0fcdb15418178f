//! What a statement says beside its rows.

/// One line for the person who sent the statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// What was done, or what is shown.
    Info(String),
    /// Why the rows may not be what was meant, and what to do.
    Warning(String),
}
