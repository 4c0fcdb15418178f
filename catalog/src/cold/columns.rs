//! Decoded columns of cold files. A file is never changed under its name, so a column that was decoded stays right; those
//! that were used longest ago go when the memory is used up.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef};
use parking_lot::Mutex;

/// Columns of cold files by path of the file and position in the full schema.
#[derive(Debug)]
pub(crate) struct ColumnCache {
    limit: usize,
    kept: Mutex<Kept>,
    /// Held while columns are decoded, so that the scans of one statement do not decode the same column side by side.
    pub(crate) decoding: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Kept {
    columns: HashMap<String, HashMap<usize, Column>>,
    bytes: usize,
    uses: u64,
}

#[derive(Debug)]
struct Column {
    values: ArrayRef,
    bytes: usize,
    used: u64,
}

impl ColumnCache {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            kept: Mutex::default(),
            decoding: tokio::sync::Mutex::default(),
        }
    }

    /// Bytes that may be kept.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// The values of a column of a file, if they are at hand.
    pub(crate) fn get(&self, file: &str, column: usize) -> Option<ArrayRef> {
        let mut kept = self.kept.lock();
        kept.uses += 1;
        let uses = kept.uses;
        let column = kept.columns.get_mut(file)?.get_mut(&column)?;
        column.used = uses;
        Some(column.values.clone())
    }

    /// Keeps the values of a column of a file.
    pub(crate) fn put(&self, file: &str, column: usize, values: ArrayRef) {
        let bytes = values.get_array_memory_size();
        let mut kept = self.kept.lock();
        kept.uses += 1;
        let used = kept.uses;
        let columns = kept.columns.entry(file.to_owned()).or_default();
        let replaced = columns.insert(column, Column { values, bytes, used });
        kept.bytes += bytes;
        kept.bytes -= replaced.map_or(0, |column| column.bytes);
        while kept.bytes > self.limit && kept.forget_oldest() {}
    }
}

impl Kept {
    /// Forgets the column that was used longest ago; false when there is none.
    fn forget_oldest(&mut self) -> bool {
        let columns = self.columns.iter().flat_map(|(file, columns)| {
            columns
                .iter()
                .map(move |(column, kept)| (kept.used, file.clone(), *column))
        });
        let Some((_, file, column)) = columns.min() else {
            return false;
        };
        if let Some(columns) = self.columns.get_mut(&file) {
            self.bytes -= columns.remove(&column).map_or(0, |column| column.bytes);
            if columns.is_empty() {
                self.columns.remove(&file);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::sync::Arc;

    use arrow::array::Int64Array;

    use super::*;

    #[test]
    fn columns_used_longest_ago_go_first_and_the_memory_is_bounded() {
        let column = || Arc::new(Int64Array::from(vec![1; 1000])) as ArrayRef;
        let cache = ColumnCache::new(2 * column().get_array_memory_size());
        cache.put("a", 0, column());
        cache.put("b", 0, column());
        assert!(cache.get("a", 0).is_some());
        cache.put("c", 1, column());
        assert!(cache.get("a", 0).is_some() && cache.get("c", 1).is_some());
        assert!(cache.get("b", 0).is_none());
        cache.put("c", 1, column());
        assert!(cache.get("a", 0).is_some());
        assert!(cache.kept.lock().bytes <= cache.limit());
    }
}
