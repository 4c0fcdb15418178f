//! Prompts of searches: bounded as history grows, recorded with what was left out, and previewed as they are sent.

use std::sync::Arc;

use async_trait::async_trait;
use clade::engine::{Engine, OpenMode, PromptRequest};
use clade::model::{GenerateRequest, Generator, ModelError, ModelInfo, Sample, UsageDetails};
use clade::operators::Operator;
use clade_catalog::{Rows, Txn};
use tokio_util::sync::CancellationToken;

use super::fixture::{Fixture, add_task, instant, number, open_store, rows, session, table, texts};
use super::instant::{Instant, Scripted};
use super::verbose::Verbose;

const WORDS: &str = "I would fit a straight line, but which column is meant?";

/// Answers in words, without a program.
#[derive(Debug)]
struct Wordy;

#[async_trait]
impl Generator for Wordy {
    fn name(&self) -> &str {
        "wordy"
    }

    fn describe(&self) -> ModelInfo {
        ModelInfo::free("test")
    }

    async fn generate(&self, _: &GenerateRequest, _: &CancellationToken) -> Result<Sample, ModelError> {
        Ok(Sample {
            text: WORDS.to_owned(),
            reasoning: None,
            finish_reason: "stop".to_owned(),
            tokens_prompt: None,
            tokens_completion: None,
            usage: UsageDetails::default(),
            cost_usd: Some(0.0),
            cached: false,
            latency: std::time::Duration::from_millis(1),
        })
    }
}

async fn engine(fixture: &Fixture, settings: &[&str]) -> Arc<Engine> {
    let engine = opened(fixture, settings, OpenMode::Create).await;
    add_task(&engine, "toy").await;
    engine
}

async fn opened(fixture: &Fixture, settings: &[&str], mode: OpenMode) -> Arc<Engine> {
    let models = vec![
        Arc::new(Verbose { lines: 40 }) as _,
        Arc::new(Scripted::default()) as _,
        Arc::new(Wordy) as _,
    ];
    let sandbox = instant(Arc::new(Instant::default()));
    open_store(&fixture.store(), settings, models, sandbox, mode)
        .await
        .unwrap()
}

fn request(operator: Operator, parent: Option<&str>) -> PromptRequest {
    PromptRequest {
        operator,
        parent: parent.map(str::to_owned),
        parent2: None,
        task: (operator == Operator::Draft).then(|| "toy".to_owned()),
        run: None,
        model: None,
    }
}

