//! Lessons of systems that call models from SQL: what a statement does with bad rows, slow services, clients that go away.

use std::time::Duration;

use super::bed::{Bed, Reply, failing, scored};
use crate::engine::fixture::{Fixture, number, rows, session, table, texts};
use crate::model::server::{Act, Server, pieces, program};

/// Snowflake's default before 2026, Beam #24209: one bad row ended a statement of hours.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_row_ends_a_statement_only_where_that_is_asked_for() {
    let replies = || [scored(1, 0.5), failing(2), scored(3, 0.25), failing(4), scored(5, 0.75)];
    for (on_error, made, status) in [
        ("record", 5, "done"),
        ("stop_after_2", 4, "failed"),
        ("fail", 2, "failed"),
    ] {
        let bed = Bed::new(replies());
        let engine = bed.create().await;
        let client = session(&engine);
        let draft = format!(
            "SELECT 'toy' AS task_id EXPAND WITH draft (samples => 5, concurrency => 1, seed => 1, on_error => '{on_error}', id => 'e')"
        );
        let answer = table(&client, &draft).await;
        let said = "stopped after 1 failed attempts, as on_error asks; the last: ";
        assert_eq!(answer.contains(said), on_error == "fail", "{answer}");
        engine.scheduler().idle().await;
        assert_eq!(
            number(&client, "SELECT count(*) FROM evo.nodes").await,
            made,
            "{on_error}"
        );
        // Each row says how it ended, those that were not begun too.
        let ends = "SELECT count(*) FROM evo.attempts a LEFT JOIN evo.nodes n ON n.node_id = a.node_id
                    WHERE (a.status = 'done' AND (n.status = 'success' OR n.error LIKE '%made to fail%')) OR a.status = 'cancelled'";
        assert_eq!(number(&client, ends).await, 5, "{on_error}");
        assert_eq!(
            texts(&client, "SELECT status FROM evo.statements").await,
            [status],
            "{on_error}"
        );
    }
}

/// python-genai #2693: a batch of which every row had failed said SUCCEEDED.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_of_which_every_row_failed_has_failed() {
    let bed = Bed::new([failing(1), failing(2), failing(3)]);
    let client = session(&bed.create().await);
    let draft = "SELECT 'toy' AS task_id EXPAND WITH draft (samples => 3, concurrency => 1, seed => 1)";
    assert_eq!(
        rows(&client, draft)
            .await
            .unwrap()
            .iter()
            .map(|batch| batch.num_rows())
            .sum::<usize>(),
        3
    );
    assert_eq!(texts(&client, "SELECT status FROM evo.statements").await, ["failed"]);
}

/// mindsdb #8359: a statement that is longer than the patience of its client, ten minutes there, was lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_goes_away_takes_no_work_along() {
    let bed = Bed::new([Reply::Hold, scored(2, 0.5), scored(3, 0.25)]);
    let engine = bed.create().await;
    let client = session(&engine);
    let draft = "SELECT 'toy' AS task_id EXPAND WITH draft (samples => 3, concurrency => 1, seed => 1, id => 'e')";
    let waiting = tokio::spawn(async move { rows(&client, draft).await.map(|_| ()) });
    bed.model.holds().await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    bed.model.let_go();
    engine.scheduler().idle().await;
    let other = session(&engine);
    assert_eq!(
        number(&other, "SELECT count(*) FROM evo.nodes WHERE statement_id = 'e'").await,
        3
    );
    // Who comes back under the id of the statement gets its rows, and nothing is made again.
    let again = rows(&other, draft).await.unwrap();
    assert_eq!(again.iter().map(|batch| batch.num_rows()).sum::<usize>(), 3);
    assert_eq!(number(&other, "SELECT count(*) FROM evo.nodes").await, 3);
}

/// The same, for clients that know it beforehand; and progress was not to be seen from elsewhere (MindsDB's table of queries).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_without_waiting_is_followed_from_another_session() {
    let bed = Bed::new([scored(1, 0.5), Reply::Hold, scored(3, 0.25)]);
    let engine = bed.create().await;
    let client = session(&engine);
    let draft = "SELECT 'toy' AS task_id EXPAND WITH draft (samples => 3, concurrency => 1, seed => 1, id => 'e')";
    let planned = table(&client, &format!("SELECT * FROM ({draft})")).await;
    assert!(
        planned.contains("error"),
        "a statement has its EXPAND at its end: {planned}"
    );
    let planned = rows(&client, &format!("{draft} ASYNC")).await.unwrap();
    assert_eq!(planned.iter().map(|batch| batch.num_rows()).sum::<usize>(), 3);
    bed.model.holds().await;
    let reader = session(&engine);
    let state = "SELECT status || ' ' || CAST(count(*) AS VARCHAR) FROM evo.attempts WHERE statement_id = 'e' GROUP BY status ORDER BY status";
    assert_eq!(texts(&reader, state).await, ["done 1", "planned 2"]);
    bed.model.let_go();
    engine.scheduler().idle().await;
    assert_eq!(texts(&reader, state).await, ["done 3"]);
}

