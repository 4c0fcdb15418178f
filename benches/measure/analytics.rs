//! Queries of an analyst over a million nodes, by Clade and by DuckDB on the same Parquet files.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clade_catalog::{FlushScope, Rows, Txn};

use crate::fixture::{create, rows};
use crate::history::Node;
use crate::machine::Report;

const RUNS: usize = 100;
const NODES_OF_A_RUN: usize = 10_000;
/// Bytes of a program; the queries do not read programs.
const PROGRAM: usize = 200;
const ROUNDS: usize = 5;

/// Name and text; `{nodes}` and `{edges}` are the tables.
const QUERIES: [(&str, &str); 5] = [
    (
        "group by operator",
        "SELECT operator, count(*) AS nodes, avg(signed_score) AS score, sum(tokens_completion) AS tokens, \
         max(delta_vs_parent) AS gain FROM {nodes} GROUP BY operator ORDER BY operator",
    ),
    (
        "best node of every run",
        "SELECT run_id, node_id, signed_score FROM (SELECT run_id, node_id, signed_score, row_number() OVER (PARTITION BY \
         run_id ORDER BY signed_score DESC, step) AS place FROM {nodes} WHERE signed_score IS NOT NULL) AS ranked \
         WHERE place = 1 ORDER BY run_id",
    ),
    (
        "running best over steps",
        "SELECT step, avg(best) AS best FROM (SELECT step, max(signed_score) OVER (PARTITION BY run_id ORDER BY step ROWS \
         BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS best FROM {nodes}) AS running GROUP BY step ORDER BY step",
    ),
    (
        "gain by operator over edges",
        "SELECT e.operator, count(*) AS edges, avg(c.signed_score - p.signed_score) AS gain FROM {edges} e \
         JOIN {nodes} c ON c.node_id = e.child_id JOIN {nodes} p ON p.node_id = e.parent_id GROUP BY e.operator \
         ORDER BY e.operator",
    ),
    (
        "one run",
        "SELECT step, operator, status, score FROM {nodes} WHERE run_id = '{run}' ORDER BY step",
    ),
];

fn run_id(run: usize) -> String {
    format!("01990000-0000-7000-8000-{run:012}")
}

pub async fn measure(report: &mut Report, folder: &Path) -> Result<()> {
    report.table(
        "Analytics over 1,000,000 nodes in the cold tier: best of 5, warm",
        &["query", "Clade", "DuckDB", "ratio"],
    )?;
    let python = std::env::var_os("CLADE_TEST_PYTHON").context(
        "set CLADE_TEST_PYTHON to a Python interpreter with duckdb and deltalake: scripts/setup.sh --tests makes one",
    )?;
    let dir = folder.join("analytics");
    let engine = create(&dir).await?;
    for run in 0..RUNS {
        let mut nodes = Rows::new("evo.nodes")?;
        let mut edges = Rows::new("evo.edges")?;
        for place in 0..NODES_OF_A_RUN {
            let node = Node::new(&run_id(run), place, PROGRAM);
            node.node(&mut nodes)?;
            node.edge(&mut edges)?;
        }
        let mut txn = Txn::new();
        txn.append("evo.nodes", nodes).append("evo.edges", edges);
        engine.store().commit(txn).await?;
        engine.store().flush(FlushScope::Table("evo.nodes".into())).await?;
        engine.store().flush(FlushScope::Table("evo.edges".into())).await?;
    }
    engine.store().optimize(None).await?;
    let text = |query: &str, nodes: &str, edges: &str| {
        query
            .replace("{nodes}", nodes)
            .replace("{edges}", edges)
            .replace("{run}", &run_id(RUNS / 2))
    };
    let others: Vec<String> = QUERIES.iter().map(|(_, query)| text(query, "nodes", "edges")).collect();
    let output = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/measure/queries_in_duckdb.py"))
        .arg(dir.join("tables"))
        .arg(ROUNDS.to_string())
        .args(&others)
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = String::from_utf8(output.stdout)?;
    let theirs: Vec<(f64, usize)> = output
        .lines()
        .map(|line| {
            let (seconds, count) = line.split_once(' ').context("two numbers")?;
            Ok((seconds.parse()?, count.parse()?))
        })
        .collect::<Result<_>>()?;
    for ((name, query), (duckdb, expected)) in QUERIES.into_iter().zip(theirs) {
        let query = text(query, "evo.nodes", "evo.edges");
        let mut best = f64::INFINITY;
        for _ in 0..ROUNDS {
            let started = Instant::now();
            let batches = rows(&engine, &query).await?;
            best = best.min(started.elapsed().as_secs_f64());
            let count: usize = batches.iter().map(|batch| batch.num_rows()).sum();
            ensure!(count == expected, "{name}: {count} rows, DuckDB has {expected}");
        }
        report.row(&[
            name.to_owned(),
            format!("{:.0} ms", best * 1e3),
            format!("{:.0} ms", duckdb * 1e3),
            format!("{:.2}", best / duckdb),
        ])?;
    }
    engine.close().await;
    drop(engine);
    Ok(std::fs::remove_dir_all(&dir)?)
}
