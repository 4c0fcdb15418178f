//! Suites: every task and repeat is a run of its own, a fault stops no other, and a suite goes on only as it began.

use std::cell::RefCell;
use std::sync::Arc;

use clade::dialect::{Evolve, EvolveOptions};
use clade::engine::{Engine, OpenMode};
use clade::scheduler::derive_seed;
use clade::suite::{Event, Outcome, SuiteError, SuiteRequest, resume, start};
use clade_catalog::{Rows, Txn, Value};

use crate::engine::fixture::{Fixture, add_task, instant, number, open_store, rows, session, table, texts};
use crate::engine::instant::Instant;

fn request(name: &str, tasks: &[&str], repeats: u64) -> SuiteRequest {
    SuiteRequest {
        name: name.to_owned(),
        definition: None,
        tasks: tasks.iter().map(|task| (*task).to_owned()).collect(),
        repeats,
        evolve: Evolve {
            task_id: String::new(),
            policy: None,
            model: None,
            sandbox: None,
            options: EvolveOptions {
                steps: Some(8),
                workers: Some(2),
                seed: Some(3),
                ..EvolveOptions::default()
            },
            is_async: false,
        },
        max_workers: None,
    }
}

async fn run(engine: &Arc<Engine>, request: SuiteRequest) -> Result<Outcome, SuiteError> {
    start(&session(engine), request, &|_| {}).await
}

