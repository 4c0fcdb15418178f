//! Whole searches against a service that misbehaves: the right rows, the right spend, budgets that hold.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clade::engine::{Engine, OpenMode, Session};
use serde_json::json;

use super::server::{Act, COMPLETION_TOKENS, PROMPT_TOKENS, Server, answer, error, good, message, pieces, program};
use crate::crash::invariants;
use crate::crash::process::Process;
use crate::engine::fixture::{Fixture, number, rows, session, table};

const TOKENS: i64 = PROMPT_TOKENS + COMPLETION_TOKENS;

/// Options of the model `remote`: prices that make a right answer cost 800 micro-dollars, and short waits.
fn create_model(endpoint: &str, more: &str) -> String {
    format!(
        "CREATE MODEL remote OPTIONS (provider 'openai', endpoint '{endpoint}', model 'm', max_output_tokens 1000,
             usd_per_million_prompt_tokens 1.0, usd_per_million_completion_tokens 2.0,
             breaker_pause_seconds 0.05, max_retry_after_seconds 0.05{more})"
    )
}

async fn with_model(server: &Server, more: &str) -> (Fixture, Arc<Engine>, Session) {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let session = session(&engine);
    rows(&session, &create_model(&server.endpoint, more)).await.unwrap();
    (fixture, engine, session)
}

