//! Asking a server how it does, again and again.

use std::sync::Arc;
use std::time::Instant;

use reqwest::Method;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::Server;
use super::reply::Reply;
use super::state::Told;
use crate::error::with_causes;
use crate::service::api::types::Health;

/// Asks a server how it does until `stop`.
pub(in crate::router) async fn poll_forever(server: Arc<Server>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(server.times.poll) => {}
            () = stop.cancelled() => return,
        }
        tokio::select! {
            () = server.poll() => {}
            () = stop.cancelled() => return,
        }
    }
}

impl Server {
    /// Asks how it does.
    pub(in crate::router) async fn poll(&self) {
        let asked_at = Instant::now();
        let told = match timeout(self.times.poll_answer, self.ask_health()).await {
            Ok(Ok(health)) => Ok(Told {
                asked_at,
                load: health.classes,
                is_stopping: health.status != "ok",
                version: health.version,
            }),
            Ok(Err(fault)) => Err(fault),
            Err(_) => Err(format!("no answer in {:?}", self.times.poll_answer)),
        };
        self.note(told);
    }

    async fn ask_health(&self) -> Result<Health, String> {
        let request = self.http.request(Method::GET, format!("{}/api/v1/health", self.url));
        let response = request
            .send()
            .await
            .map_err(|error| with_causes(&error.without_url()))?;
        let reply = Reply::read(response).await?;
        if !reply.status.is_success() {
            return Err(format!("it answers {} to /api/v1/health", reply.status));
        }
        reply
            .json()
            .ok_or_else(|| "what it says of its health cannot be read: is it a job service?".to_owned())
    }
}
