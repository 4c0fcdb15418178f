//! Searches whose process is killed at random moments and that are resumed by the next one.
//!
//! `CLADE_KILLS` is the number of kills, `CLADE_KILL_SEED` decides their moments.

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::time::Duration;

use clade::engine::{OpenMode, Session};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::invariants;
use super::process::{Process, open};
use crate::engine::fixture::{Fixture, number, rows, session};

const STEPS: i64 = 60;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Generations with the free model give the same nodes whatever happens; the metered one shows what was paid, with a seed
/// of its own so that no run answers for another.
fn evolve(run: u64) -> String {
    let (model, mode, seed) = match run % 2 {
        0 => ("scripted", "generation", 7),
        _ => ("metered", "async", 100 + run),
    };
    format!(
        "EVOLVE TASK 'toy' USING MODEL {model} WITH (steps => {STEPS}, workers => 3, seed => {seed}, mode => '{mode}', id => 'r{run}')"
    )
}

async fn unkilled() -> String {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    rows(&session(&engine), &evolve(0)).await.unwrap();
    invariants::fingerprint(&engine, "r0").await
}

/// Waits for a node more than before, for a while: a run that is at its end makes none.
async fn grows(client: &Session, nodes: &str, before: i64) {
    for _ in 0..100 {
        if number(client, nodes).await > before {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_searches_lose_and_double_nothing_and_end_as_if_never_killed() {
    let kills = setting("CLADE_KILLS", 20);
    let seed = setting("CLADE_KILL_SEED", 1);
    let mut moments = StdRng::seed_from_u64(seed);
    let expected = unkilled().await;
    let fixture = Fixture::new();
    fixture.create().await.close().await;
    let reader = open(&fixture.store(), OpenMode::ReadOnly).await;
    let client = session(&reader);
    let mut seen = BTreeSet::new();
    let mut dead = Vec::new();
    let (mut killed, mut amid, mut started) = (0, 0, 2);
    // One run of each kind at a time; the kills meet them in turn.
    let mut open_runs = VecDeque::from([0, 1]);
    while let Some(run) = open_runs.pop_front() {
        let run_id = format!("r{run}");
        let nodes = format!("SELECT count(*) FROM evo.nodes WHERE run_id = '{run_id}'");
        let before = number(&client, &nodes).await;
        let mut process = Process::searching(&fixture.store(), &run_id, &evolve(run));
        if killed < kills {
            // Some kills meet the opening of the store, most the search.
            if moments.random_range(0..5) > 0 {
                process.wait_ready();
            }
            // On a busy machine a search takes a while to begin.
            if moments.random_range(0..2) > 0 {
                grows(&client, &nodes, before).await;
            }
            let pause = Duration::from_millis(moments.random_range(0..400));
            tokio::time::sleep(pause / 2).await;
            seen.append(&mut invariants::node_ids(&reader).await);
            tokio::time::sleep(pause / 2).await;
            dead.push(process.kill());
            killed += 1;
            let now = invariants::node_ids(&reader).await;
            let lost: Vec<_> = seen.difference(&now).collect();
            assert!(lost.is_empty(), "kill {killed}, seed {seed}: lost {lost:?}");
            invariants::at_rest(&reader).await;
            amid += u64::from((1..STEPS).contains(&number(&client, &nodes).await));
        } else {
            process.finish();
        }
        let ended = format!("SELECT count(*) FROM evo.runs WHERE run_id = '{run_id}' AND status = 'finished'");
        if number(&client, &ended).await == 0 {
            open_runs.push_back(run);
            continue;
        }
        invariants::ended(&reader, &run_id, STEPS).await;
        if run % 2 == 0 {
            assert_eq!(invariants::fingerprint(&reader, &run_id).await, expected, "seed {seed}");
        }
        if killed < kills {
            open_runs.push_back(run + 2);
            started += 1;
        }
    }
    assert!(
        amid * 4 >= kills,
        "only {amid} of {kills} kills met a search at work, in {started} runs"
    );
    // The next process that opens the store tidies up.
    let engine = open(&fixture.store(), OpenMode::Existing).await;
    invariants::at_rest(&engine).await;
    assert!(is_empty(&fixture.store().join("work")), "collected files are left");
    for mut process in dead {
        process.wait().unwrap();
    }
}