async fn go_on(engine: &Arc<Engine>, name: &str) -> Result<Outcome, SuiteError> {
    resume(&session(engine), name, None, &|_| {}).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_task_is_searched_so_often_with_seeds_of_its_own() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    add_task(&engine, "other").await;
    let outcome = run(&engine, request("s", &["toy", "absent", "other"], 2))
        .await
        .unwrap();
    assert_eq!(
        outcome,
        Outcome {
            searches: 6,
            finished: 4,
            missing: 2,
            ..Outcome::default()
        }
    );
    let client = session(&engine);
    assert_eq!(
        texts(&client, "SELECT run_id FROM bench.suite_runs ORDER BY repeat, task_id").await,
        [
            "s.absent.1",
            "s.other.1",
            "s.toy.1",
            "s.absent.2",
            "s.other.2",
            "s.toy.2"
        ]
    );
    // Seeds belong to the repeat, so that two suites of one seed can be compared search by search.
    for repeat in [1, 2] {
        let sql = format!(
            "SELECT count(*) FROM evo.runs r JOIN bench.suite_runs s ON s.run_id = r.run_id
             WHERE s.repeat = {repeat} AND r.seed = {}",
            derive_seed(3, "repeat", repeat, 0)
        );
        assert_eq!(number(&client, &sql).await, 2);
    }
    for (count, sql) in [
        (
            4,
            "SELECT count(*) FROM bench.suite_progress WHERE status = 'finished' AND valid AND steps = 8",
        ),
        (
            2,
            "SELECT count(*) FROM bench.suite_progress WHERE status = 'task_missing' AND steps = 0",
        ),
        (
            2,
            "SELECT count(*) FROM bench.by_task WHERE suite_id = 's' AND runs = 2 AND valid_rate = 1",
        ),
        (
            1,
            "SELECT count(*) FROM bench.suite_report WHERE searches = 6 AND finished = 4 AND missing = 2 AND failed = 0
             AND mean_valid_rate = 1 AND std_valid_rate = 0",
        ),
        (
            2,
            "SELECT repeats FROM bench.by_modality WHERE suite_id = 's' AND modality = 'tabular'",
        ),
        (
            1,
            "SELECT count(*) FROM bench.suites WHERE status = 'finished' AND finished_at IS NOT NULL",
        ),
        (0, "SELECT count(*) FROM sandbox.leases"),
    ] {
        assert_eq!(number(&client, sql).await, count, "{sql}");
    }
    let again = run(&engine, request("s", &["toy"], 1)).await.unwrap_err().to_string();
    assert!(again.contains("clade bench resume s"), "{again}");
    let nothing = go_on(&engine, "s").await.unwrap_err().to_string();
    assert_eq!(
        nothing,
        "suite 's' has only searches left whose tasks are not imported: absent; clade task add imports them"
    );
    let unknown = go_on(&engine, "t").await.unwrap_err().to_string();
    assert_eq!(
        unknown,
        "there is no suite 't'; the newest are:\n  s  openmle_evo, finished"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_cannot_be_searched_stops_no_other() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    add_task(&engine, "broken").await;
    let metric = engine.store().dir().join("tasks/broken/test/utils/metric.py");
    let text = std::fs::read(&metric).unwrap();
    std::fs::remove_file(&metric).unwrap();
    let outcome = run(&engine, request("s", &["broken", "toy"], 2)).await.unwrap();
    assert_eq!((outcome.finished, outcome.failed), (2, 2));
    let client = session(&engine);
    let faults = table(
        &client,
        "SELECT status, error FROM bench.suite_progress WHERE task_id = 'broken'",
    )
    .await;
    assert!(
        faults.contains("not_started") && faults.contains("'broken' is gone"),
        "{faults}"
    );
    // What failed is tried again.
    std::fs::write(&metric, text).unwrap();
    let outcome = go_on(&engine, "s").await.unwrap();
    assert_eq!((outcome.finished, outcome.failed), (4, 0));
    assert_eq!(
        number(
            &client,
            "SELECT count(*) FROM bench.suite_progress WHERE error IS NOT NULL"
        )
        .await,
        0
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_with_every_search_is_said_before_the_first() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let mut wrong = request("s", &["toy"], 1);
    wrong.evolve.model = Some("nope".to_owned());
    assert!(run(&engine, wrong).await.unwrap_err().to_string().contains("nope"));
    let mut wide = request("s", &["toy"], 1);
    wide.max_workers = Some(1);
    let error = run(&engine, wide).await.unwrap_err().to_string();
    assert!(error.contains("2 workers"), "{error}");
    let mut named = request("s", &["toy"], 1);
    named.evolve.options.id = Some("mine".to_owned());
    assert!(
        run(&engine, named)
            .await
            .unwrap_err()
            .to_string()
            .contains("leave the option id out")
    );
    let client = session(&engine);
    rows(
        &client,
        "EVOLVE TASK 'toy' WITH (steps => 2, workers => 1, id => 's.toy.1')",
    )
    .await
    .unwrap();
    let taken = run(&engine, request("s", &["toy"], 1)).await.unwrap_err().to_string();
    assert!(taken.contains("there is a run 's.toy.1' already"), "{taken}");
    assert_eq!(number(&client, "SELECT count(*) FROM bench.suites").await, 0);
    assert_eq!(number(&client, "SELECT count(*) FROM sandbox.leases").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_are_bounded_over_all_searches() {
    let fixture = Fixture::shuffled();
    let engine = fixture.create().await;
    add_task(&engine, "other").await;
    let mut request = request("s", &["toy", "other"], 3);
    request.max_workers = Some(5);
    let (now, most) = (RefCell::new(0), RefCell::new(0));
    let told = |event: Event<'_>| match event {
        Event::Started(_) => {
            *now.borrow_mut() += 1;
            most.replace_with(|most| (*most).max(*now.borrow()));
        }
        Event::Ended(..) => *now.borrow_mut() -= 1,
        other => panic!("{other:?}"),
    };
    start(&session(&engine), request, &told).await.unwrap();
    assert_eq!((*now.borrow(), *most.borrow()), (0, 2));
}

/// A suite that is killed when its second search begins.
async fn killed(fixture: &Fixture) -> Arc<Engine> {
    let engine = fixture.create().await;
    add_task(&engine, "other").await;
    let begun = RefCell::new(0);
    let told = |event: Event<'_>| {
        if let Event::Started(_) = event {
            *begun.borrow_mut() += 1;
            if *begun.borrow() == 2 {
                let engine = Arc::clone(&engine);
                tokio::spawn(async move {
                    tokio::time::sleep(std::time::Duration::from_millis(30)).await;
                    engine.scheduler().kill();
                });
            }
        }
    };
    let policy = "CREATE POLICY mine AS SELECT * FROM policies.uniform";
    rows(&session(&engine), policy).await.unwrap();
    let mut request = request("s", &["toy", "other"], 2);
    request.evolve.policy = Some("mine".to_owned());
    request.evolve.options.steps = Some(20);
    let outcome = start(&session(&engine), request, &told).await.unwrap();
    assert_eq!((outcome.finished, outcome.interrupted), (1, 3));
    engine.close().await;
    engine
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suite_that_was_killed_goes_on_with_what_is_left() {
    let fixture = Fixture::shuffled();
    drop(killed(&fixture).await);
    let engine = fixture.open(OpenMode::Existing).await.unwrap();
    let client = session(&engine);
    assert_eq!(texts(&client, "SELECT status FROM bench.suites").await, ["interrupted"]);
    let outcome = go_on(&engine, "s").await.unwrap();
    assert_eq!((outcome.finished, outcome.interrupted), (4, 0));
    for (count, sql) in [
        (80, "SELECT count(*) FROM evo.nodes"),
        (4, "SELECT count(*) FROM evo.runs"),
        (4, "SELECT count(*) FROM bench.grades"),
        (4, "SELECT count(*) FROM bench.suite_runs"),
        (0, "SELECT count(*) FROM sandbox.leases"),
    ] {
        assert_eq!(number(&client, sql).await, count, "{sql}");
    }
}

/// The task again, with another package.
fn repackaged(task_id: &str) -> Rows {
    let mut rows = Rows::new("gym.tasks").unwrap();
    rows.push([
        ("task_id", task_id.into()),
        ("title", "A toy".into()),
        ("description", "Predict y from x.".into()),
        ("modality", "tabular".into()),
        ("task_type", "regression".into()),
        ("metric", "r2".into()),
        ("higher_is_better", true.into()),
        ("package_hash", "0123456789abcdef".into()),
        ("package_path", format!("tasks/{task_id}/test").into()),
        ("source", "test".into()),
        ("validation", "split".into()),
        ("imported_at", Value::Timestamp(1)),
    ])
    .unwrap();
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suite_goes_on_only_as_it_began() {
    let fixture = Fixture::shuffled();
    let engine = killed(&fixture).await;
    rows(
        &session(&engine),
        "CREATE OR REPLACE POLICY mine AS SELECT * FROM policies.best_of_n",
    )
    .await
    .unwrap();
    drop(engine);
    let settings = ["search.temperature=0.1", "sandbox.memory=8GiB"];
    let models = vec![Arc::clone(&fixture.model) as _];
    let sandbox = instant(Arc::new(Instant::default()));
    let engine = open_store(&fixture.store(), &settings, models, sandbox, OpenMode::Existing)
        .await
        .unwrap();
    let mut txn = Txn::new();
    txn.append("gym.tasks", repackaged("toy"));
    engine.store().commit(txn).await.unwrap();
    let error = go_on(&engine, "s").await.unwrap_err().to_string();
    for part in [
        "suite s is not resumed",
        "\n  temperature was 0.6 and is 0.1 now",
        "\n  sandbox.memory was",
        "\n  policy mine has another text now",
        "\n  task toy has another package now (0123456789ab instead of test)",
    ] {
        assert!(error.contains(part), "{part} is not in\n{error}");
    }
    assert!(!error.contains("task other"), "{error}");
    let client = session(&engine);
    assert_eq!(
        number(&client, "SELECT count(*) FROM sandbox.leases WHERE kind = 'suite'").await,
        0
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_was_missing_is_taken_in_once_it_is_imported() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    assert_eq!(
        run(&engine, request("s", &["toy", "late"], 1)).await.unwrap().missing,
        1
    );
    add_task(&engine, "late").await;
    let outcome = go_on(&engine, "s").await.unwrap();
    assert_eq!((outcome.finished, outcome.missing), (2, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_do_not_conduct_one_suite() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    run(&engine, request("s", &["toy", "late"], 1)).await.unwrap();
    add_task(&engine, "late").await;
    let held = engine.scheduler().hold("suite/s").await.unwrap();
    let error = go_on(&engine, "s").await.unwrap_err().to_string();
    assert!(error.contains("'suite/s' is being conducted"), "{error}");
    let lease = table(&session(&engine), "SELECT kind, id, is_live FROM sandbox.leases").await;
    assert!(lease.contains("| suite | suite/s | true"), "{lease}");
    held.release(Txn::new()).await.unwrap();
    assert_eq!(go_on(&engine, "s").await.unwrap().finished, 2);
}
