//! The store alone: commits, bytes a node, scans of its tiers.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clade::engine::OpenMode;
use clade_catalog::{FlushScope, MaintenanceOptions, Store, StoreOptions};
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;

use crate::fixture::{open, rows};
use crate::history::{Node, commit};
use crate::machine::{Report, percentiles};

const RUN: &str = "01990000-0000-7000-8000-000000000000";
const ALONE: usize = 1_000;
const WRITERS: usize = 32;
const GROUPED: usize = 4_000;

/// A finished node in a commit of its own: node, edge, generation, job, attempt.
fn one(place: usize, bytes: usize) -> Result<clade_catalog::Txn> {
    let mut txn = commit(&[Node::new(RUN, place, bytes)], &[])?;
    txn.control(|tx| {
        tx.execute("UPDATE budgets SET spent = spent + 1 WHERE scope = 'run'", [])
            .map(|_| ())
    });
    Ok(txn)
}

pub async fn measure(report: &mut Report, folder: &Path) -> Result<()> {
    report.table(
        "Store: nodes with edge, generation, job and attempt",
        &["figure", "1 kB program", "8 kB program"],
    )?;
    let (small, large) = (of(folder, 1_000).await?, of(folder, 8_000).await?);
    for ((name, small), (_, large)) in small.into_iter().zip(large) {
        report.row(&[name, small, large])?;
    }
    Ok(())
}

async fn of(folder: &Path, bytes: usize) -> Result<Vec<(String, String)>> {
    let dir = folder.join(format!("store-{bytes}"));
    let options = StoreOptions {
        maintenance: MaintenanceOptions {
            interval: None,
            grace: Duration::ZERO,
            ..MaintenanceOptions::default()
        },
        ..StoreOptions::default()
    };
    let mut figures = Vec::new();
    let mut figure = |name: &str, value: String| figures.push((name.to_owned(), value));
    let store = Store::create(&dir, options.clone())?;
    let mut times = Vec::with_capacity(ALONE);
    for place in 0..ALONE {
        let txn = one(place, bytes)?;
        let started = Instant::now();
        store.commit(txn).await?;
        times.push(started.elapsed());
    }
    let (median, slow) = percentiles(&mut times);
    figure(
        "durable commit of one node, p50 / p99",
        format!("{median:.2} / {slow:.2} ms"),
    );
    let rate = grouped(&store, bytes).await?;
    figure(&format!("nodes a second, {WRITERS} writers"), format!("{rate:.0}"));
    drop(store);

    let engine = open(&dir, OpenMode::Existing).await?;
    let nodes = (ALONE + GROUPED) as i64;
    let bytes_of = async |column: &str| -> Result<i64> {
        let batches = rows(
            &engine,
            &format!("SELECT CAST(sum({column}) AS BIGINT) AS bytes FROM system.storage"),
        )
        .await?;
        let batch = batches.first().context("system.storage is empty")?;
        Ok(batch.column(0).as_primitive::<Int64Type>().value(0))
    };
    let scan = async || -> Result<f64> {
        let started = Instant::now();
        rows(&engine, "SELECT method_family, avg(score) FROM evo.nodes GROUP BY 1").await?;
        Ok(started.elapsed().as_secs_f64() * 1e3)
    };
    figure("first query over 5,000 hot nodes", format!("{:.1} ms", scan().await?));
    figure("the same query again", format!("{:.1} ms", scan().await?));
    figure("bytes a node, hot", (bytes_of("hot_bytes").await? / nodes).to_string());
    let started = Instant::now();
    engine.store().flush(FlushScope::All).await?;
    figure(
        "flush of 5,000 nodes",
        format!("{:.0} ms", started.elapsed().as_secs_f64() * 1e3),
    );
    figure(
        "bytes a node, flushed",
        (bytes_of("cold_bytes").await? / nodes).to_string(),
    );
    engine.store().commit(one(ALONE + GROUPED, bytes)?).await?;
    engine.store().flush(FlushScope::All).await?;
    engine.store().optimize(None).await?;
    figure(
        "bytes a node, compacted",
        (bytes_of("cold_bytes").await? / nodes).to_string(),
    );
    figure("query over 5,000 cold nodes", format!("{:.1} ms", scan().await?));
    engine.close().await;
    drop(engine);
    let started = Instant::now();
    drop(Store::open(&dir, options)?);
    figure("open", format!("{:.1} ms", started.elapsed().as_secs_f64() * 1e3));
    std::fs::remove_dir_all(&dir)?;
    Ok(figures)
}

/// Nodes a second when many writers commit one node after the other.
async fn grouped(store: &Store, bytes: usize) -> Result<f64> {
    let each = GROUPED / WRITERS;
    let mut writers = tokio::task::JoinSet::new();
    // The rows are made first: this is about commits.
    let mut commits = Vec::with_capacity(WRITERS);
    for writer in 0..WRITERS {
        let first = ALONE + writer * each;
        commits.push(
            (first..first + each)
                .map(|place| one(place, bytes))
                .collect::<Result<Vec<_>>>()?,
        );
    }
    let started = Instant::now();
    for commits in commits {
        let store = store.clone();
        writers.spawn(async move {
            for txn in commits {
                store.commit(txn).await?;
            }
            Ok::<_, clade_catalog::StoreError>(())
        });
    }
    while let Some(done) = writers.join_next().await {
        done??;
    }
    Ok(GROUPED as f64 / started.elapsed().as_secs_f64())
}
