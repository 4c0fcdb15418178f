//! Snapshots: what a statement sees.

use super::writer::Seq;

/// What a statement sees: every commit up to a number, and nothing of later ones.
///
/// Rows are never changed or removed, and every row knows its commit. So a snapshot is a number: at any later time the
/// rows of a table at that snapshot are those with `_seq` up to it, wherever they lie by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    pub(crate) seq: Seq,
    /// State of the index of cold files when the snapshot was taken; what is cached of older states is not used.
    pub(crate) cold_version: i64,
    pub(crate) policies_version: i64,
}

impl Snapshot {
    /// Number of the last commit that is seen.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// How often the policies of the store had been changed when the snapshot was taken, whatever commit it shows.
    pub fn policies_version(&self) -> i64 {
        self.policies_version
    }
}
