//! A day of search in moments: budgets of hours end it where they say, to the second, and kills on the way change nothing of that.

use std::sync::Arc;
use std::time::Duration;

use clade::config::{Override, Sources};
use clade::engine::{Engine, Extensions, OpenMode};
use clade::scheduler::Sandbox;
use clade_catalog::Clock;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::fixture::{add_task, number, rows, run_session, session, table};
use super::timed::{MovedClock, Moves, Slow, SlowSandbox};

struct Place {
    folder: TempDir,
    clock: Moves,
    answers: (u64, u64),
    programs: (u64, u64),
}

impl Place {
    async fn open(&self, mode: OpenMode, hold: Vec<usize>) -> (Arc<Engine>, Arc<SlowSandbox>) {
        let path = format!("store.path={}", self.folder.path().join("store").display());
        let settings = [
            path.as_str(),
            "python.interpreter=python3",
            "sandbox.executor=instant",
            "search.model=scripted",
            "sandbox.wall_seconds=7200",
            "search.grade=false",
        ];
        let sources = Sources {
            overrides: settings
                .iter()
                .map(|text| Override::parse(text, "test").unwrap())
                .collect(),
            ..Sources::default()
        };
        let sandbox = Arc::new(SlowSandbox {
            clock: self.clock.clone(),
            hold,
            ..SlowSandbox::default()
        });
        let model = Slow {
            clock: self.clock.clone(),
            answers: self.answers,
            programs: self.programs,
        };
        let both = Sandbox {
            executor: Arc::clone(&sandbox) as _,
            evaluator: Arc::clone(&sandbox) as _,
        };
        let extensions = Extensions {
            models: vec![Arc::new(model)],
            sandboxes: [("instant".to_owned(), both)].into(),
            clock: self.clock.clone().map(|clock| clock as Arc<dyn Clock>),
        };
        let engine = Engine::open_with(&sources.load().unwrap(), mode, extensions)
            .await
            .unwrap();
        if mode == OpenMode::Create {
            add_task(&engine, "toy").await;
        }
        (engine, sandbox)
    }

    /// Runs to the end, ended from outside at each of the jobs.
    async fn run(&self, options: &str, kills: &[usize]) -> Arc<Engine> {
        let mut sql = format!("EVOLVE TASK 'toy' WITH (steps => 800, seed => 3, id => 'r', {options})");
        let mut mode = OpenMode::Create;
        for job in kills {
            let (engine, sandbox) = self.open(mode, vec![*job]).await;
            let client = session(&engine);
            let conducted = tokio::spawn(async move { rows(&client, &sql).await.map(drop) });
            sandbox.held.notified().await;
            engine.scheduler().kill();
            engine.scheduler().idle().await;
            conducted.await.unwrap().unwrap();
            drop(engine);
            (sql, mode) = ("RESUME RUN 'r'".to_owned(), OpenMode::Existing);
        }
        let (engine, _) = self.open(mode, Vec::new()).await;
        rows(&session(&engine), &sql).await.unwrap();
        engine
    }
}

async fn holds(engine: &Arc<Engine>, condition: &str) {
    let client = run_session(engine, "r");
    let budget = table(
        &client,
        "SELECT resource, \"limit\", spent, reserved FROM run.budget ORDER BY 1",
    )
    .await;
    let nodes = table(
        &client,
        "SELECT count(*), sum(sandbox_seconds), sum(model_seconds), count(*) FILTER (WHERE status = 'timeout') FROM run.nodes",
    )
    .await;
    let run = table(&client, "SELECT status, stop_reason, error FROM evo.runs").await;
    let held = number(&client, &format!("SELECT count(*) FROM (SELECT 1) WHERE {condition}")).await;
    assert_eq!(held, 1, "{condition}\n{budget}\n{nodes}\n{run}");
}

/// Limit of a budget less what was spent.
fn left(resource: &str) -> String {
    format!("(SELECT \"limit\" - spent FROM run.budget WHERE resource = '{resource}')")
}

const NOTHING_HELD: &str = "(SELECT sum(reserved) FROM run.budget) = 0 AND (SELECT count(*) FROM sandbox.leases) = 0";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twelve_hours_in_the_sandbox_end_to_the_second() {
    for kills in [&[][..], &[3, 5, 1]] {
        let place = Place {
            folder: tempfile::tempdir().unwrap(),
            clock: None,
            answers: (30, 600),
            programs: (300, 9_000),
        };
        let engine = place
            .run(
                "workers => 3, max_sandbox => '12 h', max_model_sandbox => '18 h'",
                kills,
            )
            .await;
        let left = left("sandbox_seconds");
        holds(&engine, &format!("{left} >= 0 AND {left} < 1")).await;
        holds(&engine, NOTHING_HELD).await;
        holds(&engine, "(SELECT stop_reason FROM evo.runs) = 'sandbox_seconds'").await;
        let booked = "abs((SELECT sum(sandbox_seconds) FROM run.nodes) - (SELECT spent FROM run.budget WHERE resource = 'sandbox_seconds')) < 1e-6";
        holds(&engine, booked).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eighteen_hours_of_model_and_sandbox_end_to_the_second() {
    for kills in [&[][..], &[2, 4]] {
        let place = Place {
            folder: tempfile::tempdir().unwrap(),
            clock: None,
            answers: (600, 3_600),
            programs: (60, 3_000),
        };
        let engine = place
            .run(
                "workers => 3, max_sandbox => '12 h', max_model_sandbox => '18 h'",
                kills,
            )
            .await;
        let left = left("active_seconds");
        holds(&engine, &format!("{left} >= 0 AND {left} < 1")).await;
        holds(&engine, NOTHING_HELD).await;
        holds(&engine, "(SELECT stop_reason FROM evo.runs) = 'active_seconds'").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_hour_of_wall_time_ends_to_the_second_and_does_not_pass_while_nobody_works() {
    let clock = Arc::new(MovedClock::default());
    let place = Place {
        folder: tempfile::tempdir().unwrap(),
        clock: Some(Arc::clone(&clock)),
        answers: (10, 60),
        programs: (30, 400),
    };
    let (engine, sandbox) = place.open(OpenMode::Create, vec![3]).await;
    let sql = "EVOLVE TASK 'toy' WITH (steps => 800, workers => 1, seed => 3, id => 'r', max_wall => '1 h') ASYNC";
    rows(&session(&engine), sql).await.unwrap();
    sandbox.held.notified().await;
    engine.scheduler().kill();
    engine.scheduler().idle().await;
    drop(engine);
    clock
        .pass(Duration::from_secs(5 * 3600), &CancellationToken::new())
        .await;
    let (engine, _) = place.open(OpenMode::Existing, Vec::new()).await;
    let before = clock.now_micros();
    holds(
        &engine,
        "(SELECT spent FROM run.budget WHERE resource = 'wall_seconds') < 1600",
    )
    .await;
    rows(&session(&engine), "RESUME RUN 'r'").await.unwrap();
    let left = left("wall_seconds");
    holds(&engine, &format!("abs({left}) < 1")).await;
    holds(&engine, NOTHING_HELD).await;
    holds(&engine, "(SELECT stop_reason FROM evo.runs) = 'wall_seconds'").await;
    assert!(clock.now_micros() - before > 1_000_000_000);
}
