//! The scripted generator with a price, so that what is paid can be counted.

use async_trait::async_trait;
use clade::model::{GenerateRequest, Generator, ModelError, ModelInfo, Sample, TokenPrice};
use tokio_util::sync::CancellationToken;

use super::instant::Scripted;

/// Tokens of every reply.
pub const TOKENS: i64 = 12;

#[derive(Debug, Default)]
pub struct Metered(Scripted);

#[async_trait]
impl Generator for Metered {
    fn name(&self) -> &str {
        "metered"
    }

    fn describe(&self) -> ModelInfo {
        ModelInfo::metered("test", Some(TokenPrice::flat(1.0, 2.0)))
    }

    async fn generate(&self, request: &GenerateRequest, cancel: &CancellationToken) -> Result<Sample, ModelError> {
        let sample = self.0.generate(request, cancel).await?;
        Ok(Sample {
            tokens_prompt: Some(7),
            tokens_completion: Some(5),
            cost_usd: Some(17.0 / 1e6),
            ..sample
        })
    }
}