/// mindsdb #7127: a LIMIT outside the call of the model called it for everything, and nobody was told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_bounds_what_is_made_where_it_stands_before_the_expand() {
    let bed = Bed::new([Reply::Seeded]);
    let engine = bed.create().await;
    let client = session(&engine);
    let made = async || {
        engine.scheduler().idle().await;
        number(&client, "SELECT count(*) FROM evo.attempts").await
    };
    let tasks = "SELECT 'toy' AS task_id FROM range(0, 4)";
    rows(&client, &format!("{tasks} LIMIT 1 EXPAND WITH draft (seed => 1)"))
        .await
        .unwrap();
    assert_eq!(made().await, 1);
    // Outside it bounds what is shown, as its place in the plan says.
    let outside = format!("SELECT status FROM expand(({tasks}), 'draft', seed => 2) LIMIT 1");
    let explained = table(&client, &format!("EXPLAIN {outside}")).await;
    assert!(
        explained.find("Limit") < explained.find("Expand") && explained.contains("Limit"),
        "{explained}"
    );
    assert_eq!(made().await, 1, "EXPLAIN makes nothing");
    let shown = rows(&client, &outside).await.unwrap();
    assert_eq!(shown.iter().map(|batch| batch.num_rows()).sum::<usize>(), 1);
    assert_eq!(made().await, 5, "what was asked for is made");
}

/// flock #213 and #280: a batch of replies that came short or in another order was given to the rows by position.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn replies_belong_to_their_requests_whatever_their_order() {
    // The earlier a request, the later its answer. The service is sent the last 31 bits of a seed.
    let server = Server::start(|number, request| {
        let wait = Duration::from_millis(400_u64.saturating_sub(50 * number as u64));
        Act::Stream(pieces(&[&program(request)], true), wait)
    })
    .await;
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let client = session(&engine);
    let model = format!(
        "CREATE MODEL remote OPTIONS (provider 'openai', endpoint '{}', model 'm')",
        server.endpoint
    );
    rows(&client, &model).await.unwrap();
    let draft =
        "SELECT 'toy' AS task_id EXPAND WITH draft (samples => 8, concurrency => 8, seed => 1) USING MODEL remote";
    rows(&client, draft).await.unwrap();
    let own = "SELECT count(*) FROM evo.attempts a
               JOIN evo.nodes n ON n.node_id = a.node_id
               JOIN evo.generations g ON g.attempt_id = a.attempt_id
               WHERE n.seed = a.seed AND g.seed = a.seed AND strpos(n.code, '# remote ' || CAST(a.seed % 2147483648 AS VARCHAR)) > 0
                 AND strpos(g.response, 'A plan for seed ' || CAST(a.seed % 2147483648 AS VARCHAR)) > 0";
    let all = "SELECT a.status, a.seed, n.seed AS node_seed, n.code, g.seed AS asked, g.response FROM evo.attempts a
               LEFT JOIN evo.nodes n ON n.node_id = a.node_id LEFT JOIN evo.generations g ON g.attempt_id = a.attempt_id";
    assert_eq!(number(&client, own).await, 8, "{}", table(&client, all).await);
}

/// OpenEvolve #241 and #346, ShinkaEvolve PR #21: an answer without a usable patch wasted a step without a trace, or the whole file
/// was copied into the block of a patch that had only its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_without_a_program_is_kept_and_runs_nothing() {
    let without = [
        "I would rather not.",
        "score = 0.5\n>>>>>>> REPLACE\n",
        "<<<<<<< SEARCH\nscore = 0.5\n=======\nscore = 0.6\n>>>>>>> REPLACE",
        "```python\nscore = (0.5\n```",
        "```\n```",
    ];
    let with = [
        "```python\nscore = 0.5\n",
        "First a draft:\n```python\nscore = 0.1\n```\nBetter:\n```python\nscore = 0.75\n```\nDone.",
    ];
    let all = without.iter().chain(&with);
    let bed = Bed::new(all.map(|text| Reply::Text((*text).to_owned())));
    let client = session(&bed.create().await);
    let draft = "SELECT 'toy' AS task_id EXPAND WITH draft (samples => 7, concurrency => 1, seed => 1)";
    rows(&client, draft).await.unwrap();
    let missing = "FROM evo.nodes n JOIN evo.generations g ON g.attempt_id = n.attempt_id WHERE n.status = 'code_missing' AND n.code IS NULL";
    let mut kept = texts(&client, &format!("SELECT g.response {missing}")).await;
    kept.sort();
    let mut sent = without.map(str::to_owned).to_vec();
    sent.sort();
    assert_eq!(kept, sent);
    assert_eq!(
        number(
            &client,
            &format!("SELECT count(*) {missing} AND n.error LIKE 'the reply holds no%'")
        )
        .await,
        5
    );
    assert_eq!(number(&client, "SELECT count(*) FROM sandbox.jobs").await, 2);
    let mut codes = texts(&client, "SELECT code FROM evo.nodes WHERE score IS NOT NULL").await;
    codes.sort();
    assert_eq!(codes, ["score = 0.5", "score = 0.75"]);
}
