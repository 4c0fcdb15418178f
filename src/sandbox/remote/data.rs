//! The public data of tasks at the service: a folder is sent once and named by its content from then on.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::service::Service;
use crate::sandbox::SandboxError;
use crate::service::{Packer, UPLOAD_PREFIX};

/// What is known of folders and of the service.
#[derive(Debug, Default)]
pub(super) struct Data {
    /// Names folders by their content; one that did not change is not read again.
    packer: Packer,
    /// Whether the service has it, by hash. One job sends what others wait for.
    there: Mutex<HashMap<String, Arc<tokio::sync::Mutex<bool>>>>,
}

impl Data {
    /// The id of a folder at the service, which has it when this returns.
    pub(super) async fn at(
        &self,
        service: &Service,
        folder: &Path,
        cancel: &CancellationToken,
    ) -> Result<String, SandboxError> {
        let hash = self.packer.hash(folder).await;
        let hash = hash
            .map_err(|error| SandboxError::Helper(error.to_string()))?
            .map_err(|reason| SandboxError::Config(format!("{}: {reason}", folder.display())))?;
        let id = format!("{UPLOAD_PREFIX}{hash}");
        let turn = Arc::clone(self.there.lock().entry(hash.clone()).or_default());
        let mut is_there = turn.lock().await;
        if *is_there {
            return Ok(id);
        }
        if !service.insist(cancel, || service.has_upload(&hash)).await? {
            tracing::info!(folder = %folder.display(), id, "the data is sent to the job service");
            let sent = service.insist(cancel, || service.upload(folder)).await?;
            if sent != id {
                return Err(SandboxError::Service {
                    url: service.options.url.clone(),
                    reason: format!(
                        "got other files than {} had before: it has them as {sent}",
                        folder.display()
                    ),
                    advice: "The folder changed on the way; the job can be tried again".to_owned(),
                });
            }
        }
        *is_there = true;
        Ok(id)
    }

    /// The service has no such upload any more.
    pub(super) fn forget(&self, id: &str) {
        let hash = id.strip_prefix(UPLOAD_PREFIX).unwrap_or(id);
        self.there.lock().remove(hash);
    }
}
