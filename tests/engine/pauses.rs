//! Attempts that wait for a paused model keep nobody from the budget of model and sandbox time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chrono::Utc;
use clade::engine::{Engine, OpenMode};
use clade::error::ErrorClass;
use clade::model::{GenerateRequest, Generator, ModelError, ModelInfo, Pause, Sample, TokenPrice};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::fixture::{add_task, instant, number, open_store, rows, session, texts};
use super::instant::{Instant, Scripted};
use crate::crash::invariants;

/// One attempt reserves all of the ten minutes, so only one at a time has time.
const SEARCH: &str = "EVOLVE TASK 'toy' USING MODEL moody
    WITH (steps => 4, workers => 2, seed => 3, max_model_sandbox => '10 min', id => 'r')";
const OVERSPENT: &str = "SELECT count(*) FROM system.budgets WHERE spent > \"limit\" OR reserved > 0";

/// The scripted generator, but its first request finds the model paused.
#[derive(Debug, Default)]
struct Moody {
    scripted: Scripted,
    calls: AtomicUsize,
    pause: Duration,
    answer: Duration,
}

#[async_trait]
impl Generator for Moody {
    fn name(&self) -> &str {
        "moody"
    }

    fn describe(&self) -> ModelInfo {
        ModelInfo::metered("test", Some(TokenPrice::flat(1.0, 2.0)))
    }

    async fn generate(&self, request: &GenerateRequest, cancel: &CancellationToken) -> Result<Sample, ModelError> {
        if self.calls.fetch_add(1, Ordering::SeqCst) == 0 {
            return Err(ModelError::Paused {
                model: "moody".to_owned(),
                pause: Pause {
                    until: Utc::now() + self.pause,
                    reason: "rate limited".to_owned(),
                    class: ErrorClass::RateLimit,
                },
                cause: None,
            });
        }
        tokio::time::sleep(self.answer).await;
        self.scripted.generate(request, cancel).await
    }
}

async fn engine(model: Moody) -> (TempDir, Arc<Engine>) {
    let folder = tempfile::tempdir().unwrap();
    let models = vec![Arc::new(model) as _];
    let sandbox = instant(Arc::new(Instant::default()));
    let engine = open_store(&folder.path().join("store"), &[], models, sandbox, OpenMode::Create)
        .await
        .unwrap();
    add_task(&engine, "toy").await;
    (folder, engine)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_goes_on_while_one_of_its_attempts_waits() {
    // Longer than all other attempts take together.
    let (_folder, engine) = engine(Moody {
        pause: Duration::from_secs(8),
        ..Moody::default()
    })
    .await;
    let client = session(&engine);
    rows(&client, SEARCH).await.unwrap();
    invariants::at_rest(&engine).await;
    let order = "SELECT CAST(step AS VARCHAR) FROM evo.nodes ORDER BY finished_at";
    assert_eq!(texts(&client, order).await, ["2", "3", "4", "1"]);
    // What waited is asked for again within the same try.
    let tries = "SELECT count(*) FROM evo.attempts WHERE status = 'done' AND tries > 1";
    assert_eq!(number(&client, tries).await, 0);
    assert_eq!(number(&client, OVERSPENT).await, 0);
}

/// The attempt that waited wakes while another holds all of the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_whose_time_others_hold_goes_back_and_is_taken_up_when_they_are_done() {
    let (_folder, engine) = engine(Moody {
        pause: Duration::from_secs(1),
        answer: Duration::from_secs(3),
        ..Moody::default()
    })
    .await;
    let client = session(&engine);
    rows(&client, SEARCH).await.unwrap();
    invariants::at_rest(&engine).await;
    let order = "SELECT CAST(step AS VARCHAR) FROM evo.nodes ORDER BY finished_at LIMIT 2";
    assert_eq!(texts(&client, order).await, ["2", "1"]);
    assert_eq!(number(&client, "SELECT count(*) FROM evo.nodes").await, 4);
    let finished = "SELECT count(*) FROM evo.runs WHERE status = 'finished' AND stop_reason = 'steps'";
    assert_eq!(number(&client, finished).await, 1);
    assert_eq!(number(&client, OVERSPENT).await, 0);
}
