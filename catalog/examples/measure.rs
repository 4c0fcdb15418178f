//! Measures the store: commit latency and rate, bytes a node in either tier, scans of hot rows.
//!
//! `cargo run --release -p clade-catalog --example measure [DIR]`

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clade_catalog::{FlushScope, MaintenanceOptions, Rows, Store, StoreOptions, Txn, Value, catalog_schemas};
use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, SchemaProvider};
use datafusion::prelude::{SessionConfig, SessionContext};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A program of about `bytes` bytes whose text differs from node to node as real programs do: words, numbers, names.
fn program(n: usize, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 80);
    let mut state = n as u64 + 1;
    while text.len() < bytes {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let (a, b) = ((state >> 33) % 1000, (state >> 43) % 1000);
        text.push_str(&format!("model_{a} = make_model(depth={b}, rate={}.{a})\n", n % 7));
    }
    text
}

fn node(n: usize, bytes: usize) -> Outcome<Txn> {
    let (node_id, attempt_id) = (format!("{:064x}", n * 31 + 7), format!("{:064x}", n * 17 + 3));
    let code = program(n, bytes);
    let now = Value::Timestamp(1_790_000_000_000_000 + n as i64 * 1000);
    let ids = [
        ("run_id", "01990000-0000-7000-8000-000000000000"),
        ("task_id", "spaceship-titanic"),
        ("attempt_id", &attempt_id),
    ];
    let ids = || ids.iter().map(|(name, value)| (*name, Value::from(*value)));
    let mut nodes = Rows::new("evo.nodes")?;
    nodes.push(ids().chain([
        ("node_id", Value::from(&node_id)),
        ("statement_id", "01990000-0000-7000-8000-000000000001".into()),
        ("step", (n as i64).into()),
        ("island", 0.into()),
        ("operator", "improve".into()),
        ("parent_id", format!("{:064x}", n / 2).into()),
        ("code", code.as_str().into()),
        ("code_hash", format!("{:064x}", n * 13).into()),
        ("status", "success".into()),
        ("is_buggy", false.into()),
        ("score", (n as f64 * 0.77).sin().into()),
        ("signed_score", (n as f64 * 0.77).sin().into()),
        ("score_source", "evaluator".into()),
        ("imports", vec!["pandas".to_owned(), "sklearn".to_owned()].into()),
        ("method_family", "gradient_boosting".into()),
        ("family_count_before", (n as i64 / 5).into()),
        ("admitted", true.into()),
        ("model", "evolver".into()),
        ("seed", (n as i64 * 7919).into()),
        ("queued_at", now.clone()),
        ("started_at", now.clone()),
        ("finished_at", now.clone()),
    ]))?;
    let mut generations = Rows::new("evo.generations")?;
    let prompt = program(n / 2, bytes);
    generations.push(ids().chain([
        ("generation_id", Value::from(format!("{:064x}", n * 11))),
        ("operator", "improve".into()),
        ("operator_version", "v1".into()),
        ("model", "evolver".into()),
        ("request_hash", format!("{:064x}", n * 5).into()),
        ("seed", (n as i64 * 7919).into()),
        ("sample", 0.into()),
        ("parameters", "{\"temperature\":0.7}".into()),
        ("prompt", prompt.as_str().into()),
        ("prompt_bytes", (prompt.len() as i64).into()),
        ("prompt_hash", format!("{:064x}", n * 3).into()),
        ("response", code.as_str().into()),
        ("cached", false.into()),
        ("started_at", now.clone()),
        ("finished_at", now.clone()),
    ]))?;
    let mut edges = Rows::new("evo.edges")?;
    edges.push([
        ("task_id", Value::from("spaceship-titanic")),
        ("parent_id", format!("{:064x}", n / 2).into()),
        ("child_id", node_id.into()),
        ("role", "parent".into()),
        ("operator", "improve".into()),
    ])?;
    let mut txn = Txn::new();
    txn.append("evo.nodes", nodes)
        .append("evo.generations", generations)
        .append("evo.edges", edges);
    txn.control(|tx| {
        tx.execute("UPDATE budgets SET spent = spent + 1 WHERE scope = 'run'", [])
            .map(|_| ())
    });
    Ok(txn)
}

