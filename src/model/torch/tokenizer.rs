//! The tokenizer of weights, without the weights.

use std::path::Path;
use std::sync::Arc;

use clade_lm_api::messages::{CloseTokenizer, Count, OpenTokenizer};
use clade_lm_api::{ApiError, Library};
use tokio::task::spawn_blocking;
use tracing::warn;

use super::library::library;
use super::loaded::LoadError;

/// A tokenizer that is open. Dropping it closes it.
#[derive(Debug)]
pub struct LocalTokenizer {
    host: Arc<Library>,
    handle: u64,
}

impl LocalTokenizer {
    /// Opens the tokenizer of a folder or file.
    ///
    /// # Errors
    /// When there is no libtorch, or no tokenizer that can be read.
    pub async fn open(path: &Path) -> Result<Self, LoadError> {
        let path = path.to_owned();
        let opened = spawn_blocking(move || -> Result<Self, LoadError> {
            let host = library()?;
            let handle = host.call(&OpenTokenizer { path })?.tokenizer;
            Ok(Self { host, handle })
        });
        opened.await?
    }

    /// Tokens of a text.
    ///
    /// # Errors
    /// When it cannot be tokenized.
    pub fn count(&self, text: &str) -> Result<usize, ApiError> {
        let text = text.to_owned();
        let tokenizer = self.handle;
        Ok(self.host.call(&Count { tokenizer, text })?.tokens)
    }
}

impl Drop for LocalTokenizer {
    fn drop(&mut self) {
        let tokenizer = self.handle;
        if let Err(error) = self.host.call(&CloseTokenizer { tokenizer }) {
            warn!(%error, "a tokenizer was not given back");
        }
    }
}