async fn text(session: &Session, sql: &str) -> String {
    table(session, sql).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_on_a_bad_service_ends_with_the_right_rows_and_the_right_spend() {
    // Each fault once, amid right answers; retries are requests of their own, so requests are more than steps.
    let server = Server::start(|number, request| match number {
        1 => error(500, "oops"),
        3 => Act::Cut(pieces(&["A plan.\n```python\nscore = 1"], false)),
        5 => Act::Answer(429, vec![("Retry-After", "51000".into())], "{}".into()),
        7 => answer(&json!({"choices": []})),
        9 => answer(&message(&json!({"content": null, "reasoning_content": "hm"}), "length")),
        11 => Act::Answer(200, Vec::new(), "{\"choices\"".into()),
        13 => answer(&message(
            &json!({"content": null, "tool_calls": [{"function": {"name": "f"}}]}),
            "tool_calls",
        )),
        15 => {
            let mut wrong = message(&json!({"content": program(request)}), "stop");
            wrong["usage"] = json!({"prompt_tokens": 900_000_000, "completion_tokens": 1});
            answer(&wrong)
        }
        17 => {
            let mut unknown = message(&json!({"content": program(request)}), "stop");
            unknown["usage"] = json!(null);
            answer(&unknown)
        }
        19 => error(400, "maximum context length is 8192 tokens"),
        21 => Act::Answer(502, Vec::new(), "<html><title>Bad Gateway</title></html>".into()),
        23 => Act::Hang,
        25 => Act::Stall(pieces(&["half"], false)),
        27 => answer(&message(&json!({"content": "", "reasoning": "hm"}), "stop")),
        29 => error(400, "your prompt was flagged: content_policy_violation"),
        31 => answer(&message(&json!({"content": ""}), "stop")),
        _ => good(request),
    })
    .await;
    let patience = ", first_byte_timeout_seconds 3, idle_timeout_seconds 3";
    let (_fixture, engine, session) = with_model(&server, patience).await;
    let sql = "EVOLVE TASK 'toy' USING MODEL remote WITH (steps => 24, workers => 1, seed => 3, id => 'r', max_tokens => 1000000)";
    rows(&session, sql).await.unwrap();
    invariants::at_rest(&engine).await;

    let count = async |sql: &str| number(&session, sql).await;
    assert_eq!(count("SELECT count(*) FROM evo.nodes").await, 24);
    assert_eq!(
        count("SELECT count(*) FROM evo.attempts WHERE status <> 'done'").await,
        0
    );
    assert_eq!(
        count("SELECT count(*) FROM evo.runs WHERE status = 'finished' AND stop_reason = 'steps'").await,
        1
    );
    // 24 right or final answers, and nine failures that were asked again. Each request is a row, and what it may have cost is booked.
    assert_eq!(server.count(), 33);
    let faults =
        "SELECT error_class, fault, count(*) AS requests, count(response) AS replies, count(tokens_prompt) AS counted,
                         count(*) FILTER (WHERE booked_tokens > 0) AS booked
                  FROM evo.generations GROUP BY 1, 2 ORDER BY 1 NULLS FIRST, 2";
    insta::assert_snapshot!(text(&session, faults).await, @r"
    +-------------+-----------------+----------+---------+---------+--------+
    | error_class | fault           | requests | replies | counted | booked |
    +-------------+-----------------+----------+---------+---------+--------+
    |             |                 | 19       | 19      | 18      | 19     |
    | candidate   | empty_length    | 1        | 1       | 1       | 1      |
    | candidate   | prompt_too_long | 1        | 1       | 1       | 0      |
    | candidate   | reasoning_only  | 1        | 1       | 1       | 1      |
    | candidate   | refused         | 1        | 1       | 1       | 0      |
    | candidate   | tool_calls      | 1        | 1       | 1       | 1      |
    | provider    | empty           | 1        | 0       | 1       | 1      |
    | provider    | failed          | 2        | 0       | 0       | 0      |
    | provider    | malformed       | 1        | 0       | 0       | 1      |
    | provider    | no_choices      | 1        | 0       | 0       | 1      |
    | provider    | stalled         | 2        | 1       | 0       | 2      |
    | provider    | stream_cut      | 1        | 1       | 0       | 1      |
    | rate_limit  | rate_limited    | 1        | 0       | 0       | 0      |
    +-------------+-----------------+----------+---------+---------+--------+
    ");
    let nodes = "SELECT error_class, error_signature, count(*) AS nodes FROM evo.nodes WHERE status = 'code_missing'
                 GROUP BY 1, 2 ORDER BY 2";
    insta::assert_snapshot!(text(&session, nodes).await, @r"
    +-------------+-----------------+-------+
    | error_class | error_signature | nodes |
    +-------------+-----------------+-------+
    | candidate   | empty_length    | 1     |
    | candidate   | prompt_too_long | 1     |
    | candidate   | reasoning_only  | 1     |
    | candidate   | refused         | 1     |
    | candidate   | tool_calls      | 1     |
    +-------------+-----------------+-------+
    ");
    let partial = "SELECT count(*) FROM evo.generations
                   WHERE error LIKE '%cut off after 27 bytes%' AND response LIKE 'A plan.%score = 1'";
    assert_eq!(
        count(partial).await,
        1,
        "{}",
        text(
            &session,
            "SELECT error, response FROM evo.generations WHERE error IS NOT NULL"
        )
        .await
    );
    let flagged = "SELECT count(*) FROM evo.generations
                   WHERE tokens_prompt = 900000000 AND usage_problem LIKE 'more prompt tokens than%' AND booked_tokens < 100000";
    assert_eq!(count(flagged).await, 1);
    let unknown = "SELECT count(*) FROM evo.nodes WHERE tokens_prompt IS NULL AND cost_usd IS NULL";
    assert_eq!(count(unknown).await, 1);

    // What may have cost something and was not counted is booked at the worst case: the prompt's bytes and the token limit.
    let worst = "SELECT count(*) FROM evo.generations
                 WHERE (fault IN ('stream_cut', 'no_choices', 'malformed', 'stalled') OR usage_problem IS NOT NULL
                        OR (error_class IS NULL AND tokens_prompt IS NULL))
                   AND booked_tokens = prompt_bytes + 1000 + 1024 + 2 * 64 - octet_length('<system>\n\n<user>\n')
                   AND estimated_tokens_prompt > 0";
    let booked =
        "SELECT fault, usage_problem, booked_tokens, prompt_bytes, estimated_tokens_prompt FROM evo.generations";
    assert_eq!(count(worst).await, 7, "{}", text(&session, booked).await);

    // Every right answer is booked as it was reported, to the token and to the millionth of a dollar.
    let right = count("SELECT count(*) FROM evo.generations WHERE error_class IS NULL AND usage_problem IS NULL AND tokens_prompt IS NOT NULL").await;
    assert_eq!(
        count("SELECT sum(booked_tokens) FROM evo.generations WHERE error_class IS NULL AND usage_problem IS NULL AND tokens_prompt IS NOT NULL").await,
        right * TOKENS
    );
    let dollars =
        "SELECT CAST(round(b.spent * 1e9) AS BIGINT) - CAST(round(g.booked * 1e9) AS BIGINT) FROM system.budgets b
                   CROSS JOIN (SELECT sum(booked_usd) AS booked FROM evo.generations) g WHERE b.resource = 'cost_usd'";
    assert_eq!(count(dollars).await, 0);
    let right_cost = "SELECT CAST(round(sum(cost_usd) * 1e6) AS BIGINT) FROM evo.generations
                      WHERE error_class IS NULL AND usage_problem IS NULL";
    assert_eq!(count(right_cost).await, right * 800);
    assert_eq!(
        count("SELECT CAST(sum(reserved) AS BIGINT) FROM system.budgets").await,
        0
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_budget_is_never_overshot() {
    let server = Server::start(|_, request| good(request)).await;
    let (_fixture, engine, session) = with_model(&server, "").await;
    let sql = "EVOLVE TASK 'toy' USING MODEL remote WITH (steps => 100, workers => 3, seed => 3, max_tokens => 20000)";
    rows(&session, sql).await.unwrap();
    invariants::at_rest(&engine).await;
    let stopped = "SELECT count(*) FROM evo.runs WHERE status = 'finished' AND stop_reason = 'tokens'";
    assert_eq!(
        number(&session, stopped).await,
        1,
        "{}",
        text(&session, "SELECT status, stop_reason, error FROM evo.runs").await
    );
    let spent = number(
        &session,
        "SELECT CAST(spent AS BIGINT) FROM system.budgets WHERE resource = 'tokens'",
    )
    .await;
    assert_eq!(spent, TOKENS * i64::try_from(server.count()).unwrap());
    assert!(spent <= 20_000 && server.count() > 3, "{spent}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_without_token_counts_is_limited_all_the_same() {
    let server = Server::start(|_, request| {
        let mut unknown = message(&json!({"content": program(request)}), "stop");
        unknown["usage"] = json!(null);
        answer(&unknown)
    })
    .await;
    let (_fixture, _engine, session) = with_model(&server, "").await;
    let sql = "EVOLVE TASK 'toy' USING MODEL remote WITH (steps => 100, workers => 2, seed => 3, max_cost_usd => 0.05)";
    rows(&session, sql).await.unwrap();
    let spent = "SELECT CAST(round(spent * 1e6) AS BIGINT) FROM system.budgets WHERE resource = 'cost_usd'";
    let spent = number(&session, spent).await;
    assert!((1..=50_000).contains(&spent), "{spent}");
    assert_eq!(
        number(&session, "SELECT count(*) FROM evo.runs WHERE stop_reason = 'cost_usd'").await,
        1
    );
    assert_eq!(
        number(
            &session,
            "SELECT count(*) FROM evo.generations WHERE cost_usd IS NOT NULL"
        )
        .await,
        0
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_hangs_cannot_spend_more_than_the_budget() {
    let server = Server::start(|_, _| Act::Hang).await;
    let more = ", first_byte_timeout_seconds 0.1, breaker_failures 1000";
    let (_fixture, engine, session) = with_model(&server, more).await;
    let sql = "EVOLVE TASK 'toy' USING MODEL remote WITH (steps => 100, workers => 2, seed => 3, max_tokens => 20000)";
    rows(&session, sql).await.unwrap();
    invariants::at_rest(&engine).await;
    let stopped = "SELECT count(*) FROM evo.runs WHERE status = 'finished' AND stop_reason = 'tokens'";
    let run = "SELECT status, stop_reason, error FROM evo.runs";
    assert_eq!(number(&session, stopped).await, 1, "{}", text(&session, run).await);
    let spent = "SELECT CAST(spent AS BIGINT) FROM system.budgets WHERE resource = 'tokens'";
    let spent = number(&session, spent).await;
    assert!((1..=20_000).contains(&spent), "{spent}");
    let requests = number(
        &session,
        "SELECT count(*) FROM evo.generations WHERE fault = 'stalled' AND tokens_prompt IS NULL AND cost_usd IS NULL",
    );
    assert_eq!(requests.await, i64::try_from(server.count()).unwrap());
    assert_eq!(number(&session, "SELECT count(*) FROM evo.nodes").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_the_service_will_never_take_ends_the_run_and_costs_nothing() {
    for (status, said) in [(400, "check extra_body"), (401, "wants a key"), (404, "does not know")] {
        let server = Server::start(move |number, request| match number {
            2 => error(status, "no such thing: frobnicate"),
            _ => good(request),
        })
        .await;
        let (_fixture, engine, session) = with_model(&server, "").await;
        let sql =
            "EVOLVE TASK 'toy' USING MODEL remote WITH (steps => 9, workers => 1, seed => 3, max_tokens => 1000000)";
        rows(&session, sql).await.unwrap();
        invariants::at_rest(&engine).await;
        let run = text(&session, "SELECT status, stop_reason, error FROM evo.runs").await;
        assert!(
            run.contains("failed") && run.contains("frobnicate") && run.contains(said),
            "{run}"
        );
        assert_eq!(server.count(), 3, "it is not asked again");
        assert_eq!(number(&session, "SELECT count(*) FROM evo.nodes").await, 2);
        let attempts = "SELECT count(*) FROM evo.attempts WHERE status = 'failed' AND error_class = 'config'";
        assert_eq!(number(&session, attempts).await, 1);
        let rejected =
            "SELECT count(*) FROM evo.generations WHERE fault = 'rejected' AND booked_tokens = 0 AND response IS NULL";
        assert_eq!(number(&session, rejected).await, 1);
        let spent = "SELECT CAST(spent AS BIGINT) FROM system.budgets WHERE resource = ";
        assert_eq!(number(&session, &format!("{spent}'tokens'")).await, 2 * TOKENS);
        assert_eq!(number(&session, &format!("{spent}'steps'")).await, 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_price_is_no_price_of_nothing() {
    let server = Server::start(|_, request| good(request)).await;
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let session = session(&engine);
    let create = format!(
        "CREATE MODEL remote OPTIONS (provider 'openai', endpoint '{}', model 'm')",
        server.endpoint
    );
    rows(&session, &create).await.unwrap();
    let evolve = "EVOLVE TASK 'toy' USING MODEL remote WITH (steps => 3, max_cost_usd => 1.0";
    let refused = rows(&session, &format!("{evolve})")).await.unwrap_err().to_string();
    assert!(
        refused.contains("the price of model 'remote' is not known"),
        "{refused}"
    );
    assert_eq!(server.count(), 0);
    rows(&session, &format!("{evolve}, allow_unknown_cost => true)"))
        .await
        .unwrap();
    assert_eq!(
        number(
            &session,
            "SELECT count(*) FROM evo.nodes WHERE cost_usd IS NULL AND tokens_prompt = 700"
        )
        .await,
        3
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_is_down_uses_no_step_and_no_budget() {
    let server = Server::start(|number, request| if number < 8 { error(503, "down") } else { good(request) }).await;
    let (_fixture, engine, session) = with_model(&server, ", breaker_failures 2").await;
    let sql = "EVOLVE TASK 'toy' USING MODEL remote WITH (steps => 6, workers => 3, seed => 3, max_tokens => 1000000)";
    rows(&session, sql).await.unwrap();
    invariants::at_rest(&engine).await;
    assert_eq!(number(&session, "SELECT count(*) FROM evo.nodes").await, 6);
    let spent = "SELECT CAST(spent AS BIGINT) FROM system.budgets WHERE resource = ";
    assert_eq!(number(&session, &format!("{spent}'steps'")).await, 6);
    assert_eq!(number(&session, &format!("{spent}'tokens'")).await, 6 * TOKENS);
    assert_eq!(server.count(), 14);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_that_waits_for_a_rate_limit_says_until_when_and_ends_at_once_when_asked() {
    let busy = Act::Answer(429, vec![("Retry-After", "51000".into())], "{}".into());
    let server = Server::start(move |_, _| busy.clone()).await;
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let client = session(&engine);
    let create = format!(
        "CREATE MODEL remote OPTIONS (provider 'openai', endpoint '{}', model 'm')",
        server.endpoint
    );
    rows(&client, &create).await.unwrap();
    let running = Arc::clone(&engine);
    let search = tokio::spawn(async move {
        let sql = "EVOLVE TASK 'toy' USING MODEL remote WITH (steps => 5, workers => 2, seed => 3, id => 'r')";
        rows(&session(&running), sql).await.unwrap();
    });
    // Another process sees the pause.
    let reader = fixture.open(OpenMode::ReadOnly).await.unwrap();
    let paused = "SELECT count(*) FROM system.models WHERE name = 'remote' AND paused_until > now()
                  AND pause_reason LIKE 'rate limited: HTTP 429%51000 s, until%'";
    while number(&session(&reader), paused).await == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    engine.scheduler().drain();
    search.await.unwrap();
    assert_eq!(server.count(), 1, "nothing is sent to a service that asked to wait");
    let noted = "SELECT count(*) FROM evo.generations WHERE fault = 'rate_limited' AND error LIKE '%HTTP 429%'";
    assert_eq!(number(&client, noted).await, 1);
    assert_eq!(
        number(&client, "SELECT count(*) FROM evo.runs WHERE status = 'interrupted'").await,
        1
    );
    assert_eq!(number(&client, "SELECT count(*) FROM evo.nodes").await, 0);
    let kept = "SELECT CAST(sum(spent) AS BIGINT) FROM system.budgets WHERE scope = 'r' AND resource IN ('steps', 'tokens', 'jobs')";
    assert_eq!(number(&client, kept).await, 0);
    invariants::always(&engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wall_budget_ends_what_waits_for_a_paused_model() {
    let busy = Act::Answer(429, vec![("Retry-After", "51000".into())], "{}".into());
    let server = Server::start(move |_, _| busy.clone()).await;
    let (_fixture, engine, session) = with_model(&server, "").await;
    let replace = format!(
        "CREATE OR REPLACE MODEL remote OPTIONS (provider 'openai', endpoint '{}', model 'm')",
        server.endpoint
    );
    rows(&session, &replace).await.unwrap();
    let evolve = "EVOLVE TASK 'toy' USING MODEL remote WITH (steps => 5, workers => 2, seed => 3, max_wall => '1 s')";
    rows(&session, evolve).await.unwrap();
    let expand = "SELECT 'toy' AS task_id EXPAND WITH draft (samples => 2, max_wall => '1 s') USING MODEL remote";
    assert_eq!(
        rows(&session, expand)
            .await
            .unwrap()
            .iter()
            .map(|batch| batch.num_rows())
            .sum::<usize>(),
        0
    );
    assert_eq!(server.count(), 1);
    invariants::at_rest(&engine).await;
    let ended = "SELECT count(*) FROM evo.runs WHERE status = 'finished' AND stop_reason = 'wall_seconds'";
    assert_eq!(number(&session, ended).await, 1);
    let failed = "SELECT count(*) FROM evo.statements WHERE kind = 'expand' AND status = 'failed' AND error LIKE '%wall budget%'";
    assert_eq!(number(&session, failed).await, 1);
    let cancelled = "SELECT count(*) FILTER (WHERE status = 'cancelled') * 100 + count(*) FROM evo.attempts";
    assert_eq!(number(&session, cancelled).await, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_ask_the_model_at_once() {
    let server = Server::start(|_, request| match good(request) {
        Act::Stream(pieces, _) => Act::Stream(pieces, Duration::from_millis(200)),
        other => other,
    })
    .await;
    let (_fixture, engine, session) = with_model(&server, "").await;
    let sql = "EVOLVE TASK 'toy' USING MODEL remote WITH (steps => 9, workers => 3, seed => 3, max_tokens => 1000000)";
    rows(&session, sql).await.unwrap();
    invariants::at_rest(&engine).await;
    let most = "SELECT max(n) FROM (
                    SELECT count(*) AS n FROM evo.generations a
                    JOIN evo.generations b ON b.started_at <= a.started_at AND b.finished_at > a.started_at
                    GROUP BY a.generation_id)";
    assert_eq!(number(&session, most).await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_search_does_not_pay_twice() {
    // The kill meets the search right after an answer.
    let answered = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&answered);
    let server = Server::start(move |_, request| {
        count.fetch_add(1, Ordering::SeqCst);
        good(request)
    })
    .await;
    let (fixture, engine, _) = with_model(&server, "").await;
    engine.close().await;
    drop(engine);
    let evolve = "EVOLVE TASK 'toy' USING MODEL remote WITH (steps => 30, workers => 2, seed => 3, max_tokens => 1000000, id => 'r')";
    let mut dead = Vec::new();
    for target in [3, 11, 17] {
        let mut process = Process::searching(&fixture.store(), "r", evolve);
        assert!(process.wait_ready());
        while answered.load(Ordering::SeqCst) < target {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        dead.push(process.kill());
    }
    let mut process = Process::searching(&fixture.store(), "r", evolve);
    assert!(process.wait_ready());
    process.finish();
    for mut child in dead {
        child.wait().unwrap();
    }
    let engine = fixture.open(OpenMode::Existing).await.unwrap();
    invariants::at_rest(&engine).await;
    let session = session(&engine);
    assert_eq!(number(&session, "SELECT count(*) FROM evo.nodes").await, 30);
    assert_eq!(number(&session, "SELECT count(*) FROM evo.generations").await, 30);
    let spent = "SELECT CAST(spent AS BIGINT) FROM system.budgets WHERE resource = 'tokens'";
    assert_eq!(number(&session, spent).await, 30 * TOKENS);
    // A kill may lose an answer that was on its way, of each worker at most; none that had come is asked for again.
    assert!(server.count() <= 30 + 3 * 2, "{}", server.count());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_statement_is_answered_from_the_cache_and_spends_nothing() {
    let server = Server::start(|_, request| good(request)).await;
    let (_fixture, _engine, session) = with_model(&server, "").await;
    let sql =
        "SELECT 'toy' AS task_id EXPAND WITH draft (samples => 3, seed => 5, max_tokens => 500000) USING MODEL remote";
    rows(&session, sql).await.unwrap();
    rows(&session, sql).await.unwrap();
    assert_eq!(server.count(), 3);
    let seeds: BTreeSet<u64> = server
        .received()
        .iter()
        .map(|request| request.body["seed"].as_u64().unwrap())
        .collect();
    assert_eq!(seeds.len(), 3, "each sample has a seed of its own");
    let spends =
        "SELECT cached, sum(tokens_prompt) AS virtual_prompt, sum(booked_tokens) AS physical, count(*) AS replies
                  FROM evo.generations GROUP BY cached ORDER BY cached";
    insta::assert_snapshot!(text(&session, spends).await, @r"
    +--------+----------------+----------+---------+
    | cached | virtual_prompt | physical | replies |
    +--------+----------------+----------+---------+
    | false  | 2100           | 2250     | 3       |
    | true   | 2100           | 0        | 3       |
    +--------+----------------+----------+---------+
    ");
    // Another model under the same name may answer otherwise; another time limit may not.
    let other = create_model(&server.endpoint, ", timeout_seconds 77").replace("CREATE", "CREATE OR REPLACE");
    rows(&session, &other).await.unwrap();
    rows(&session, sql).await.unwrap();
    assert_eq!(server.count(), 3);
    rows(&session, &other.replace("model 'm'", "model 'n'")).await.unwrap();
    rows(&session, sql).await.unwrap();
    assert_eq!(server.count(), 6);
}
