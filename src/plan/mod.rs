//! Plan nodes of the query language: logical, physical, planner twins.
