//! Commits, snapshots and tables while rows are hot.

use clade_catalog::{Rows, Store, StoreError, StoreOptions, Txn, Value};

use crate::support::{create, int, now, options, query, rows, session, text};

/// One event and its mirror row in one commit.
pub fn pair(store: &Store, id: &str, n: i64) -> Txn {
    let mut events = rows(store, "t.events");
    events
        .push([
            ("id", Value::from(id)),
            ("n", n.into()),
            ("tags", vec!["a".to_owned()].into()),
        ])
        .unwrap();
    let mut mirror = rows(store, "t.mirror");
    mirror
        .push([
            ("id", id.into()),
            ("n", (-n).into()),
            ("body", format!("body of {id}").into()),
        ])
        .unwrap();
    let mut txn = Txn::new();
    txn.append("t.events", events).append("t.mirror", mirror);
    txn
}

pub fn state(store: &Store, k: &str, v: i64) -> Txn {
    let mut states = rows(store, "t.states");
    states.push([("k", Value::from(k)), ("v", v.into())]).unwrap();
    let mut txn = Txn::new();
    txn.append("t.states", states);
    txn
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_are_numbered_and_read_back() {
    let (_dir, store) = create();
    assert_eq!(store.commit(Txn::new()).await.unwrap(), 0);
    assert_eq!(store.commit(pair(&store, "a", 1)).await.unwrap(), 1);
    assert_eq!(store.commit(pair(&store, "b", 2)).await.unwrap(), 2);
    let context = session(&store, None);
    assert_eq!(int(&context, "SELECT sum(n) FROM events").await, 3);
    assert_eq!(
        int(
            &context,
            "SELECT e.n + m.n FROM events e JOIN mirror m USING (id) WHERE e.id = 'b'"
        )
        .await,
        0
    );
    assert_eq!(int(&context, "SELECT count(*) FROM events").await, 2);
    assert_eq!(int(&context, "SELECT max(_seq) FROM events_versions").await, 2);
    let shown = text(&context, "SELECT * FROM events WHERE n = 2").await;
    assert!(shown.contains("[a]") && !shown.contains("_seq"), "{shown}");
    store.commit(pair(&store, "c", 3)).await.unwrap();
    assert_eq!(int(&context, "SELECT count(*) FROM events").await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn keyed_tables_show_the_newest_version_of_a_key_at_the_snapshot() {
    let (_dir, store) = create();
    for v in 1..=3 {
        store.commit(state(&store, "a", v)).await.unwrap();
        store.commit(state(&store, "b", 10 * v)).await.unwrap();
    }
    let context = session(&store, None);
    assert_eq!(int(&context, "SELECT sum(v) FROM states").await, 33);
    assert_eq!(int(&context, "SELECT count(*) FROM states").await, 2);
    assert_eq!(int(&context, "SELECT count(*) FROM states WHERE v = 1").await, 0);
    assert_eq!(int(&context, "SELECT v FROM states WHERE k = 'b' LIMIT 1").await, 30);
    assert_eq!(int(&context, "SELECT count(*) FROM states_versions").await, 6);
    let old = session(&store, Some(store.snapshot(Some(3)).await.unwrap()));
    assert_eq!(int(&old, "SELECT sum(v) FROM states").await, 12);
    // Two versions of a key in one commit: the later row counts.
    let mut two = rows(&store, "t.states");
    two.push([("k", "a".into()), ("v", 7.into())])
        .unwrap()
        .push([("k", "a".into()), ("v", 8.into())])
        .unwrap();
    let mut txn = Txn::new();
    txn.append("t.states", two);
    store.commit(txn).await.unwrap();
    assert_eq!(int(&context, "SELECT v FROM states WHERE k = 'a'").await, 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_in_a_control_closure_rolls_back_its_own_commit_only() {
    let (_dir, store) = create();
    let set = |key: &str| {
        let key = key.to_owned();
        move |tx: &rusqlite::Transaction<'_>| tx.execute("INSERT INTO settings VALUES (?1, 'v')", [key]).map(|_| ())
    };
    let mut good = pair(&store, "good", 1);
    good.control(set("good"));
    let mut bad = pair(&store, "bad", 1);
    bad.control(set("bad")).control(|_| Err::<(), _>("refused on purpose"));
    let mut twice = pair(&store, "twice", 1);
    twice.control(set("x")).control(set("x"));
    let (good, bad, twice) = tokio::join!(store.commit(good), store.commit(bad), store.commit(twice));
    good.unwrap();
    assert_eq!(bad.unwrap_err().to_string(), "refused on purpose");
    assert!(matches!(twice.unwrap_err(), StoreError::Control(_)));
    assert_eq!(now(&store, "SELECT count(*) FROM events").await, 1);
    assert_eq!(now(&store, "SELECT count(*) FROM mirror").await, 1);
    let keys: String = store
        .control_read(|c| c.query_row("SELECT group_concat(key) FROM settings", [], |r| r.get(0)))
        .await
        .unwrap();
    assert_eq!(keys, "good");
    let changed = store
        .control(|tx| tx.execute("DELETE FROM settings", []))
        .await
        .unwrap();
    assert_eq!(changed, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_can_depend_on_the_control_tables() {
    let (_dir, store) = create();
    let mut txn = pair(&store, "early", 5);
    let spec = store.specs().get("t.events").unwrap().clone();
    txn.control_rows(move |tx, appends| {
        let n: i64 = tx.query_row("SELECT count(*) FROM settings", [], |row| row.get(0))?;
        let mut rows = Rows::for_spec(&spec);
        rows.push([("id", Value::from("late")), ("n", (n + 1).into())])
            .map_err(|e| e.to_string())
            .unwrap();
        appends.append("t.events", rows);
        Ok::<_, rusqlite::Error>(())
    });
    assert_eq!(store.commit(txn).await.unwrap(), 1);
    assert_eq!(now(&store, "SELECT sum(n) FROM events").await, 6);
    assert_eq!(now(&store, "SELECT count(DISTINCT _seq) FROM events_versions").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_do_not_fit_are_refused_and_nothing_is_written() {
    let (_dir, store) = create();
    let mut txn = pair(&store, "a", 1);
    txn.append(
        "t.states",
        arrow::array::RecordBatch::try_from_iter([("k", int_array())]).unwrap(),
    );
    let error = store.commit(txn).await.unwrap_err().to_string();
    assert!(error.contains("t.states") && error.contains("column v"), "{error}");
    let mut txn = Txn::new();
    txn.append("t.nothing", rows(&store, "t.states")).append(
        "t.nothing",
        arrow::array::RecordBatch::try_from_iter([("k", int_array())]).unwrap(),
    );
    assert!(
        store
            .commit(txn)
            .await
            .unwrap_err()
            .to_string()
            .contains("unknown table t.nothing")
    );
    assert_eq!(store.snapshot(None).await.unwrap().seq(), 0);
}

fn int_array() -> arrow::array::ArrayRef {
    std::sync::Arc::new(arrow::array::Int64Array::from(vec![1]))
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_travel_in_time_and_unknown_ones_are_errors() {
    let (_dir, store) = create();
    for n in 1..=50 {
        store.commit(pair(&store, &format!("e{n}"), n)).await.unwrap();
    }
    for at in [0, 1, 17, 50] {
        let context = session(&store, Some(store.snapshot(Some(at)).await.unwrap()));
        assert_eq!(int(&context, "SELECT count(*) FROM events").await, at);
        assert_eq!(
            int(&context, "SELECT coalesce(sum(n), 0) FROM events").await,
            at * (at + 1) / 2
        );
    }
    for at in [-1, 51] {
        assert!(matches!(
            store.snapshot(Some(at)).await.unwrap_err(),
            StoreError::UnknownSnapshot { latest: 50, .. }
        ));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_does_not_exist_is_an_error_and_one_that_exists_is_not_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let error = Store::open(dir.path().join("none"), StoreOptions::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("no store at") && error.contains("clade init"), "{error}");
    assert!(!dir.path().join("none").exists());
    let (dir, store) = create();
    let id = store.id().to_owned();
    store.commit(pair(&store, "a", 1)).await.unwrap();
    assert!(matches!(
        Store::create(store.dir(), options()).unwrap_err(),
        StoreError::AlreadyExists { .. }
    ));
    drop(store);
    assert!(
        !dir.path().join("s/clade.sqlite-wal").exists(),
        "the last close brings the log into the database"
    );
    let store = Store::open(dir.path().join("s"), options()).unwrap();
    assert_eq!(
        (store.id(), now(&store, "SELECT count(*) FROM events").await),
        (id.as_str(), 1)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_tables_cannot_be_replaced_but_views_can() {
    let (_dir, store) = create();
    let context = session(&store, None);
    query(&context, "CREATE VIEW big AS SELECT * FROM events WHERE n > 1").await;
    store.commit(pair(&store, "a", 2)).await.unwrap();
    assert_eq!(int(&context, "SELECT count(*) FROM big").await, 1);
    assert!(context.sql("CREATE OR REPLACE VIEW events AS SELECT 1").await.is_err());
    query(&context, "DROP VIEW big").await;
    assert!(context.sql("SELECT * FROM big").await.is_err());
}
