//! Several processes on one store, and processes that are killed.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clade_catalog::{FlushScope, MaintenanceOptions, Store, StoreOptions};

use crate::commits::pair;
use crate::concurrency::check;
use crate::support::{create, int, now, options, session};

/// Starts this test binary again as a process that commits until it is stopped, or `commits` times.
fn start(store: &Path, name: &str, commits: i64, flush: bool) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["processes::committing_process", "--exact", "--ignored", "--nocapture"])
        .env("CLADE_CHILD_STORE", store)
        .env("CLADE_CHILD_NAME", name)
        .env("CLADE_CHILD_COMMITS", commits.to_string())
        .env("CLADE_CHILD_FLUSH", if flush { "1" } else { "0" })
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Ids that a process said were committed.
fn said(child: &mut Child) -> Vec<String> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines
        .map_while(Result::ok)
        .filter_map(|line| line.strip_prefix("committed ").map(str::to_owned))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "the other tests of this file run it as a process of its own"]
async fn committing_process() {
    let Some(path) = std::env::var_os("CLADE_CHILD_STORE") else {
        return;
    };
    let name = std::env::var("CLADE_CHILD_NAME").unwrap();
    let commits: i64 = std::env::var("CLADE_CHILD_COMMITS").unwrap().parse().unwrap();
    let maintenance = MaintenanceOptions {
        interval: None,
        grace: Duration::ZERO,
        ..MaintenanceOptions::default()
    };
    let store = Store::open(
        path,
        StoreOptions {
            maintenance,
            ..options()
        },
    )
    .unwrap();
    let mover = store.clone();
    let moving = tokio::spawn(async move {
        while std::env::var("CLADE_CHILD_FLUSH").unwrap() == "1" {
            mover.flush(FlushScope::All).await.unwrap();
            mover.optimize(Some("t.events")).await.unwrap();
            mover.checkpoint().await.unwrap();
        }
    });
    for n in 0..commits {
        let id = format!("{name}-{n}");
        store.commit(pair(&store, &id, n + 1)).await.unwrap();
        writeln!(std::io::stdout(), "committed {id}").unwrap();
    }
    moving.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn several_processes_write_and_read_one_store() {
    let (_dir, store) = create();
    let path = store.dir().to_owned();
    let mut children: Vec<_> = (0..3).map(|i| start(&path, &format!("p{i}"), 120, i == 0)).collect();
    let reader = Store::open(
        &path,
        StoreOptions {
            read_only: true,
            ..options()
        },
    )
    .unwrap();
    let mut reads = 0;
    while children.iter_mut().any(|child| child.try_wait().unwrap().is_none()) {
        check(&reader, None).await;
        store.commit(pair(&store, &format!("here-{reads}"), 5)).await.unwrap();
        store.flush(FlushScope::Table("t.mirror".into())).await.unwrap();
        reads += 1;
    }
    for mut child in children {
        assert_eq!(said(&mut child).len(), 120);
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(check(&store, None).await, 3 * 120 + reads);
    assert_eq!(store.snapshot(None).await.unwrap().seq(), 3 * 120 + reads);
    assert_eq!(now(&store, "SELECT count(*) FROM system.problems").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_loses_nothing_it_said_was_committed_and_doubles_nothing() {
    let kills: u64 = std::env::var("CLADE_KILLS").map_or(12, |kills| kills.parse().unwrap());
    let (_dir, store) = create();
    let path = store.dir().to_owned();
    drop(store);
    let mut total = 0;
    let mut expected = Vec::new();
    for round in 0..kills {
        let mut child = start(&path, &format!("r{round}"), i64::MAX, true);
        // Times spread over start, commits, flushes and compactions.
        std::thread::sleep(Duration::from_millis(60 + (round * 7919) % 400));
        child.kill().unwrap();
        let committed = said(&mut child);
        child.wait().unwrap();
        total += committed.len();
        expected.extend(committed);
        let store = Store::open(&path, options()).unwrap();
        let rows = check(&store, None).await;
        // The last commit of a process may be durable although it could not say so any more.
        assert!(
            (total as i64..=total as i64 + round as i64 + 1).contains(&rows),
            "{rows} rows, {total} said"
        );
        let context = session(&store, None);
        let list = expected.iter().map(|id| format!("('{id}')")).collect::<Vec<_>>();
        for some in list.chunks(2000) {
            let sql = format!(
                "SELECT count(*) FROM (VALUES {}) v(i) JOIN events ON id = v.i",
                some.join(",")
            );
            assert_eq!(int(&context, &sql).await, some.len() as i64);
        }
        assert_eq!(int(&context, "SELECT count(*) FROM system.problems").await, 0);
        let seqs = "SELECT max(_seq) - count(DISTINCT _seq) FROM events_versions";
        assert_eq!(int(&context, seqs).await, 0, "commit numbers have no gap");
    }
    assert!(total > 0);
}
