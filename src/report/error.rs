//! Why there is no page.

use clade_catalog::StoreError;
use datafusion::error::DataFusionError;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The run or its task is gone.
    #[error("run {0} or its task is not in this store; `clade runs` lists the runs")]
    Unknown(String),
    /// The suite is gone.
    #[error("there is no suite {0} in this store; `clade bench list` lists the suites")]
    UnknownSuite(String),
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A query failed.
    #[error("the report's {what} could not be read: {source}")]
    Query {
        /// Name of the query under `sql/report/`.
        what: &'static str,
        /// Why.
        source: Box<DataFusionError>,
    },
    /// The page could not be written.
    #[error("the page could not be written: {0}")]
    Page(#[from] minijinja::Error),
    /// The programs could not be packed.
    #[error("the programs could not be packed into the page: {0}")]
    Pack(#[from] std::io::Error),
}

impl ReportError {
    /// An error of a query.
    pub(super) fn query(what: &'static str) -> impl FnOnce(DataFusionError) -> Self {
        move |source| Self::Query {
            what,
            source: Box::new(source),
        }
    }
}
