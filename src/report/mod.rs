//! Reports: one self-contained page about one or several runs, or about a suite.
//!
//! The rows come from `sql/report/`, all of them on one snapshot. The geometry of the charts is computed here; the page is a
//! template over it. Programs, logs and names are hostile text: templates escape them, and the texts that only the page's
//! script shows are packed so that a reader of HTML sees none of them.

mod compare;
mod draws;
mod error;
mod facts;
mod filters;
mod lineage;
mod page;
mod payload;
mod rows;
mod scale;
mod scores;
mod suite;
mod view;

use clade_catalog::Store;

use crate::session::Queries;

pub use error::ReportError;

/// Programs of a run that are drawn and listed: a page with more is slow to open. Tables count all.
const MOST_PROGRAMS: i64 = 2_000;

/// Programs that the parts of a suite's page about single searches show together; a page with more is slow to open.
const MOST_SUITE_PROGRAMS: i64 = 4_000;

/// Faults that a suite's page lists.
const MOST_FAULTS: i64 = 50;

/// A page about runs, by their whole ids.
///
/// # Errors
/// When a run or its task is not in the store, or the store cannot be read.
pub async fn report(store: &Store, queries: &Queries, runs: &[String]) -> Result<String, ReportError> {
    let snapshot = store.snapshot(None).await?;
    let source = rows::Source::new(queries, snapshot);
    let mut found = Vec::with_capacity(runs.len());
    for (number, run) in (1..).zip(runs) {
        found.push((number, facts::RunFacts::read(&source, run).await?));
    }
    page::render(&found, None)
}

/// A page about a suite, with parts about as many of its searches as [`MOST_SUITE_PROGRAMS`] lets in.
///
/// # Errors
/// When the suite is not in the store, or the store cannot be read.
pub async fn suite_report(store: &Store, queries: &Queries, suite: &str) -> Result<String, ReportError> {
    let snapshot = store.snapshot(None).await?;
    let source = rows::Source::new(queries, snapshot);
    let facts = suite::SuiteFacts::read(&source, suite).await?;
    let mut found = Vec::with_capacity(facts.parts.len());
    for (number, run) in &facts.parts {
        found.push((*number, facts::RunFacts::read(&source, run).await?));
    }
    page::render(&found, Some(&facts))
}
