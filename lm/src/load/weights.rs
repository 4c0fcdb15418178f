//! The weights of a checkpoint, which remember what was asked for.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use tch::{Device, Kind, Tensor};

use crate::error::Result;
use crate::weights::{TensorInfo, Weights};

/// Weights of a checkpoint of any format.
#[derive(Debug)]
pub struct CheckpointWeights {
    reader: Box<dyn Weights>,
    ignored: Vec<String>,
    asked: Mutex<BTreeSet<String>>,
}

impl CheckpointWeights {
    /// What a reader of a format gives, and the names in the file that are no part of a causal language model.
    pub(super) fn new(reader: Box<dyn Weights>, mut ignored: Vec<String>) -> Self {
        ignored.sort();
        if !ignored.is_empty() {
            let vision = ignored.iter().filter(|name| name.contains("vis")).count();
            let prediction = ignored.iter().filter(|name| name.contains("mtp.")).count();
            tracing::info!(
                tensors = ignored.len(),
                vision,
                multi_token_prediction = prediction,
                "tensors of the checkpoint that the language model does not use are left out"
            );
        }
        Self {
            reader,
            ignored,
            asked: Mutex::default(),
        }
    }

    /// Names, as the file has them, of tensors that are left out because they are no part of the language model: vision towers,
    /// heads that predict several tokens, rotary tables.
    #[must_use]
    pub fn ignored(&self) -> &[String] {
        &self.ignored
    }

    /// Names of tensors that nothing asked for so far. After a model was built from the checkpoint they tell what it does not know.
    #[must_use]
    pub fn unused(&self) -> Vec<String> {
        let asked = self.asked.lock();
        self.reader
            .tensors()
            .into_iter()
            .map(|tensor| tensor.name)
            .filter(|name| !asked.contains(name))
            .collect()
    }
}

impl Weights for CheckpointWeights {
    fn tensors(&self) -> Vec<TensorInfo> {
        self.reader.tensors()
    }

    fn has(&self, name: &str) -> bool {
        self.reader.has(name)
    }

    fn get(&self, name: &str, kind: Kind, device: Device) -> Result<Tensor> {
        let tensor = self.reader.get(name, kind, device)?;
        self.asked.lock().insert(name.to_owned());
        Ok(tensor)
    }
}
