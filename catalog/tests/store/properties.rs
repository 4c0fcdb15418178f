//! Any rows come back as they went in, from either tier.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, Int64Type, TimestampMicrosecondType};
use clade_catalog::{FlushScope, Rows, Store, Txn, Value};
use proptest::prelude::*;

use crate::support::{create, query, rows, session};

#[derive(Debug, Clone, PartialEq)]
struct Event {
    id: String,
    n: i64,
    x: Option<f64>,
    ok: Option<bool>,
    at: Option<i64>,
    tags: Option<Vec<String>>,
}

fn event() -> impl Strategy<Value = Event> {
    let text = prop_oneof![
        ".{0,40}",
        "[a-c]{0,2}",
        Just(String::new()),
        Just("\0\u{10ffff}é".to_owned())
    ];
    let float = prop_oneof![any::<f64>(), Just(f64::NAN), Just(f64::INFINITY), Just(-0.0)];
    let at = -62_135_596_800_000_000i64..253_402_300_799_999_999;
    let tags = proptest::option::of(proptest::collection::vec(text.clone(), 0..4));
    (
        text,
        any::<i64>(),
        proptest::option::of(float),
        any::<Option<bool>>(),
        proptest::option::of(at),
        tags,
    )
        .prop_map(|(id, n, x, ok, at, tags)| Event { id, n, x, ok, at, tags })
}

fn push(rows: &mut Rows, event: &Event) {
    rows.push([
        ("id", Value::from(event.id.as_str())),
        ("n", event.n.into()),
        ("x", event.x.into()),
        ("ok", event.ok.into()),
        ("at", event.at.map_or(Value::Null, Value::Timestamp)),
        ("tags", event.tags.clone().into()),
    ])
    .unwrap();
}

fn read(batches: &[RecordBatch]) -> Vec<Event> {
    let mut events = Vec::new();
    for batch in batches {
        let column = |name: &str| batch.column_by_name(name).unwrap().clone();
        let (id, n, x, ok, at, tags) = (
            column("id"),
            column("n"),
            column("x"),
            column("ok"),
            column("at"),
            column("tags"),
        );
        for row in 0..batch.num_rows() {
            let is = |array: &ArrayRef| array.is_valid(row);
            let list = |array: ArrayRef| array.as_string::<i32>().iter().map(|t| t.unwrap().to_owned()).collect();
            events.push(Event {
                id: id.as_string::<i32>().value(row).to_owned(),
                n: n.as_primitive::<Int64Type>().value(row),
                x: is(&x).then(|| x.as_primitive::<Float64Type>().value(row)),
                ok: is(&ok).then(|| ok.as_boolean().value(row)),
                at: is(&at).then(|| at.as_primitive::<TimestampMicrosecondType>().value(row)),
                tags: is(&tags).then(|| list(tags.as_list::<i32>().value(row))),
            });
        }
    }
    events
}

/// NaN is equal to itself here, and -0.0 is not 0.0.
fn shown(events: &[Event]) -> Vec<String> {
    events
        .iter()
        .map(|e| format!("{e:?} {:?}", e.x.map(f64::to_bits)))
        .collect()
}

async fn all(store: &Store, filter: &str) -> Vec<Event> {
    let sql = format!("SELECT * FROM events_versions {filter} ORDER BY _seq");
    read(&query(&session(store, None), &sql).await)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn rows_come_back_from_both_tiers(commits in proptest::collection::vec(proptest::collection::vec(event(), 1..6), 1..8)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let (_dir, store) = create();
            // One row a commit keeps the order that `_seq` gives.
            let events: Vec<Event> = commits.concat();
            for (index, event) in events.iter().enumerate() {
                let mut one = rows(&store, "t.events");
                push(&mut one, event);
                let mut txn = Txn::new();
                txn.append("t.events", one);
                store.commit(txn).await.unwrap();
                if index == events.len() / 2 {
                    store.flush(FlushScope::All).await.unwrap();
                }
            }
            assert_eq!(shown(&all(&store, "").await), shown(&events));
            let pivot = events[events.len() / 3].n;
            let expected: Vec<Event> = events.iter().filter(|e| e.n >= pivot).cloned().collect();
            assert_eq!(shown(&all(&store, &format!("WHERE n >= {pivot}")).await), shown(&expected));
            let large: Vec<Event> = events.iter().filter(|e| e.x.is_some_and(|x| x.is_nan() || x > 0.5)).cloned().collect();
            store.flush(FlushScope::All).await.unwrap();
            assert_eq!(shown(&all(&store, "WHERE x > 0.5").await), shown(&large), "NaN is the greatest float");
            assert_eq!(shown(&all(&store, "").await), shown(&events));
            store.optimize(None).await.unwrap();
            assert_eq!(shown(&all(&store, "").await), shown(&events));
            assert_eq!(shown(&all(&store, "WHERE x > 0.5").await), shown(&large));
            let early: Vec<Event> = events.iter().filter(|e| e.at.is_some_and(|at| at < 0)).cloned().collect();
            assert_eq!(shown(&all(&store, "WHERE at < TIMESTAMP '1970-01-01T00:00:00Z'").await), shown(&early));
        });
    }
}
