//! What is paid for: nothing twice, and nothing again in a run of the same seed.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use clade::engine::{Engine, OpenMode};
use clade::model::prompt_token_bound;

use super::fixture::{Fixture, add_task, instant, number, open_store, rows, session, table};
use super::instant::Instant;
use super::metered::{Metered, TOKENS};

async fn metered(fixture: &Fixture, settings: &[&str], sandbox: Instant) -> Arc<Engine> {
    let models = vec![Arc::new(Metered::default()) as _];
    let engine = open_store(
        &fixture.store(),
        settings,
        models,
        instant(Arc::new(sandbox)),
        OpenMode::Create,
    )
    .await
    .unwrap();
    add_task(&engine, "toy").await;
    engine
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_run_of_a_seed_is_answered_from_the_cache() {
    let fixture = Fixture::new();
    let engine = metered(
        &fixture,
        &[],
        Instant {
            shuffle: true,
            ..Instant::default()
        },
    )
    .await;
    let client = session(&engine);
    let evolve = |id: &str, workers: u32| {
        format!(
            "EVOLVE TASK 'toy' USING MODEL metered WITH (steps => 20, workers => {workers}, seed => 5, mode => 'generation',
                 max_model_sandbox => '2 h', id => '{id}')"
        )
    };
    rows(&client, &evolve("first", 1)).await.unwrap();
    rows(&client, &evolve("second", 3)).await.unwrap();
    let spent =
        "SELECT CAST(coalesce(sum(spent), 0) AS BIGINT) FROM system.budgets WHERE resource = 'tokens' AND scope = ";
    assert_eq!(number(&client, &format!("{spent}'first'")).await, 20 * TOKENS);
    assert_eq!(number(&client, &format!("{spent}'second'")).await, 0);
    let prompts = "SELECT count(DISTINCT request_hash) FROM evo.generations";
    assert_eq!(number(&client, prompts).await, 20);
    let stated = "SELECT count(*) FROM evo.generations
                  WHERE strpos(prompt, 'Seconds left: about 7200.') > 0 AND strpos(prompt, 'Steps left: ') > 0";
    assert_eq!(number(&client, stated).await, 40);
    let last = "SELECT count(*) FROM evo.generations g JOIN evo.nodes n ON n.attempt_id = g.attempt_id
                WHERE strpos(g.prompt, 'Steps left: ' || CAST(21 - n.step AS VARCHAR) || '.') > 0";
    assert_eq!(number(&client, last).await, 40, "every prompt counts its own step");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_that_has_paid_reserves_no_tokens_for_another_try() {
    let fixture = Fixture::new();
    let engine = metered(
        &fixture,
        &["search.max_output_tokens=1000"],
        Instant {
            faults_before_success: 2,
            ..Instant::default()
        },
    )
    .await;
    let client = session(&engine);
    let explained = rows(
        &client,
        "EXPLAIN SELECT 'toy' AS task_id EXPAND WITH draft USING MODEL metered",
    )
    .await
    .unwrap();
    let prompt_bytes = explained[0].column_by_name("prompt_bytes").unwrap();
    let prompt_bytes = prompt_bytes.as_primitive::<Int64Type>().value(0);
    // Just the worst case of one reply: what the first try has paid leaves too little for a second.
    let worst = prompt_token_bound(usize::try_from(prompt_bytes).unwrap(), 2) + 1000;
    let sql = format!(
        "SELECT status, tokens_prompt + tokens_completion AS tokens
         FROM expand((SELECT 'toy' AS task_id), 'draft', seed => 2, model => 'metered', max_tokens => {worst}, id => 'e')"
    );
    let answer = table(&client, &sql).await;
    assert!(answer.contains("success"), "{answer}");
    assert_eq!(number(&client, "SELECT max(tries) FROM evo.attempts").await, 3);
    assert_eq!(number(&client, "SELECT count(*) FROM evo.generations").await, 1);
    let spent = "SELECT CAST(spent AS BIGINT) FROM system.budgets WHERE scope = 'e' AND resource = 'tokens'";
    assert_eq!(number(&client, spent).await, TOKENS);
    assert_eq!(
        number(&client, "SELECT count(*) FROM system.budgets WHERE reserved > 0").await,
        0
    );
}
