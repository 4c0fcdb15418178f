//! Newest row of each key, over Arrow batches.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::Int64Type;
use arrow::error::ArrowError;
use arrow::row::{OwnedRow, RowConverter, SortField};

/// Keeps the last row of each key of one batch, in order.
pub(crate) fn keep_newest_rows(batch: &RecordBatch, key: &[usize]) -> Result<RecordBatch, ArrowError> {
    let mut newest = Newest::new(batch, key, None)?;
    newest.add(batch)?;
    let masks = newest.masks();
    match masks.first() {
        Some(mask) if mask.true_count() < batch.num_rows() => filter_record_batch(batch, mask),
        _ => Ok(batch.clone()),
    }
}

/// Finds the newest row of each key over batches that are added one by one.
#[derive(Debug)]
pub(crate) struct Newest {
    converter: RowConverter,
    key: Vec<usize>,
    seq: Option<usize>,
    newest: HashMap<OwnedRow, Place>,
    rows: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    seq: i64,
    batch: usize,
    row: usize,
}

impl Newest {
    /// `key` and `seq` are positions in the batches; without `seq` later rows are newer.
    pub(crate) fn new(like: &RecordBatch, key: &[usize], seq: Option<usize>) -> Result<Self, ArrowError> {
        let fields = key
            .iter()
            .map(|i| SortField::new(like.column(*i).data_type().clone()))
            .collect();
        Ok(Self {
            converter: RowConverter::new(fields)?,
            key: key.to_vec(),
            seq,
            newest: HashMap::new(),
            rows: Vec::new(),
        })
    }

    /// Adds the rows of a batch. On equal `seq` the row added later is newer.
    pub(crate) fn add(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let keys: Vec<_> = self.key.iter().map(|i| batch.column(*i).clone()).collect();
        let keys = self.converter.convert_columns(&keys)?;
        let seqs = self.seq.map(|i| batch.column(i).as_primitive::<Int64Type>());
        let index = self.rows.len();
        for (row, key) in keys.iter().enumerate() {
            let place = Place {
                seq: seqs.map_or(0, |seqs| seqs.value(row)),
                batch: index,
                row,
            };
            match self.newest.entry(key.owned()) {
                Entry::Vacant(entry) => {
                    entry.insert(place);
                }
                Entry::Occupied(mut entry) if entry.get().seq <= place.seq => {
                    entry.insert(place);
                }
                Entry::Occupied(_) => {}
            }
        }
        self.rows.push(batch.num_rows());
        Ok(())
    }

    /// Which rows of each batch are the newest of their key.
    pub(crate) fn masks(&self) -> Vec<BooleanArray> {
        let mut masks: Vec<Vec<bool>> = self.rows.iter().map(|rows| vec![false; *rows]).collect();
        for place in self.newest.values() {
            masks[place.batch][place.row] = true;
        }
        masks.into_iter().map(BooleanArray::from).collect()
    }

    /// Memory of the keys seen.
    pub(crate) fn bytes(&self) -> usize {
        let keys: usize = self.newest.keys().map(|key| key.as_ref().len()).sum();
        keys + self.newest.len() * (size_of::<OwnedRow>() + size_of::<Place>())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use arrow::array::{ArrayRef, Int64Array, StringArray};
    use std::sync::Arc;

    fn batch(keys: Vec<&str>, seqs: Vec<i64>) -> RecordBatch {
        RecordBatch::try_from_iter([
            ("k", Arc::new(StringArray::from(keys)) as ArrayRef),
            ("s", Arc::new(Int64Array::from(seqs)) as ArrayRef),
        ])
        .unwrap()
    }

    #[test]
    fn the_newest_row_of_each_key_stays_whatever_the_order_of_batches() {
        let (old, new) = (
            batch(vec!["a", "b", "a"], vec![1, 2, 3]),
            batch(vec!["b", "c", "c"], vec![4, 5, 5]),
        );
        for (first, second) in [(&old, &new), (&new, &old)] {
            let mut newest = Newest::new(first, &[0], Some(1)).unwrap();
            newest.add(first).unwrap();
            newest.add(second).unwrap();
            let kept: usize = newest.masks().iter().map(BooleanArray::true_count).sum();
            assert_eq!(kept, 3);
            assert!(newest.bytes() > 0);
        }
        let kept = keep_newest_rows(&old, &[0]).unwrap();
        assert_eq!(kept.column(1).as_primitive::<Int64Type>().values(), &[2, 3]);
        assert_eq!(
            keep_newest_rows(&batch(vec!["a"], vec![1]), &[0]).unwrap().num_rows(),
            1
        );
    }
}
