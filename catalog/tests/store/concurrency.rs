//! Many writers and readers at once, while rows move between the tiers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clade_catalog::{FlushScope, Store, Txn, Value};

use crate::commits::pair;
use crate::support::{create, int, now, rows, session};

const WRITERS: i64 = 32;
const COMMITS: i64 = 25;

/// What must hold in every snapshot: both tables hold the same commits, none is torn or doubled.
pub async fn check(store: &Store, at: Option<i64>) -> i64 {
    let context = session(store, Some(store.snapshot(at).await.unwrap()));
    let sql = "SELECT (SELECT sum(n) FROM events) + (SELECT sum(n) FROM mirror)";
    assert_eq!(
        int(&context, &format!("SELECT coalesce(({sql}), 0)")).await,
        0,
        "sums of two tables in one snapshot"
    );
    let rows = int(&context, "SELECT count(*) FROM events").await;
    assert_eq!(int(&context, "SELECT count(DISTINCT id) FROM events").await, rows);
    assert_eq!(int(&context, "SELECT count(*) FROM mirror").await, rows);
    assert_eq!(
        int(&context, "SELECT count(*) FROM events e JOIN mirror m ON e.id = m.id").await,
        rows
    );
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_snapshot_shows_half_a_commit_while_rows_move() {
    let (_dir, store) = create();
    let done = Arc::new(AtomicBool::new(false));
    let mover = {
        let (store, done) = (store.clone(), Arc::clone(&done));
        tokio::spawn(async move {
            let mut moves = 0;
            while !done.load(Ordering::Relaxed) {
                store.flush(FlushScope::All).await.unwrap();
                moves += 1;
                if moves % 3 == 0 {
                    store.optimize(None).await.unwrap();
                }
            }
            moves
        })
    };
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let (store, done) = (store.clone(), Arc::clone(&done));
            tokio::spawn(async move {
                let (mut before, mut reads) = (0, 0);
                while !done.load(Ordering::Relaxed) {
                    let rows = check(&store, None).await;
                    assert!(rows >= before, "a later snapshot holds no less");
                    (before, reads) = (rows, reads + 1);
                }
                reads
            })
        })
        .collect();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut last = 0;
                for n in 0..COMMITS {
                    let seq = store
                        .commit(pair(&store, &format!("w{writer}-{n}"), n + 1))
                        .await
                        .unwrap();
                    assert!(seq > last);
                    last = seq;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    done.store(true, Ordering::Relaxed);
    let moves = mover.await.unwrap();
    for reader in readers {
        assert!(reader.await.unwrap() > 0);
    }
    assert!(moves > 0);
    assert_eq!(store.snapshot(None).await.unwrap().seq(), WRITERS * COMMITS);
    assert_eq!(check(&store, None).await, WRITERS * COMMITS);
    assert_eq!(check(&store, Some(100)).await, 100);
    assert_eq!(
        now(&store, "SELECT count(DISTINCT _seq) FROM events_versions").await,
        WRITERS * COMMITS
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_one_row_commits_are_read_as_a_few_batches() {
    let (_dir, store) = create();
    let commits: Vec<_> = (0..3000).map(|n| pair(&store, &format!("e{n}"), n)).collect();
    let early = session(&store, None);
    let mut waiting = tokio::task::JoinSet::new();
    for (index, txn) in commits.into_iter().enumerate() {
        let store = store.clone();
        waiting.spawn(async move { store.commit(txn).await.unwrap() });
        if index % 500 == 0 {
            int(&early, "SELECT count(*) FROM events").await;
        }
    }
    waiting.join_all().await;
    let plan = early
        .sql("SELECT * FROM events")
        .await
        .unwrap()
        .create_physical_plan()
        .await
        .unwrap();
    let batches = datafusion::physical_plan::collect(plan, early.task_ctx())
        .await
        .unwrap();
    assert!(batches.len() <= 12, "{} batches", batches.len());
    assert_eq!(batches.iter().map(|b| b.num_rows()).sum::<usize>(), 3000);
}

#[tokio::test(flavor = "multi_thread")]
async fn decoded_rows_stay_within_their_memory() {
    let dir = tempfile::tempdir().unwrap();
    let options = clade_catalog::StoreOptions {
        hot_cache_bytes: 1,
        ..crate::support::options()
    };
    let store = Store::create(dir.path().join("s"), options).unwrap();
    for n in 0..10 {
        let mut events = rows(&store, "t.mirror");
        events
            .push([
                ("id", Value::from(format!("e{n}"))),
                ("n", n.into()),
                ("body", "x".repeat(10_000).into()),
            ])
            .unwrap();
        let mut txn = pair(&store, &format!("f{n}"), n);
        txn.append("t.mirror", events);
        store.commit(txn).await.unwrap();
        store.commit(Txn::new()).await.unwrap();
        assert_eq!(now(&store, "SELECT count(*) FROM mirror").await, 2 * (n + 1));
        assert_eq!(now(&store, "SELECT count(*) FROM events").await, n + 1);
    }
}
