//! Runs that stop in the middle and go on.

use std::sync::Arc;

use clade::engine::{Engine, OpenMode};

use super::bed::{Bed, Reply, scored};
use crate::cli::fixture::Place;
use crate::crash::process::{Process, open};
use crate::engine::fixture::{Fixture, number, rows, run_session, session, table};

/// Ends what is in flight and opens the store again, as the next process does.
async fn restart(bed: &Bed, engine: Arc<Engine>) -> Arc<Engine> {
    engine.scheduler().kill();
    engine.close().await;
    drop(engine);
    bed.open(OpenMode::Existing).await
}

async fn evolve(engine: &Arc<Engine>, sql: &str) {
    rows(&session(engine), sql).await.unwrap();
}

/// ShinkaEvolve #98: the highest id was taken for the number of programs, so a run with failed proposals ended early.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gaps_in_steps_do_not_end_a_run_early() {
    let replies = [
        Reply::Seeded,
        Reply::Fault,
        Reply::Seeded,
        Reply::Fault,
        Reply::Seeded,
        Reply::Hold,
        Reply::Seeded,
    ];
    let bed = Bed::new(replies).set("search.max_tries=1");
    let engine = bed.create().await;
    evolve(
        &engine,
        "EVOLVE TASK 'toy' WITH (steps => 10, workers => 1, seed => 1, id => 'r') ASYNC",
    )
    .await;
    bed.model.holds().await;
    let engine = restart(&bed, engine).await;
    evolve(&engine, "RESUME RUN 'r'").await;
    let client = session(&engine);
    assert_eq!(number(&client, "SELECT count(*) FROM evo.nodes").await, 10);
    assert_eq!(number(&client, "SELECT max(step) FROM evo.nodes").await, 12);
    let lost = "SELECT count(*) FROM evo.attempts WHERE status = 'failed' AND error_class = 'infra'";
    assert_eq!(number(&client, lost).await, 2);
    let ended = "SELECT count(*) FROM evo.runs WHERE stop_reason = 'steps' AND steps_done = 10";
    assert_eq!(number(&client, ended).await, 1);
}

/// cap-evolve #42 and #73: a second start under the id of a run that had crashed failed on its folder; baseline and spend
/// were lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_that_is_used_again_costs_neither_programs_nor_spend() {
    let replies = [Reply::Seeded, Reply::Seeded, Reply::Hold, Reply::Seeded];
    let bed = Bed::new(replies);
    let engine = bed.create().await;
    let sql = "EVOLVE TASK 'toy' WITH (steps => 6, workers => 1, seed => 1, id => 'r')";
    evolve(&engine, &format!("{sql} ASYNC")).await;
    bed.model.holds().await;
    let engine = restart(&bed, engine).await;
    let client = session(&engine);
    let balance = "SELECT resource, spent, reserved FROM system.budgets WHERE resource IN ('steps', 'jobs') ORDER BY 1";
    let before = table(&client, balance).await;
    assert_eq!(
        table(&client, sql).await,
        "error: there is a run 'r' already: RESUME RUN 'r' goes on with it"
    );
    assert_eq!(table(&client, balance).await, before);
    assert_eq!(number(&client, "SELECT count(*) FROM evo.nodes").await, 2);
    evolve(&engine, "RESUME RUN 'r'").await;
    let spent = "SELECT CAST(spent AS BIGINT) FROM system.budgets WHERE resource = 'steps'";
    assert_eq!(number(&client, spent).await, 6);
    assert_eq!(number(&client, "SELECT count(*) FROM evo.nodes").await, 6);
}

/// OpenEvolve #208: the bins of the archive were not saved, so programs fell into other bins after a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bins_after_a_restart_are_those_of_an_unbroken_run() {
    let mut seen = Vec::new();
    for breaks in [false, true] {
        let mut replies = vec![Reply::Seeded; 17];
        if breaks {
            replies.push(Reply::Hold);
        }
        replies.push(Reply::Seeded);
        let bed = Bed::new(replies);
        let mut engine = bed.create().await;
        let sql = "EVOLVE TASK 'toy' WITH POLICY map_elites
                   WITH (steps => 30, workers => 1, seed => 4, mode => 'generation', id => 'r')";
        if breaks {
            evolve(&engine, &format!("{sql} ASYNC")).await;
            bed.model.holds().await;
            engine = restart(&bed, engine).await;
            evolve(&engine, "RESUME RUN 'r'").await;
        } else {
            evolve(&engine, sql).await;
        }
        let client = run_session(&engine, "r");
        let bins = "SELECT p.operator, n.method_family, n.step, p.weight FROM policies.map_elites p
                    LEFT JOIN evo.nodes n ON n.node_id = p.parent_id ORDER BY 1, 2, 3";
        let facts = "SELECT step, method_family, family_count_before, admitted, score FROM run.nodes ORDER BY step";
        seen.push((table(&client, bins).await, table(&client, facts).await));
    }
    assert!(seen[0].0.contains("improve"), "{}", seen[0].0);
    assert_eq!(seen[0], seen[1]);
}

