//! Flush, compaction, checkpoints: the same rows in either tier.

use std::sync::Arc;
use std::time::Duration;

use clade_catalog::{FaultHook, FaultPoint, FlushScope, MaintenanceOptions, Store, StoreOptions, Txn, Value};

use crate::commits::{pair, state};
use crate::support::{create, int, keeping_session, now, options, rows, session, text};

pub fn cold_files(store: &Store, table: &str) -> Vec<std::path::PathBuf> {
    let (schema, table) = table.split_once('.').unwrap();
    let folder = store.dir().join("tables").join(schema).join(table);
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files: Vec<_> = entries
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "parquet"))
        .collect();
    files.sort();
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_the_same_before_and_after_flush_and_compaction_at_every_snapshot() {
    let (_dir, store) = create();
    for n in 1..=40 {
        store.commit(pair(&store, &format!("e{n:02}"), n)).await.unwrap();
        store.commit(state(&store, &format!("k{}", n % 7), n)).await.unwrap();
        if n % 10 == 0 {
            store.flush(FlushScope::All).await.unwrap();
        }
    }
    let sql = "SELECT count(*) AS c, sum(e.n) AS s, sum(e.n + m.n) AS z, max(m.body) AS b, count(e.x) AS x, \
               count(e.tags) AS t, (SELECT sum(v) FROM states) AS v FROM events e JOIN mirror m ON e.id = m.id";
    let mut expected = Vec::new();
    let points = [0, 1, 2, 19, 20, 21, 55, 80];
    for at in points {
        expected.push(text(&session(&store, Some(store.snapshot(Some(at)).await.unwrap())), sql).await);
    }
    assert_eq!(cold_files(&store, "t.events").len(), 4);
    store.commit(pair(&store, "late", 0)).await.unwrap();
    for step in 0..4 {
        match step {
            0 => store.optimize(Some("t.events")).await.unwrap(),
            1 => store.checkpoint().await.unwrap(),
            2 => store.optimize(None).await.unwrap(),
            _ => {}
        }
        let reopened = if step == 3 {
            Store::open(store.dir(), options()).unwrap()
        } else {
            store.clone()
        };
        for (at, expected) in points.iter().zip(&expected) {
            let snapshot = reopened.snapshot(Some(*at)).await.unwrap();
            let context = session(&reopened, Some(Arc::clone(&snapshot)));
            assert_eq!(&text(&context, sql).await, expected, "step {step}, snapshot {at}");
            let context = keeping_session(&reopened, Some(snapshot));
            for round in ["read", "kept"] {
                assert_eq!(
                    &text(&context, sql).await,
                    expected,
                    "{round}: step {step}, snapshot {at}"
                );
            }
        }
        assert_eq!(now(&reopened, "SELECT count(*) FROM events").await, 41);
        assert_eq!(
            now(&reopened, "SELECT count(DISTINCT _seq) FROM events_versions").await,
            41
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replaced_files_stay_for_the_grace_period_and_then_go() {
    let dir = tempfile::tempdir().unwrap();
    let maintenance = MaintenanceOptions {
        interval: None,
        grace: Duration::ZERO,
        ..MaintenanceOptions::default()
    };
    let store = Store::create(dir.path().join("s"), options()).unwrap();
    for n in 0..3 {
        store.commit(pair(&store, &format!("e{n}"), n)).await.unwrap();
        store.flush(FlushScope::Table("t.events".into())).await.unwrap();
    }
    let before = session(&store, None)
        .sql("SELECT sum(n) FROM events")
        .await
        .unwrap()
        .create_physical_plan()
        .await
        .unwrap();
    store.optimize(Some("t.events")).await.unwrap();
    assert_eq!(
        cold_files(&store, "t.events").len(),
        4,
        "a statement may still read the old ones"
    );
    let context = session(&store, None);
    let rows = datafusion::physical_plan::collect(before, context.task_ctx())
        .await
        .unwrap();
    assert_eq!(
        arrow::util::pretty::pretty_format_batches(&rows)
            .unwrap()
            .to_string()
            .lines()
            .count(),
        5
    );
    drop((store, context));
    let store = Store::open(
        dir.path().join("s"),
        StoreOptions {
            maintenance,
            ..options()
        },
    )
    .unwrap();
    store.maintain().await.unwrap();
    assert_eq!(cold_files(&store, "t.events").len(), 1);
    assert_eq!(now(&store, "SELECT sum(n) FROM events").await, 3);
    // A left-over of an interrupted flush goes as well.
    std::fs::write(
        dir.path()
            .join("s/tables/t/events/seq-000000000001-000000000001-x.parquet"),
        "half",
    )
    .unwrap();
    store.optimize(Some("t.events")).await.unwrap();
    assert_eq!(cold_files(&store, "t.events").len(), 1);
    assert_eq!(now(&store, "SELECT count(*) FROM system.problems").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn maintenance_flushes_and_compacts_by_thresholds() {
    let dir = tempfile::tempdir().unwrap();
    let maintenance = MaintenanceOptions {
        interval: Some(Duration::from_millis(20)),
        flush_rows: 10,
        compact_files: 3,
        checkpoint_commits: 4,
        ..MaintenanceOptions::default()
    };
    let store = Store::create(
        dir.path().join("s"),
        StoreOptions {
            maintenance,
            ..options()
        },
    )
    .unwrap();
    for n in 0..200 {
        store.commit(pair(&store, &format!("e{n}"), n)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    for _ in 0..200 {
        if now(
            &store,
            "SELECT hot_rows FROM system.storage WHERE table_name = 't.events'",
        )
        .await
            < 10
        {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(now(&store, "SELECT sum(n) FROM events").await, 199 * 100);
    assert_eq!(now(&store, "SELECT count(*) FROM mirror").await, 200);
    let shown = text(
        &session(&store, None),
        "SELECT * FROM system.storage WHERE table_name = 't.events'",
    )
    .await;
    let files = now(
        &store,
        "SELECT cold_files FROM system.storage WHERE table_name = 't.events'",
    )
    .await;
    assert!((1..=8).contains(&files), "{shown}");
    let log = dir.path().join("s/tables/t/events/_delta_log");
    assert!(
        std::fs::read_dir(log)
            .unwrap()
            .any(|e| e.unwrap().file_name() == "_last_checkpoint"),
        "{shown}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn pruning_by_file_statistics_and_limits_shows_in_the_plan() {
    let (_dir, store) = create();
    for n in 0..5 {
        store.commit(pair(&store, &format!("e{n}"), n * 100)).await.unwrap();
        store.flush(FlushScope::Table("t.events".into())).await.unwrap();
    }
    let context = session(&store, None);
    let files = |plan: &str| plan.matches(".parquet").count();
    let plan = text(&context, "EXPLAIN SELECT id FROM events").await;
    assert_eq!(files(&plan), 5, "{plan}");
    let plan = text(&context, "EXPLAIN SELECT id FROM events WHERE n BETWEEN 150 AND 250").await;
    assert_eq!(files(&plan), 1, "{plan}");
    assert!(
        plan.contains("projection=[id") && plan.contains("pruning_predicate"),
        "{plan}"
    );
    assert_eq!(
        int(&context, "SELECT n FROM events WHERE n BETWEEN 150 AND 250").await,
        200
    );
    let old = session(&store, Some(store.snapshot(Some(2)).await.unwrap()));
    let plan = text(&old, "EXPLAIN SELECT id FROM events").await;
    assert_eq!(files(&plan), 2, "later files are not even opened: {plan}");
    let plan = text(&context, "EXPLAIN SELECT count(*) FROM events").await;
    assert!(
        plan.contains("PlaceholderRowExec"),
        "the count comes from statistics: {plan}"
    );
    // A bloom filter finds a key that the bounds cannot tell apart.
    let analyzed = text(&context, "EXPLAIN ANALYZE SELECT n FROM events WHERE id = 'e3'").await;
    assert!(
        analyzed.contains("row_groups_pruned_bloom_filter") || files(&analyzed) <= 1,
        "{analyzed}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flush_or_compaction_cut_short_anywhere_loses_and_doubles_nothing() {
    for stop in [
        FaultPoint::FilesWritten,
        FaultPoint::DeltaCommitted,
        FaultPoint::Indexed,
    ] {
        let dir = tempfile::tempdir().unwrap();
        let hook = FaultHook(Arc::new(move |point| match point == stop {
            true => Err(std::io::Error::other("stopped on purpose")),
            false => Ok(()),
        }));
        let path = dir.path().join("s");
        let store = Store::create(
            &path,
            StoreOptions {
                fault_hook: Some(hook.clone()),
                ..options()
            },
        )
        .unwrap();
        for n in 0..5 {
            store.commit(pair(&store, &format!("e{n}"), n)).await.unwrap();
        }
        let check = async |store: &Store, rows: i64| {
            assert_eq!(now(store, "SELECT count(*) FROM events").await, rows, "{stop:?}");
            assert_eq!(
                now(store, "SELECT count(DISTINCT id) FROM events").await,
                rows,
                "{stop:?}"
            );
        };
        let error = store.flush(FlushScope::All).await.unwrap_err().to_string();
        assert!(error.contains("stopped on purpose"), "{error}");
        check(&store, 5).await;
        drop(store);
        let store = Store::open(&path, options()).unwrap();
        check(&store, 5).await;
        store.commit(pair(&store, "more", 7)).await.unwrap();
        store.flush(FlushScope::All).await.unwrap();
        store.commit(pair(&store, "yet more", 8)).await.unwrap();
        store.flush(FlushScope::All).await.unwrap();
        check(&store, 7).await;
        drop(store);
        let store = Store::open(
            &path,
            StoreOptions {
                fault_hook: Some(hook),
                ..options()
            },
        )
        .unwrap();
        assert!(store.optimize(Some("t.events")).await.is_err());
        check(&store, 7).await;
        drop(store);
        let store = Store::open(&path, options()).unwrap();
        store.optimize(None).await.unwrap();
        check(&store, 7).await;
        assert_eq!(
            now(
                &store,
                "SELECT cold_files FROM system.storage WHERE table_name = 't.events'"
            )
            .await,
            1
        );
        assert_eq!(now(&store, "SELECT sum(hot_rows) FROM system.storage").await, 0);
        assert_eq!(now(&store, "SELECT count(*) FROM system.problems").await, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flush_whose_caller_has_gone_is_brought_to_its_end_before_the_store_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let (reached, reaching) = std::sync::mpsc::channel();
    let (go_on, going_on) = std::sync::mpsc::channel::<()>();
    let going_on = std::sync::Mutex::new(going_on);
    let hook = FaultHook(Arc::new(move |point| {
        if point == FaultPoint::FilesWritten {
            let _ = reached.send(());
            let _ = going_on.lock().unwrap().recv();
        }
        Ok(())
    }));
    let store = Store::create(
        dir.path().join("s"),
        StoreOptions {
            fault_hook: Some(hook),
            ..options()
        },
    )
    .unwrap();
    store.commit(pair(&store, "a", 1)).await.unwrap();
    let flush = tokio::spawn({
        let store = store.clone();
        async move { store.flush(FlushScope::Table("t.events".into())).await }
    });
    tokio::task::spawn_blocking(move || reaching.recv().unwrap())
        .await
        .unwrap();
    flush.abort();
    assert!(flush.await.unwrap_err().is_cancelled());
    drop(go_on);
    store.close().await;
    let hot = "SELECT hot_rows FROM system.storage WHERE table_name = 't.events'";
    assert_eq!(now(&store, hot).await, 0);
    store.commit(pair(&store, "b", 2)).await.unwrap();
    store.close().await;
    assert_eq!(now(&store, "SELECT count(*) FROM events").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn torn_and_missing_and_foreign_files_are_named_and_left_out() {
    let (_dir, store) = create();
    for n in 0..4 {
        store.commit(pair(&store, &format!("e{n}"), n)).await.unwrap();
        store.flush(FlushScope::Table("t.events".into())).await.unwrap();
    }
    let (path, files) = (store.dir().to_owned(), cold_files(&store, "t.events"));
    drop(store);
    let whole = std::fs::read(&files[1]).unwrap();
    std::fs::write(&files[1], &whole[..whole.len() / 2]).unwrap();
    let mut garbled = std::fs::read(&files[2]).unwrap();
    let length = garbled.len();
    garbled[length - 30..length - 8].fill(0xff);
    std::fs::write(&files[2], garbled).unwrap();
    std::fs::remove_file(&files[3]).unwrap();
    std::fs::write(files[0].with_file_name("part-0.parquet"), &whole).unwrap();
    let store = Store::open(&path, options()).unwrap();
    for _ in 0..2 {
        assert_eq!(now(&store, "SELECT sum(n) FROM events").await, 0);
        assert_eq!(now(&store, "SELECT count(*) FROM events").await, 1);
    }
    store.optimize(Some("t.events")).await.unwrap();
    store.optimize(Some("t.events")).await.unwrap();
    assert_eq!(
        now(&store, "SELECT count(*) FROM system.problems WHERE component = 'cold'").await,
        4
    );
    let shown = text(&session(&store, None), "SELECT subject, message FROM system.problems").await;
    for part in ["part-0.parquet", "missing", "bytes", "restore"] {
        assert!(shown.to_lowercase().contains(part), "{part}: {shown}");
    }
    // A file that is restored is read again.
    std::fs::write(&files[1], &whole).unwrap();
    let store = Store::open(&path, options()).unwrap();
    assert_eq!(now(&store, "SELECT count(*) FROM events").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_delta_log_stops_no_statement_and_is_made_anew() {
    let (_dir, store) = create();
    for n in 0..3 {
        store.commit(pair(&store, &format!("e{n}"), n)).await.unwrap();
        store.flush(FlushScope::All).await.unwrap();
    }
    let log = store.dir().join("tables/t/events/_delta_log");
    std::fs::write(log.join("00000000000000000003.json"), "{\"add\":{\"pa").unwrap();
    assert_eq!(now(&store, "SELECT count(*) FROM events").await, 3);
    store.commit(pair(&store, "e3", 3)).await.unwrap();
    store.flush(FlushScope::All).await.unwrap();
    store.optimize(None).await.unwrap();
    assert_eq!(now(&store, "SELECT count(*) FROM events").await, 4);
    let shown = text(&session(&store, None), "SELECT subject, message FROM system.problems").await;
    assert!(
        shown.contains("_damaged_delta_log_") && shown.contains("made anew"),
        "{shown}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn keyed_tables_read_the_newest_version_across_tiers_and_prune_by_key_only() {
    let (_dir, store) = create();
    for v in 1..=3 {
        let mut both = rows(&store, "t.states");
        for k in ["a", "b"] {
            both.push([("k", Value::from(k)), ("v", v.into())]).unwrap();
        }
        let mut txn = Txn::new();
        txn.append("t.states", both);
        store.commit(txn).await.unwrap();
        if v < 3 {
            store.flush(FlushScope::All).await.unwrap();
        }
    }
    let context = session(&store, None);
    assert_eq!(int(&context, "SELECT sum(v) FROM states").await, 6);
    assert_eq!(int(&context, "SELECT count(*) FROM states WHERE v < 3").await, 0);
    assert_eq!(int(&context, "SELECT v FROM states WHERE k = 'a' AND v > 0").await, 3);
    assert_eq!(
        int(&context, "SELECT count(*) FROM (SELECT k FROM states LIMIT 1)").await,
        1
    );
    let plan = text(&context, "EXPLAIN SELECT v FROM states WHERE k = 'a' AND v > 0").await;
    assert!(
        plan.contains("NewestExec: key=[k]") && plan.contains("predicate=k"),
        "{plan}"
    );
    assert!(!plan.contains("predicate=k@0 = a AND v"), "{plan}");
}
