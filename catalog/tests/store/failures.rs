//! Full disks, read-only file systems, damaged blobs.

use clade_catalog::{FlushScope, Store, StoreError, StoreOptions, Txn, Value};

use crate::commits::pair;
use crate::mount::{Mount, run};
use crate::support::{create, now, options, rows, session, text};

fn large(store: &Store, id: &str) -> Txn {
    // Text that does not compress.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ id.len() as u64;
    let body: String = (0..200_000)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            char::from(33 + ((state >> 33) % 90) as u8)
        })
        .collect();
    let mut mirror = rows(store, "t.mirror");
    mirror
        .push([("id", Value::from(id)), ("n", 0.into()), ("body", body.into())])
        .unwrap();
    let mut events = rows(store, "t.events");
    events.push([("id", Value::from(id)), ("n", 0.into())]).unwrap();
    let mut txn = Txn::new();
    txn.append("t.events", events).append("t.mirror", mirror);
    txn
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_fails_the_commit_and_leaves_nothing_half_written() {
    let Some(mount) = Mount::new("12m") else { return };
    let store = Store::create(mount.path().join("s"), options()).unwrap();
    store.commit(pair(&store, "first", 1)).await.unwrap();
    let filler = mount.path().join("filler");
    let mut committed = 1;
    let error = loop {
        match store.commit(large(&store, &format!("e{committed}"))).await {
            Ok(_) => committed += 1,
            Err(error) => break error,
        }
        assert!(committed < 200);
    };
    let shown = error.to_string();
    assert!(
        shown.contains("no space is left") && shown.contains("nothing was written"),
        "{shown}"
    );
    assert!(error.is_retryable(), "{error:?}");
    assert_eq!(now(&store, "SELECT count(*) FROM events").await, committed);
    assert_eq!(now(&store, "SELECT count(*) FROM mirror").await, committed);
    // Neither does a flush or a blob, and the rows stay where they are.
    let _ = std::fs::write(&filler, vec![1; 16 << 20]);
    assert!(store.flush(FlushScope::All).await.is_err());
    let noise: Vec<u8> = (0..300_000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    assert!(store.put_blob(noise.clone()).await.is_err());
    assert_eq!(now(&store, "SELECT count(*) FROM events").await, committed);
    let seq = store.snapshot(None).await.unwrap().seq();
    drop(store);
    // With space again everything goes on.
    std::fs::remove_file(&filler).unwrap();
    mount.remount("size=64m");
    let store = Store::open(mount.path().join("s"), options()).unwrap();
    assert_eq!(store.commit(pair(&store, "later", 2)).await.unwrap(), seq + 1);
    store.flush(FlushScope::All).await.unwrap();
    assert_eq!(
        now(&store, "SELECT count(*) FROM events e JOIN mirror m ON e.id = m.id").await,
        committed + 1
    );
    let hash = store.put_blob(noise.clone()).await.unwrap();
    assert_eq!(store.get_blob(&hash).await.unwrap(), noise);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_database_fails_all_commits_of_the_group_and_later_ones_work() {
    let (_dir, store) = create();
    store.commit(pair(&store, "first", 1)).await.unwrap();
    let limit =
        |pages: i64| move |tx: &rusqlite::Transaction<'_>| tx.pragma_update(None, "max_page_count", pages).map(|_| ());
    store.control(limit(60)).await.unwrap();
    let (a, b, c) = tokio::join!(
        store.commit(large(&store, "a")),
        store.commit(large(&store, "b")),
        store.commit(large(&store, "c"))
    );
    for error in [a.unwrap_err(), b.unwrap_err(), c.unwrap_err()] {
        assert!(error.to_string().contains("no space is left"), "{error}");
    }
    assert_eq!(now(&store, "SELECT count(*) FROM events").await, 1);
    store.control(limit(1 << 30)).await.unwrap();
    assert_eq!(store.commit(large(&store, "a")).await.unwrap(), 2);
    assert_eq!(now(&store, "SELECT count(*) FROM mirror").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_opened_for_reading_refuses_every_write_by_name() {
    let (_dir, store) = create();
    store.commit(pair(&store, "a", 1)).await.unwrap();
    let reader = Store::open(
        store.dir(),
        StoreOptions {
            read_only: true,
            ..options()
        },
    )
    .unwrap();
    assert!(reader.is_read_only());
    for error in [
        reader.commit(pair(&reader, "b", 1)).await.unwrap_err(),
        reader
            .control(|tx| tx.execute("DELETE FROM settings", []))
            .await
            .unwrap_err(),
        reader.flush(FlushScope::All).await.unwrap_err(),
        reader.optimize(None).await.unwrap_err(),
        reader.maintain().await.unwrap_err(),
        reader.put_blob(b"x".to_vec()).await.unwrap_err(),
    ] {
        assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
        assert!(error.to_string().contains("read-only"), "{error}");
    }
    // It sees what others commit and flush.
    store.commit(pair(&store, "c", 2)).await.unwrap();
    assert_eq!(now(&reader, "SELECT count(*) FROM events").await, 2);
    store.flush(FlushScope::All).await.unwrap();
    assert_eq!(now(&reader, "SELECT sum(n) FROM events").await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_on_a_read_only_file_system_can_be_read() {
    let Some(mount) = Mount::new("32m") else { return };
    let path = mount.path().join("s");
    let store = Store::create(&path, options()).unwrap();
    for n in 0..3 {
        store.commit(pair(&store, &format!("e{n}"), n)).await.unwrap();
    }
    store.flush(FlushScope::All).await.unwrap();
    store.commit(pair(&store, "hot", 4)).await.unwrap();
    // As a killed process leaves it: the last commits are in the log beside the database.
    let crashed = mount.path().join("crashed");
    run(&["cp", "-r", path.to_str().unwrap(), crashed.to_str().unwrap()]);
    drop(store);
    mount.remount("ro");
    for path in [path, crashed] {
        let error = Store::open(&path, options()).unwrap_err().to_string();
        assert!(
            error.contains("cannot be written") && error.contains("read-only"),
            "{error}"
        );
        let reader = Store::open(
            &path,
            StoreOptions {
                read_only: true,
                ..options()
            },
        )
        .unwrap();
        assert_eq!(
            now(&reader, "SELECT count(*) FROM events").await,
            4,
            "{}",
            path.display()
        );
        assert_eq!(now(&reader, "SELECT sum(n) FROM events").await, 7);
        assert!(matches!(
            reader.commit(pair(&reader, "x", 1)).await.unwrap_err(),
            StoreError::ReadOnly { .. }
        ));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn blobs_keep_raw_bytes_and_damage_is_noticed() {
    let (_dir, store) = create();
    let bytes = [0xb3, 0x9e, 0, 0xff, b'\r', 0x1b].repeat(5000);
    let hash = store.put_blob(bytes.clone()).await.unwrap();
    assert_eq!(store.put_blob(bytes.clone()).await.unwrap(), hash);
    assert_eq!(store.get_blob(&hash).await.unwrap(), bytes);
    let empty = store.put_blob(Vec::new()).await.unwrap();
    assert!(store.get_blob(&empty).await.unwrap().is_empty());
    for wrong in ["", "x", "../../etc/passwd", &"0".repeat(64), &"é".repeat(32)] {
        assert!(
            matches!(store.get_blob(wrong).await.unwrap_err(), StoreError::NoBlob { .. }),
            "{wrong}"
        );
    }
    let file = store.dir().join("blobs").join(&hash[..2]).join(format!("{hash}.zst"));
    assert!(std::fs::metadata(&file).unwrap().len() < 1000);
    std::fs::copy(
        store.dir().join("blobs").join(&empty[..2]).join(format!("{empty}.zst")),
        &file,
    )
    .unwrap();
    for _ in 0..2 {
        let error = store.get_blob(&hash).await.unwrap_err().to_string();
        assert!(error.contains("does not match its name"), "{error}");
    }
    let shown = text(&session(&store, None), "SELECT component, subject FROM system.problems").await;
    assert_eq!(shown.matches(&hash).count(), 1, "{shown}");
    assert_eq!(
        store.put_blob(bytes.clone()).await.unwrap(),
        hash,
        "a damaged blob is written anew"
    );
    assert_eq!(store.get_blob(&hash).await.unwrap(), bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_whose_database_is_gone_is_no_empty_store() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("s");
    let store = Store::create(&place, options()).unwrap();
    store.commit(pair(&store, "first", 1)).await.unwrap();
    store.close().await;
    drop(store);
    let database = place.join("clade.sqlite");
    let kept = std::fs::read(&database).unwrap();
    for damage in [std::fs::remove_file as fn(_) -> _, |path| std::fs::write(path, "")] {
        damage(&database).unwrap();
        let error = Store::open(&place, options()).unwrap_err();
        assert!(matches!(error, StoreError::NoDatabase { .. }), "{error}");
        assert!(error.to_string().contains("clade.sqlite"), "{error}");
        std::fs::write(&database, &kept).unwrap();
    }
    Store::open(&place, options()).unwrap();
}
