//! Sessions: the only place that builds DataFusion state, so that functions, views, policies and planners are the same for the
//! command line, the engine's own queries and every test.

mod build;
mod docs;
mod queries;
mod result_rows;
mod variables;

pub use build::{CATALOG, Catalog, DEFAULT_SCHEMA, POLICY_SCHEMA, RUN_SCHEMA, build};
pub use docs::{ColumnDescription, TableDescription, describe};
pub use queries::Queries;
pub use result_rows::{ResultRow, ResultRows};
pub use variables::CladeVariables;