fn session(store: &Store) -> Outcome<SessionContext> {
    let config = SessionConfig::new()
        .with_default_catalog_and_schema("clade", "evo")
        .with_target_partitions(2);
    let context = SessionContext::new_with_config(config);
    let catalog = MemoryCatalogProvider::new();
    for (name, schema) in catalog_schemas(store) {
        catalog.register_schema(&name, schema as Arc<dyn SchemaProvider>)?;
    }
    context.register_catalog("clade", Arc::new(catalog));
    Ok(context)
}

async fn time(context: &SessionContext, sql: &str) -> Outcome<Duration> {
    let started = Instant::now();
    context.sql(sql).await?.collect().await?;
    Ok(started.elapsed())
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let mut out = std::io::stdout();
    let root = std::env::args_os()
        .nth(1)
        .map_or_else(|| std::env::temp_dir().join("clade-measure"), PathBuf::from);
    for bytes in [1000, 8000] {
        let dir = root.join(uuid::Uuid::now_v7().to_string());
        let maintenance = MaintenanceOptions {
            interval: None,
            grace: Duration::ZERO,
            ..MaintenanceOptions::default()
        };
        let store = Store::create(
            &dir,
            StoreOptions {
                maintenance,
                ..StoreOptions::default()
            },
        )?;
        let mut times = Vec::new();
        for n in 0..1000 {
            let txn = node(n, bytes)?;
            let started = Instant::now();
            store.commit(txn).await?;
            times.push(started.elapsed());
        }
        times.sort();
        writeln!(out, "program of {bytes} bytes")?;
        writeln!(
            out,
            "  commit of one node (3 tables, 1 control update): p50 {:?}, p99 {:?}",
            times[500], times[990]
        )?;
        let mut tasks = tokio::task::JoinSet::new();
        let started = Instant::now();
        for worker in 0..32 {
            let store = store.clone();
            tasks.spawn(async move {
                for n in 0..125 {
                    let txn = node(1000 + worker * 125 + n, bytes).map_err(|e| e.to_string())?;
                    store.commit(txn).await.map_err(|e| e.to_string())?;
                }
                Ok::<_, String>(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        writeln!(
            out,
            "  32 writers: {:.0} nodes/s",
            4000.0 / started.elapsed().as_secs_f64()
        )?;
        let context = session(&store)?;
        let scans = [
            "SELECT count(*), max(score) FROM nodes",
            "SELECT method_family, avg(score) FROM nodes GROUP BY 1",
            "SELECT * FROM nodes",
        ];
        for sql in scans {
            let (first, again) = (time(&context, sql).await?, time(&context, sql).await?);
            writeln!(out, "  5,000 hot rows: {sql}: {first:?}, again {again:?}")?;
        }
        let sizes = "SELECT hot_bytes, cold_bytes FROM clade.system.storage";
        let bytes_of = async |column: &str| -> Outcome<i64> {
            let batches = context
                .sql(&format!("SELECT sum({column}) FROM ({sizes})"))
                .await?
                .collect()
                .await?;
            Ok(arrow::array::AsArray::as_primitive::<arrow::datatypes::Int64Type>(batches[0].column(0)).value(0))
        };
        writeln!(out, "  hot: {} bytes/node", bytes_of("hot_bytes").await? / 5000)?;
        let started = Instant::now();
        store.flush(FlushScope::All).await?;
        writeln!(
            out,
            "  flush of 5,000 nodes: {:?}; cold: {} bytes/node",
            started.elapsed(),
            bytes_of("cold_bytes").await? / 5000
        )?;
        for sql in scans {
            let (first, again) = (time(&context, sql).await?, time(&context, sql).await?);
            writeln!(out, "  5,000 cold rows: {sql}: {first:?}, again {again:?}")?;
        }
        store.commit(node(5000, bytes)?).await?;
        store.flush(FlushScope::All).await?;
        store.optimize(None).await?;
        writeln!(out, "  compacted: {} bytes/node", bytes_of("cold_bytes").await? / 5000)?;
        let key = format!("SELECT node_id FROM nodes WHERE node_id = '{:064x}'", 2500 * 31 + 7);
        writeln!(
            out,
            "  one node by id: {:?}, again {:?}",
            time(&context, &key).await?,
            time(&context, &key).await?
        )?;
        drop((context, store));
        let started = Instant::now();
        let store = Store::open(&dir, StoreOptions::default())?;
        writeln!(out, "  open: {:?}", started.elapsed())?;
        drop(store);
        std::fs::remove_dir_all(&dir)?;
    }
    Ok(())
}
