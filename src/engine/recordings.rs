//! Recorded generations for the model `replay`, from `evo.generations`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use datafusion::common::ScalarValue;

use crate::model::{RecordedGenerations, Sample, UsageDetails};
use crate::session::Queries;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Recorded generations of a store.
#[derive(Debug)]
pub struct StoreRecordings {
    queries: Arc<Queries>,
    store: clade_catalog::Store,
}

const FOUND: &str = "SELECT response, response_bytes, response_hash, reasoning, finish_reason, tokens_prompt, tokens_completion, cost_usd
 FROM evo.generations WHERE response IS NOT NULL AND coalesce(error_class, 'candidate') = 'candidate' AND ";

impl StoreRecordings {
    /// Recordings of a store.
    pub fn new(queries: Arc<Queries>, store: clade_catalog::Store) -> Self {
        Self { queries, store }
    }

    async fn first(&self, condition: &str, parameters: &[(&str, ScalarValue)]) -> Result<Option<Sample>, Error> {
        let sql = format!("{FOUND}{condition} ORDER BY finished_at LIMIT 1");
        let rows = self.queries.rows(&sql, parameters, None, None).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let mut text = row.text("response")?;
        let bytes = row.optional_int("response_bytes")?.unwrap_or_default();
        if i64::try_from(text.len()).unwrap_or(i64::MAX) != bytes {
            // The row keeps head and tail of a long reply; the whole is a blob.
            text = String::from_utf8_lossy(&self.store.get_blob(&row.text("response_hash")?).await?).into_owned();
        }
        let unsigned = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
        Ok(Some(Sample {
            text,
            reasoning: row.optional_text("reasoning")?,
            finish_reason: row.optional_text("finish_reason")?.unwrap_or_default(),
            tokens_prompt: unsigned(row.optional_int("tokens_prompt")?),
            tokens_completion: unsigned(row.optional_int("tokens_completion")?),
            usage: UsageDetails::default(),
            cost_usd: row.optional_float("cost_usd")?,
            cached: true,
            latency: Duration::ZERO,
        }))
    }
}

#[async_trait]
impl RecordedGenerations for StoreRecordings {
    async fn by_request_hash(&self, request_hash: &str) -> Result<Option<Sample>, Error> {
        self.first("request_hash = $hash", &[("hash", ScalarValue::from(request_hash))])
            .await
    }

    async fn by_attempt_key(&self, attempt_key: &str) -> Result<Option<Sample>, Error> {
        let parts: Vec<&str> = attempt_key.split('/').collect();
        let [version, prompt_hash, seed, sample] = parts.as_slice() else {
            return Ok(None);
        };
        self.first(
            "operator_version = $version AND prompt_hash = $prompt AND seed = $seed AND sample = $sample",
            &[
                ("version", ScalarValue::from(*version)),
                ("prompt", ScalarValue::from(*prompt_hash)),
                ("seed", ScalarValue::from(seed.parse::<i64>()?)),
                ("sample", ScalarValue::from(sample.parse::<i64>()?)),
            ],
        )
        .await
    }
}
