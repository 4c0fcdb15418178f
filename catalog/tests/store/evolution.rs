//! Stores and tables of other versions.

use std::sync::Arc;

use clade_catalog::{FlushScope, Specs, Store, StoreError, StoreOptions, TableSpec, Txn, Value};

use crate::commits::pair;
use crate::support::{create, int, now, options, rows, session, specs, text};

fn with_events(columns: &str) -> StoreOptions {
    let mut changed = Specs::clone(&specs());
    let spec = format!("doc='d'\nkind='log'\nkey=['id']\ncolumns=[{columns}]");
    changed.insert(TableSpec::parse("t", "events", &spec).unwrap());
    StoreOptions {
        specs: Some(Arc::new(changed)),
        ..options()
    }
}

const GROWN: &str = "['id','text!','i'],['colour','text','c'],['n','int!','n'],['x','float','x'],['ok','bool','b'],\
                     ['at','timestamp','t'],['tags','list','l'],['marks','list','m']";

#[tokio::test(flavor = "multi_thread")]
async fn added_columns_are_null_in_older_rows_of_both_tiers() {
    let (_dir, store) = create();
    let path = store.dir().to_owned();
    store.commit(pair(&store, "cold", 1)).await.unwrap();
    store.flush(FlushScope::All).await.unwrap();
    store.commit(pair(&store, "hot", 2)).await.unwrap();
    drop(store);
    let store = Store::open(&path, with_events(GROWN)).unwrap();
    let mut new = rows(&store, "t.events");
    new.push([
        ("id", Value::from("new")),
        ("n", 3.into()),
        ("colour", "red".into()),
        ("marks", vec!["m".to_owned()].into()),
    ])
    .unwrap();
    let mut txn = Txn::new();
    txn.append("t.events", new);
    store.commit(txn).await.unwrap();
    for step in 0..3 {
        let context = session(&store, None);
        assert_eq!(
            int(
                &context,
                "SELECT count(*) FROM events WHERE colour IS NULL AND marks IS NULL"
            )
            .await,
            2
        );
        assert_eq!(
            int(&context, "SELECT n FROM events WHERE colour = 'red' AND marks[1] = 'm'").await,
            3
        );
        assert_eq!(
            int(&context, "SELECT count(*) FROM events WHERE tags[1] = 'a'").await,
            2
        );
        assert_eq!(int(&context, "SELECT sum(n) FROM events").await, 6, "step {step}");
        match step {
            0 => store.flush(FlushScope::All).await.unwrap(),
            _ => store.optimize(None).await.unwrap(),
        }
    }
    assert_eq!(
        now(
            &store,
            "SELECT cold_files FROM system.storage WHERE table_name = 't.events'"
        )
        .await,
        1
    );
    let log = std::fs::read_to_string(path.join("tables/t/events/_delta_log/00000000000000000002.json")).unwrap();
    assert!(log.contains("colour"), "the Delta schema grows with the table: {log}");
    drop(store);
    // The older version does not know the new columns and says so.
    for read_only in [false, true] {
        let error = Store::open(&path, StoreOptions { read_only, ..options() }).unwrap_err();
        assert!(
            matches!(&error, StoreError::NewerTable { table, .. } if table == "t.events"),
            "{error}"
        );
        assert!(
            error.to_string().contains("colour") && error.to_string().contains("newer version"),
            "{error}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_that_old_rows_cannot_follow_are_refused() {
    let (_dir, store) = create();
    store.commit(pair(&store, "a", 1)).await.unwrap();
    let path = store.dir().to_owned();
    drop(store);
    for (columns, part) in [
        (
            GROWN.replace("'colour','text'", "'colour','text!'"),
            "column colour was added and must allow NULL",
        ),
        (
            GROWN.replace("'n','int!'", "'n','float!'"),
            "column n was int and is float now",
        ),
    ] {
        let error = Store::open(&path, with_events(&columns)).unwrap_err().to_string();
        assert!(error.contains("t.events") && error.contains(part), "{error}");
    }
    assert_eq!(
        now(&Store::open(&path, options()).unwrap(), "SELECT count(*) FROM events").await,
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_a_newer_format_is_refused_by_name() {
    let (_dir, store) = create();
    let path = store.dir().to_owned();
    drop(store);
    let marker = std::fs::read_to_string(path.join("store.toml")).unwrap();
    let current: i64 = marker
        .lines()
        .find_map(|l| l.strip_prefix("format = "))
        .unwrap()
        .parse()
        .unwrap();
    let newer = marker.replace(&format!("format = {current}"), &format!("format = {}", current + 1));
    std::fs::write(path.join("store.toml"), newer).unwrap();
    let refused = |error: StoreError| {
        let text = error.to_string();
        assert!(matches!(error, StoreError::NewerFormat { .. }), "{text}");
        assert!(
            text.contains(&format!("format {}", current + 1)) && text.contains(&format!("format {current}")),
            "{text}"
        );
    };
    refused(Store::open(&path, options()).unwrap_err());
    std::fs::write(path.join("store.toml"), &marker).unwrap();
    // A newer process may have died between the database and the marker.
    let database = rusqlite::Connection::open(path.join("clade.sqlite")).unwrap();
    database.pragma_update(None, "user_version", current + 1).unwrap();
    refused(Store::open(&path, options()).unwrap_err());
    refused(
        Store::open(
            &path,
            StoreOptions {
                read_only: true,
                ..options()
            },
        )
        .unwrap_err(),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_format_is_migrated_when_it_is_opened_for_writing() {
    let (_dir, store) = create();
    store.commit(pair(&store, "a", 1)).await.unwrap();
    let path = store.dir().to_owned();
    drop(store);
    let marker = std::fs::read_to_string(path.join("store.toml")).unwrap();
    let current: i64 = marker
        .lines()
        .find_map(|l| l.strip_prefix("format = "))
        .unwrap()
        .parse()
        .unwrap();
    // A process that died after the migration and before the marker leaves an old marker behind.
    std::fs::write(
        path.join("store.toml"),
        marker.replace(&format!("format = {current}"), "format = 0"),
    )
    .unwrap();
    let store = Store::open(&path, options()).unwrap();
    assert_eq!(now(&store, "SELECT count(*) FROM events").await, 1);
    drop(store);
    assert_eq!(std::fs::read_to_string(path.join("store.toml")).unwrap(), marker);
    // A database without any migration is the oldest one.
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("blobs")).unwrap();
    std::fs::write(
        dir.path().join("store.toml"),
        marker.replace(&format!("format = {current}"), "format = 0"),
    )
    .unwrap();
    rusqlite::Connection::open(dir.path().join("clade.sqlite"))
        .unwrap()
        .execute_batch("PRAGMA user_version = 0; CREATE TABLE x (y)")
        .unwrap();
    let error = Store::open(
        dir.path(),
        StoreOptions {
            read_only: true,
            ..options()
        },
    )
    .unwrap_err()
    .to_string();
    assert!(error.contains("open it once for writing to migrate it"), "{error}");
    let store = Store::open(dir.path(), options()).unwrap();
    store.commit(pair(&store, "a", 1)).await.unwrap();
    assert!(
        text(&session(&store, None), "SELECT id FROM events")
            .await
            .contains("a")
    );
}
