//! The memory model: one question a node, whoever shows it; what it costs; what stands in for answers that are none.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use clade::engine::{Engine, OpenMode};
use clade::model::{GenerateRequest, Generator, ModelError, ModelInfo, Sample, TextRequest, TokenPrice, UsageDetails};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::fixture::{add_task, instant, number, open_store, rows, session, table, texts};
use super::instant::{Instant, Scripted};

/// What the memory model answers.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Answer {
    Summary,
    Words,
    Nothing,
}

#[derive(Debug)]
struct Notes {
    answer: Answer,
    calls: AtomicUsize,
    last: Mutex<String>,
}

#[async_trait]
impl Generator for Notes {
    fn name(&self) -> &str {
        "notes"
    }

    fn describe(&self) -> ModelInfo {
        ModelInfo::metered("test", Some(TokenPrice::flat(1.0, 2.0)))
    }

    async fn generate(&self, _: &GenerateRequest, _: &CancellationToken) -> Result<Sample, ModelError> {
        Err(ModelError::Cancelled)
    }

    async fn answer(&self, request: &TextRequest, _: &CancellationToken) -> Result<Sample, ModelError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        assert!(
            request.messages[1].content.contains("# Program"),
            "{}",
            request.messages[1].content
        );
        self.last.lock().unwrap().clone_from(&request.messages[1].content);
        // Others who show the same node come meanwhile.
        tokio::task::yield_now().await;
        let text = match self.answer {
            Answer::Nothing => {
                return Err(ModelError::Unreachable {
                    model: "notes".into(),
                    message: "no route to host".into(),
                });
            }
            Answer::Words => "It is a forest.".to_owned(),
            Answer::Summary => {
                r#"{"method_overview": "OVERVIEW.", "parent_comparison_experience": "LESSON."}"#.to_owned()
            }
        };
        Ok(Sample {
            text,
            reasoning: None,
            finish_reason: "stop".into(),
            tokens_prompt: Some(100),
            tokens_completion: Some(10),
            usage: UsageDetails::default(),
            cost_usd: Some(120.0 / 1e6),
            cached: false,
            latency: Duration::from_millis(250),
        })
    }
}

struct Place {
    folder: TempDir,
    notes: Arc<Notes>,
}

impl Place {
    fn new(answer: Answer) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            notes: Arc::new(Notes {
                answer,
                calls: AtomicUsize::default(),
                last: Mutex::default(),
            }),
        }
    }

    async fn open(&self, mode: OpenMode) -> Arc<Engine> {
        self.open_with(mode, &[]).await
    }

    async fn open_with(&self, mode: OpenMode, settings: &[&str]) -> Arc<Engine> {
        let models: Vec<Arc<dyn Generator>> = vec![Arc::new(Scripted::default()), Arc::clone(&self.notes) as _];
        let sandbox = instant(Arc::new(Instant::default()));
        let store = self.folder.path().join("store");
        let engine = open_store(&store, settings, models, sandbox, mode).await.unwrap();
        if mode == OpenMode::Create {
            add_task(&engine, "toy").await;
        }
        engine
    }

    fn calls(&self) -> i64 {
        i64::try_from(self.notes.calls.load(Ordering::SeqCst)).unwrap()
    }
}

fn evolve(id: &str) -> String {
    format!(
        "EVOLVE TASK 'toy' WITH (steps => 30, mode => 'generation', workers => 4, seed => 5, memory_model => 'notes', id => '{id}')"
    )
}

