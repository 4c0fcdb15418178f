//! What EXPLAIN of an EXPAND says of a model whose weights are here.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, Int64Type};
use async_trait::async_trait;
use clade::engine::{OpenMode, Session};
use clade::model::{GenerateRequest, Generator, MemoryNeeds, ModelError, ModelInfo, Sample, TokenPrice};
use tokio_util::sync::CancellationToken;

use super::fixture::{Fixture, add_task, instant, open_store, rows, session};
use super::instant::{Instant, Scripted};

const MIB: u64 = 1 << 20;

/// The scripted generator as a model of 300 MiB with a cache of 100 MiB.
#[derive(Debug)]
struct Local {
    name: &'static str,
    free_bytes: u64,
    scripted: Scripted,
}

impl Local {
    fn new(name: &'static str, free_bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            name,
            free_bytes,
            scripted: Scripted::default(),
        })
    }
}

#[async_trait]
impl Generator for Local {
    fn name(&self) -> &str {
        self.name
    }

    fn describe(&self) -> ModelInfo {
        ModelInfo::metered("test", Some(TokenPrice::flat(0.0, 0.0)))
    }

    async fn generate(&self, request: &GenerateRequest, cancel: &CancellationToken) -> Result<Sample, ModelError> {
        let sample = self.scripted.generate(request, cancel).await?;
        let latency = Duration::from_millis(5);
        tokio::time::sleep(latency).await;
        Ok(Sample {
            tokens_prompt: Some(70),
            tokens_completion: Some(50),
            latency,
            ..sample
        })
    }

    async fn memory(&self) -> Result<Option<MemoryNeeds>, ModelError> {
        Ok(Some(MemoryNeeds {
            weight_bytes: 300 * MIB,
            cache_bytes: Some(100 * MIB),
            free_bytes: Some(self.free_bytes),
        }))
    }
}

/// The one row of an EXPLAIN.
struct Explained(RecordBatch);

impl Explained {
    async fn of(client: &Session, what: &str) -> Self {
        let batches = rows(client, &format!("EXPLAIN {what}")).await.unwrap();
        Self(batches.into_iter().find(|batch| batch.num_rows() == 1).unwrap())
    }

    fn column(&self, name: &str) -> &dyn Array {
        self.0.column_by_name(name).unwrap()
    }

    fn int(&self, name: &str) -> Option<i64> {
        let column = self.column(name).as_primitive::<Int64Type>();
        column.is_valid(0).then(|| column.value(0))
    }

    fn float(&self, name: &str) -> Option<f64> {
        let column = self.column(name).as_primitive::<Float64Type>();
        column.is_valid(0).then(|| column.value(0))
    }

    fn note(&self) -> Option<&str> {
        let column = self.column("note").as_string::<i32>();
        column.is_valid(0).then(|| column.value(0))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_is_told_at_once_and_time_once_it_was_measured() {
    let fixture = Fixture::new();
    let engine = open_store(
        &fixture.store(),
        &[],
        vec![
            Local::new("nearby", 500 * MIB) as _,
            Local::new("large", 350 * MIB) as _,
            Arc::new(Scripted::default()) as _,
        ],
        instant(Arc::new(Instant::default())),
        OpenMode::Create,
    )
    .await
    .unwrap();
    add_task(&engine, "toy").await;
    let client = session(&engine);
    let draft = |model: &str| format!("SELECT 'toy' AS task_id EXPAND WITH draft USING MODEL {model}");

    let first = Explained::of(&client, &draft("nearby")).await;
    assert_eq!(
        (first.int("weight_bytes"), first.int("cache_bytes")),
        (Some(300 << 20), Some(100 << 20))
    );
    assert_eq!(
        (first.float("model_seconds"), first.float("tokens_per_second")),
        (None, None)
    );
    assert_eq!(first.note(), Some("time: unknown until the first generation"));
    let large = Explained::of(&client, &draft("large")).await;
    assert_eq!(
        large.note(),
        Some("memory: weights and cache need 400 MiB, 350 MiB are free; time: unknown until the first generation")
    );

    rows(
        &client,
        "SELECT 'toy' AS task_id EXPAND WITH draft (samples => 6, seed => 7) USING MODEL nearby",
    )
    .await
    .unwrap();
    let measured = "SELECT sum(tokens_completion) / (sum(arrow_cast(finished_at, 'Int64') - arrow_cast(started_at, 'Int64')) / 1e6)
                    FROM evo.generations WHERE model = 'nearby'";
    let measured = rows(&client, measured).await.unwrap();
    let measured = measured[0].column(0).as_primitive::<Float64Type>().value(0);
    let then = Explained::of(&client, &draft("nearby")).await;
    let speed = then.float("tokens_per_second").unwrap();
    assert!((speed / measured - 1.0).abs() < 1e-9, "{speed}, {measured}");
    assert_eq!(
        (then.int("tokens_prompt"), then.int("tokens_completion")),
        (Some(70), Some(50))
    );
    assert!(then.float("model_seconds").unwrap() > 0.0);
    assert_eq!((then.int("weight_bytes"), then.note()), (Some(300 << 20), None));

    // Improve has no history of its own: what the model wrote for others is the best there is.
    let improve =
        "SELECT node_id AS parent_id FROM evo.nodes WHERE NOT is_buggy LIMIT 1 EXPAND WITH improve USING MODEL ";
    let other = Explained::of(&client, &format!("{improve}nearby")).await;
    assert_eq!((other.int("tokens_completion"), other.note()), (Some(50), None));
    assert!((other.float("model_seconds").unwrap() * speed / 50.0 - 1.0).abs() < 1e-9);

    // A model that is elsewhere takes no memory here, and there is nothing to note.
    let elsewhere = Explained::of(&client, &format!("{improve}scripted")).await;
    assert_eq!(
        (
            elsewhere.int("weight_bytes"),
            elsewhere.int("cache_bytes"),
            elsewhere.note()
        ),
        (None, None, None)
    );
}
