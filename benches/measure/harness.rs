//! A search whose model and programs take no time: what is left is Clade's own work for one node.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;

use crate::fixture::{TASK, create, rows};
use crate::history::fill;
use crate::machine::{Report, cpu_seconds};

const SIZES: [usize; 3] = [100, 1_000, 100_000];
const STEPS: usize = 200;

pub async fn measure(report: &mut Report, folder: &Path) -> Result<()> {
    report.table(
        "Harness: a search of 200 steps with an instant model and sandbox, in a store of that many nodes",
        &["nodes of history", "mode", "wall a node", "CPU a node"],
    )?;
    for nodes in SIZES {
        let dir = folder.join(format!("harness-{nodes}"));
        let engine = create(&dir).await?;
        fill(engine.store(), "history", nodes, 1_000).await?;
        // The first search of a process loads the store's state and plans every query.
        for (mode, seed, shown) in [("generation", 1, false), ("generation", 2, true), ("async", 3, true)] {
            let (started, used) = (Instant::now(), cpu_seconds());
            let evolve = format!(
                "EVOLVE TASK '{TASK}' WITH (steps => {STEPS}, seed => {seed}, mode => '{mode}', workers => 1, grade => false)"
            );
            rows(&engine, &evolve).await?;
            let wall = started.elapsed().as_secs_f64() * 1e3 / STEPS as f64;
            let cpu = (cpu_seconds() - used) * 1e3 / STEPS as f64;
            if shown {
                report.row(&[
                    nodes.to_string(),
                    mode.into(),
                    format!("{wall:.2} ms"),
                    format!("{cpu:.2} ms"),
                ])?;
            }
        }
        engine.close().await;
        drop(engine);
        std::fs::remove_dir_all(&dir)?;
    }
    Ok(())
}