const SHOWN: &str = "SELECT count(DISTINCT u.node_id) FROM evo.prompts_used u JOIN evo.nodes n ON n.node_id = u.node_id WHERE n.code IS NOT NULL";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_asked_about_once_and_the_answer_is_kept_and_paid() {
    let place = Place::new(Answer::Summary);
    let engine = place.open(OpenMode::Create).await;
    let client = session(&engine);
    rows(&client, &evolve("r")).await.unwrap();
    let shown = number(&client, SHOWN).await;
    assert!(shown > 5, "{shown}");
    assert_eq!(number(&client, "SELECT count(*) FROM evo.summaries").await, shown);
    assert_eq!(place.calls(), shown);
    let sources = "SELECT DISTINCT source FROM evo.summaries";
    assert_eq!(texts(&client, sources).await, ["model"]);
    let told =
        "SELECT count(*) FROM evo.generations WHERE operator = 'improve' AND prompt NOT LIKE '%OVERVIEW.%LESSON.%'";
    let improves = "SELECT count(*) FROM evo.generations WHERE operator = 'improve'";
    assert!(number(&client, improves).await > 3);
    // An improvement whose prompt shows its parent alone has nobody to tell of.
    let alone = "SELECT count(*) FROM (SELECT g.attempt_id FROM evo.generations g JOIN evo.nodes n ON n.attempt_id = g.attempt_id
                 JOIN evo.prompts_used u ON u.generation_id = g.generation_id WHERE g.operator = 'improve' GROUP BY 1 HAVING count(*) = 1)";
    assert!(number(&client, told).await <= number(&client, alone).await);
    let paid =
        "SELECT CAST(round(spent * 1e6) AS BIGINT) FROM system.budgets WHERE scope = 'r' AND resource = 'cost_usd'";
    assert_eq!(number(&client, paid).await, shown * 120);
    let held = "SELECT CAST(sum(reserved) AS BIGINT) FROM system.budgets";
    assert_eq!(number(&client, held).await, 0);
    drop(client);
    drop(engine);

    // Another process shows the same nodes and asks nothing.
    let engine = place.open(OpenMode::Existing).await;
    let client = session(&engine);
    let again = "SELECT node_id AS parent_id FROM evo.nodes WHERE NOT is_buggy AND node_id IN (SELECT node_id FROM evo.summaries)
                 ORDER BY step LIMIT 1 EXPAND WITH improve (memory_model => 'notes', seed => 1)";
    let before = place.calls();
    rows(&client, again).await.unwrap();
    let new = number(&client, "SELECT count(*) FROM evo.summaries").await - shown;
    assert_eq!(place.calls() - before, new);
    // A repeated search asks only what was not asked.
    rows(&client, &evolve("again")).await.unwrap();
    let cached = "SELECT count(*) FROM evo.summaries WHERE source = 'cache'";
    assert_eq!(number(&client, cached).await, shown);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_question_is_a_template_of_the_user_and_other_words_ask_anew() {
    let place = Place::new(Answer::Summary);
    let engine = place.open(OpenMode::Create).await;
    rows(&session(&engine), &evolve("r")).await.unwrap();
    let shown = number(&session(&engine), SHOWN).await;
    assert_eq!(place.calls(), shown);
    drop(engine);

    let folder = place.folder.path().join("prompts");
    std::fs::create_dir_all(folder.join("memory")).unwrap();
    let own = "# Program\n{{ node.code }}\nWhat does this {{ node.operator }} teach for {{ task.metric }}?\n";
    std::fs::write(folder.join("memory/summary.j2"), own).unwrap();
    let settings = [format!("prompts.templates={}", folder.display())];
    let settings = settings.each_ref().map(String::as_str);
    for (id, asked) in [("own", shown), ("own_again", 0)] {
        let engine = place.open_with(OpenMode::Existing, &settings).await;
        let before = place.calls();
        rows(&session(&engine), &evolve(id)).await.unwrap();
        assert_eq!(place.calls() - before, asked, "{id}");
    }
    let asked = place.notes.last.lock().unwrap().clone();
    assert!(asked.contains(" teach for ") && !asked.contains("# Outcome"), "{asked}");
    // The words of operators are what they were, so are their versions and the replies in the cache.
    let engine = place.open(OpenMode::Existing).await;
    let versions = "SELECT count(*) FROM (SELECT operator FROM evo.generations GROUP BY operator HAVING count(DISTINCT operator_version) > 1)";
    assert_eq!(number(&session(&engine), versions).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_no_summary_is_kept_with_its_fault_and_the_facts_stand_in() {
    let place = Place::new(Answer::Words);
    let engine = place.open(OpenMode::Create).await;
    let client = session(&engine);
    rows(&client, &evolve("r")).await.unwrap();
    let shown = number(&client, SHOWN).await;
    assert_eq!(place.calls(), shown);
    let kinds = "SELECT source, fault, answer, count(*) > 5 AS many FROM evo.summaries GROUP BY 1, 2, 3";
    insta::assert_snapshot!(table(&client, kinds).await);
    let good = "SELECT s.parent_comparison_experience FROM evo.summaries s JOIN evo.nodes n ON n.node_id = s.node_id
                WHERE NOT n.is_buggy AND n.operator = 'draft' ORDER BY n.step LIMIT 1";
    let told = texts(&client, good).await.remove(0);
    assert!(told.starts_with("Validation score 0."), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_goes_on_without_its_memory_model() {
    let place = Place::new(Answer::Nothing);
    let engine = place.open(OpenMode::Create).await;
    let client = session(&engine);
    rows(&client, &evolve("r")).await.unwrap();
    assert_eq!(number(&client, "SELECT count(*) FROM evo.nodes").await, 30);
    assert_eq!(number(&client, "SELECT count(*) FROM evo.summaries").await, 0);
    assert!(place.calls() > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_that_cannot_hold_the_question_is_not_overspent() {
    let place = Place::new(Answer::Summary);
    let engine = place.open(OpenMode::Create).await;
    let client = session(&engine);
    // 110 tokens are used by an answer, but several thousand have to be reserved for one.
    let sql = evolve("r").replace("steps", "max_tokens => 8000, steps");
    rows(&client, &sql).await.unwrap();
    let budget = "SELECT count(*) FROM system.budgets WHERE scope = 'r' AND resource = 'tokens' AND spent <= 8000 AND reserved = 0";
    assert_eq!(number(&client, budget).await, 1);
    assert_eq!(number(&client, "SELECT count(*) FROM evo.nodes").await, 30);
    let made = number(&client, "SELECT count(*) FROM evo.summaries").await;
    assert!(made > 0 && made < number(&client, SHOWN).await, "{made}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_memory_model_has_to_write_texts() {
    let place = Place::new(Answer::Summary);
    let engine = place.open(OpenMode::Create).await;
    let client = session(&engine);
    let refused = [
        evolve("r").replace("notes", "evolver"),
        evolve("r").replace("notes", "nobody"),
        "SELECT 'toy' AS task_id EXPAND WITH draft (memory_model => 'scripted')".to_owned(),
    ];
    let mut shown = Vec::new();
    for sql in refused {
        shown.push(rows(&client, &sql).await.unwrap_err().to_string());
    }
    insta::assert_snapshot!(shown.join("\n"));
    let without = evolve("r").replace("'notes'", "'none'");
    rows(&client, &without).await.unwrap();
    assert_eq!(place.calls(), 0);
}