/// lionagi PR #3235: resume took a failed node for a final one, skipped all that came after it and said finished.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_run_is_not_finished_and_goes_on() {
    let mut replies = vec![Reply::Seeded];
    replies.extend(vec![Reply::Fault; 5]);
    replies.push(Reply::Seeded);
    let bed = Bed::new(replies).set("search.max_tries=1");
    let engine = bed.create().await;
    let client = session(&engine);
    evolve(
        &engine,
        "EVOLVE TASK 'toy' WITH (steps => 4, workers => 1, seed => 1, id => 'r')",
    )
    .await;
    let failed = table(&client, "SELECT status, steps_done, error FROM evo.runs").await;
    for part in ["failed", "5 attempts in a row failed", "no route to host"] {
        assert!(failed.contains(part), "{failed}");
    }
    assert_eq!(number(&client, "SELECT count(*) FROM bench.grades").await, 0);
    evolve(&engine, "RESUME RUN 'r'").await;
    let ended = "SELECT count(*) FROM evo.runs WHERE status = 'finished' AND steps_done = 4 AND error IS NULL";
    assert_eq!(number(&client, ended).await, 1);
    assert_eq!(number(&client, "SELECT count(*) FROM evo.nodes").await, 4);
    assert_eq!(number(&client, "SELECT count(*) FROM sandbox.leases").await, 0);
}

/// inspect_ai #4861: a restore that was interrupted left a folder that looked whole and could never be used again.
#[test]
fn a_store_whose_making_was_cut_short_is_none_and_can_be_made() {
    let place = Place::with_store();
    let marker = place.path().join("clade-store/store.toml");
    // The marker comes last: a kill before it leaves all the rest.
    std::fs::remove_file(&marker).unwrap();
    let error = place.run(["sql", "-c", "SELECT 1"]).fails(1);
    assert!(error.starts_with("error: there is no store at clade-store"), "{error}");
    place.run(["init"]).ok();
    let sql = "SELECT count(*) AS n FROM evo.nodes";
    assert_eq!(place.run(["sql", "-c", sql, "--format", "csv"]).ok(), "n\n0\n");
}

/// optuna #485 and #3215: trials of a killed process said RUNNING for ever, and users edited the tables by hand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_a_dead_process_does_not_say_running() {
    let fixture = Fixture::new();
    fixture.create().await.close().await;
    let evolve = "EVOLVE TASK 'toy' WITH (steps => 100000, workers => 2, seed => 1, id => 'r')";
    let mut process = Process::searching(&fixture.store(), "r", evolve);
    assert!(process.wait_ready());
    let reader = open(&fixture.store(), OpenMode::ReadOnly).await;
    let client = session(&reader);
    while number(&client, "SELECT count(*) FROM evo.nodes").await == 0 {
        tokio::task::yield_now().await;
    }
    let status = "SELECT status FROM evo.runs";
    assert!(table(&client, "SHOW RUNS").await.contains("running"));
    let mut dead = process.kill();
    let shown = table(&client, "SHOW RUNS").await;
    assert!(shown.contains("interrupted") && !shown.contains("running"), "{shown}");
    // The row is that of the dead process; what is shown is what is true.
    assert!(table(&client, status).await.contains("running"));
    dead.wait().unwrap();
}

/// OpenEvolve #21: the file of the best program named the iteration of the checkpoint, not that of the program.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_best_program_names_the_step_that_found_it() {
    let scores = [0.25, 0.75, 0.5, 0.125];
    let bed = Bed::new(scores.iter().enumerate().map(|(number, score)| scored(number, *score)));
    let engine = bed.create().await;
    evolve(
        &engine,
        "EVOLVE TASK 'toy' WITH (steps => 4, workers => 1, seed => 1, id => 'r')",
    )
    .await;
    let client = session(&engine);
    let run = "SELECT count(*) FROM evo.runs r JOIN evo.nodes n ON n.node_id = r.best_node_id
               WHERE r.best_step = 2 AND n.step = 2 AND r.best_score = 0.75 AND r.steps_done = 4";
    assert_eq!(number(&client, run).await, 1);
    assert_eq!(number(&client, "SELECT step FROM evo.best").await, 2);
}
