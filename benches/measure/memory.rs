//! Peak memory of a process that searches in a store with history. Each search runs in a process of its own.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clade::engine::OpenMode;

use crate::fixture::{TASK, create, open, rows};
use crate::history::run_of;
use crate::machine::{Report, peak_memory};

/// First argument of the process that searches.
pub const CHILD: &str = "memory-of-a-search";
const SIZES: [usize; 2] = [1_000, 100_000];
const RUN: &str = "r";

pub async fn measure(report: &mut Report, folder: &Path) -> Result<()> {
    report.table(
        "Memory: peak of a process that searches 50 steps and selects once in the run that made the history",
        &["nodes of history", "peak resident"],
    )?;
    for nodes in SIZES {
        let dir = folder.join(format!("memory-{nodes}"));
        let engine = create(&dir).await?;
        run_of(&engine, RUN, nodes, 1_000).await?;
        engine.close().await;
        drop(engine);
        let output = Command::new(std::env::current_exe()?).arg(CHILD).arg(&dir).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let bytes: u64 = String::from_utf8(output.stdout)?.trim().parse()?;
        report.row(&[nodes.to_string(), format!("{} MB", bytes / 1_000_000)])?;
        std::fs::remove_dir_all(&dir)?;
    }
    Ok(())
}

/// The process that searches: it prints its peak.
pub async fn child(arguments: &[String]) -> Result<()> {
    let [dir] = arguments else {
        bail!("{CHILD} takes the folder of a store");
    };
    let engine = open(Path::new(dir), OpenMode::Existing).await?;
    rows(
        &engine,
        &format!("EVOLVE TASK '{TASK}' WITH (steps => 50, seed => 2, grade => false)"),
    )
    .await?;
    let policy = clade::policy::shipped()
        .iter()
        .find(|policy| policy.name == "openmle_evo")
        .context("openmle_evo is not shipped")?;
    engine.queries().rows(policy.sql, &[], Some(RUN), None).await?;
    engine.close().await;
    Report::new().line(&peak_memory()?.to_string())
}
