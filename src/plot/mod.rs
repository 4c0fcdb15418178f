//! Pictures of a search.