async fn preview(engine: &Engine, request: &PromptRequest) -> String {
    let preview = engine.preview_prompt(request).await.unwrap();
    let messages: Vec<String> = preview
        .prompt
        .messages
        .iter()
        .map(|message| format!("<{}>\n{}", message.role.as_str(), message.content))
        .collect();
    messages.join("\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prompts_stay_within_their_budget_as_history_grows() {
    const BUDGET: i64 = 4_000;
    let fixture = Fixture::new();
    let engine = engine(&fixture, &[]).await;
    let client = session(&engine);
    let evolve = format!(
        "EVOLVE TASK 'toy' USING MODEL verbose WITH (steps => 150, workers => 2, seed => 3, prompt_tokens => {BUDGET}, id => 'r')"
    );
    rows(&client, &evolve).await.unwrap();
    let count = async |what: &str| number(&client, &format!("SELECT count(*) FROM {what}")).await;
    assert_eq!(count("evo.generations").await, 150);
    assert_eq!(
        count(&format!(
            "evo.generations WHERE estimated_tokens_prompt NOT BETWEEN 1000 AND {BUDGET}"
        ))
        .await,
        0
    );
    assert!(count("evo.generations WHERE cardinality(prompt_cuts) > 0").await > 0);
    assert_eq!(
        count("evo.generations WHERE prompt_cuts IS NULL OR skills IS NULL").await,
        0
    );
    // Whatever was cut, the task and the parents are whole.
    let parents = "evo.generations g JOIN evo.prompts_used u ON u.generation_id = g.generation_id
                   JOIN evo.nodes n ON n.node_id = u.node_id WHERE u.role IN ('parent', 'parent2')";
    assert!(count(parents).await > 100);
    assert_eq!(count(&format!("{parents} AND strpos(g.prompt, n.code) = 0")).await, 0);
    assert_eq!(
        count("evo.generations WHERE strpos(prompt, 'Predict y from x.') = 0").await,
        0
    );
    // A node that was cut altogether is not recorded as shown.
    let cut = "evo.generations g JOIN evo.prompts_used u ON u.generation_id = g.generation_id
               WHERE array_has(g.prompt_cuts, concat(u.role, ' ', u.node_id))";
    assert_eq!(count(cut).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_preview_is_what_is_sent() {
    let fixture = Fixture::new();
    let engine = engine(&fixture, &["search.model=verbose"]).await;
    let client = session(&engine);
    rows(
        &client,
        "EVOLVE TASK 'toy' WITH (steps => 12, workers => 1, seed => 4, id => 'r')",
    )
    .await
    .unwrap();
    let before = number(&client, "SELECT max(_seq) FROM evo.nodes_versions").await;
    for (operator, input) in [
        (Operator::Draft, "SELECT 'toy' AS task_id"),
        (
            Operator::Improve,
            "SELECT node_id AS parent_id FROM evo.candidates ORDER BY step LIMIT 1",
        ),
        (
            Operator::Debug,
            "SELECT node_id AS parent_id FROM evo.nodes WHERE is_buggy ORDER BY step LIMIT 1",
        ),
    ] {
        let parents = texts(&client, input).await;
        let parent = parents.first().filter(|_| operator.arity() > 0);
        let shown = preview(&engine, &request(operator, parent.map(String::as_str))).await;
        rows(
            &client,
            &format!("{input} EXPAND WITH {operator} (id => 'e-{operator}')"),
        )
        .await
        .unwrap();
        let sent = texts(
            &client,
            &format!(
                "SELECT g.prompt FROM evo.generations g JOIN evo.attempts a ON a.attempt_id = g.attempt_id
                 WHERE a.statement_id = 'e-{operator}'"
            ),
        )
        .await;
        assert_eq!(sent, [shown], "{operator}");
    }
    assert!(before > 0);
    let of_run = PromptRequest {
        run: Some("r".to_owned()),
        task: None,
        ..request(Operator::Draft, None)
    };
    assert!(preview(&engine, &of_run).await.contains("Steps left: 0."));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_preview_and_an_explain_write_nothing() {
    let fixture = Fixture::new();
    let engine = engine(&fixture, &[]).await;
    let client = session(&engine);
    let newest = engine.store().snapshot(None).await.unwrap().seq();
    preview(&engine, &request(Operator::Draft, None)).await;
    table(&client, "EXPLAIN SELECT 'toy' AS task_id EXPAND WITH draft").await;
    assert_eq!(number(&client, "SELECT count(*) FROM gym.overview_files").await, 0);
    assert_eq!(number(&client, "SELECT count(*) FROM evo.generations").await, 0);
    let notes = engine.store().snapshot(None).await.unwrap().seq() - newest;
    assert!(notes <= 3, "only the statements themselves are noted: {notes} commits");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_not_be_cut_and_does_not_fit_is_an_error_that_says_how_much() {
    let fixture = Fixture::new();
    let engine = engine(&fixture, &[]).await;
    let client = session(&engine);
    rows(
        &client,
        "EVOLVE TASK 'toy' WITH (steps => 3, workers => 1, prompt_tokens => 1000, id => 'r')",
    )
    .await
    .unwrap();
    let run = table(&client, "SELECT status, error FROM evo.runs").await;
    assert!(
        run.contains("failed") && run.contains("its budget is 1000") && run.contains("prompts.max_tokens"),
        "{run}"
    );
    assert_eq!(
        number(&client, "SELECT count(*) FROM evo.attempts").await,
        1,
        "a draft that does not fit never will"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notes_of_the_user_enter_prompts_and_are_recorded() {
    let fixture = Fixture::new();
    let skills = fixture.folder.path().join("skills");
    std::fs::create_dir(&skills).unwrap();
    std::fs::write(skills.join("general.md"), "Log times.").unwrap();
    std::fs::write(skills.join("toy.md"), "y grows with x.").unwrap();
    let setting = format!("prompts.skills={}", skills.display());
    let engine = engine(&fixture, &[&setting]).await;
    let client = session(&engine);
    rows(&client, "SELECT 'toy' AS task_id EXPAND WITH draft")
        .await
        .unwrap();
    let found =
        "SELECT count(*) FROM evo.generations WHERE cardinality(skills) = 2 AND starts_with(skills[1], 'general.md@')
                 AND strpos(prompt, 'Log times.') > 0 AND strpos(prompt, 'y grows with x.') > 0";
    assert_eq!(number(&client, found).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_files_of_a_task_are_described_once() {
    let fixture = Fixture::new();
    let engine = engine(&fixture, &[]).await;
    let public = engine.store().dir().join("tasks/toy/test/validation/public");
    std::fs::write(public.join("train.csv"), "id,x,y\n1,0.5,red\n2,,blue\n").unwrap();
    let client = session(&engine);
    rows(&client, "SELECT 'toy' AS task_id EXPAND WITH draft")
        .await
        .unwrap();
    let described = table(
        &client,
        "SELECT f.path, f.rows, c.name, c.type, c.missing, c.samples FROM gym.overview_files f
         JOIN gym.overview_columns c ON c.task_id = f.task_id AND c.package_hash = f.package_hash AND c.place = f.place
         ORDER BY c.position",
    )
    .await;
    insta::assert_snapshot!(described);
    let prompt = "SELECT count(*) FROM evo.generations
                  WHERE strpos(prompt, '`train.csv` (csv, 25 bytes): 2 rows of 3 columns') > 0 AND strpos(prompt, 'x: number, 50 % missing') > 0";
    assert_eq!(number(&client, prompt).await, 1);
    // Another process finds what is kept, also where the files have changed since.
    std::fs::write(public.join("train.csv"), "z\n1\n").unwrap();
    engine.close().await;
    drop((client, engine));
    let engine = fixture.open(OpenMode::Existing).await.unwrap();
    let client = session(&engine);
    rows(&client, "SELECT 'toy' AS task_id EXPAND WITH draft (seed => 8)")
        .await
        .unwrap();
    assert_eq!(number(&client, prompt).await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_related_program_is_shown_by_its_summary_when_there_is_one() {
    let fixture = Fixture::new();
    let engine = engine(&fixture, &["search.model=verbose"]).await;
    let client = session(&engine);
    rows(
        &client,
        "SELECT 'toy' AS task_id EXPAND WITH draft (seed => 3, samples => 4)",
    )
    .await
    .unwrap();
    let parent = texts(
        &client,
        "SELECT node_id FROM evo.nodes WHERE NOT is_buggy ORDER BY step",
    )
    .await;
    let improve = format!(
        "SELECT '{}' AS parent_id EXPAND WITH improve (seed => 5, samples => 2)",
        parent[0]
    );
    rows(&client, &improve).await.unwrap();
    let child = texts(
        &client,
        "SELECT node_id FROM evo.nodes WHERE operator = 'improve' ORDER BY step LIMIT 1",
    )
    .await;
    let shown = preview(&engine, &request(Operator::Improve, Some(&parent[0]))).await;
    assert!(shown.contains("Its plan: Two of the features are ranked"), "{shown}");
    assert!(shown.contains("What it changed:\n  ```diff\n  @@ "), "{shown}");
    let mut summaries = Rows::new("evo.summaries").unwrap();
    summaries
        .push([
            ("node_id", child[0].as_str().into()),
            ("model", "memory".into()),
            ("method_overview", "It ranks two features.".into()),
            ("parent_comparison_experience", "Ranks did not help.".into()),
        ])
        .unwrap();
    let mut txn = Txn::new();
    txn.append("evo.summaries", summaries);
    engine.store().commit(txn).await.unwrap();
    // Another's memory does not change the prompts of a search without one.
    assert_eq!(
        preview(&engine, &request(Operator::Improve, Some(&parent[0]))).await,
        shown
    );
    drop(client);
    drop(engine);
    let settings = ["search.model=verbose", "search.memory_model=verbose"];
    let engine = opened(&fixture, &settings, OpenMode::Existing).await;
    let shown = preview(&engine, &request(Operator::Improve, Some(&parent[0]))).await;
    assert!(shown.contains("What it does: It ranks two features."), "{shown}");
    assert!(shown.contains("What it taught: Ranks did not help."), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_in_words_is_a_row_and_keeps_its_text() {
    let fixture = Fixture::new();
    let engine = engine(&fixture, &[]).await;
    let client = session(&engine);
    rows(&client, "SELECT 'toy' AS task_id EXPAND WITH draft USING MODEL wordy")
        .await
        .unwrap();
    let kept = texts(
        &client,
        "SELECT g.response FROM evo.nodes n JOIN evo.generations g ON g.attempt_id = n.attempt_id
         WHERE n.status = 'code_missing' AND n.code IS NULL AND n.is_buggy AND n.error = 'the reply holds no Python program'",
    )
    .await;
    assert_eq!(kept, [WORDS]);
    let node = texts(&client, "SELECT node_id FROM evo.nodes").await;
    let repair = preview(&engine, &request(Operator::Debug, Some(&node[0]))).await;
    assert!(
        repair.contains("The reply held no program that could be run."),
        "{repair}"
    );
}
