//! The query language: text to statements.
