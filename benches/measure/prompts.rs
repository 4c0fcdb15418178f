//! Length of prompts as a search grows: mean, 99th percentile and longest early and late in searches whose programs are as long as
//! those of a model.

use std::path::Path;

use anyhow::Result;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;

use crate::fixture::{TASK, create, rows};
use crate::machine::Report;

/// Searches: how many, and of how many steps. The short ones make the early steps more than a handful.
const SEARCHES: [(u64, usize); 2] = [(1, 1_000), (10, 15)];
/// The default, and one that most prompts exceed.
const BUDGETS: [u64; 2] = [65_536, 6_000];
/// Steps around 10, 100 and 1,000.
const WINDOWS: [(usize, usize); 3] = [(6, 15), (76, 125), (901, 1_000)];

pub async fn measure(report: &mut Report, folder: &Path) -> Result<()> {
    report.table(
        "Prompts: tokens (a token every 4 bytes) in a search of 1,000 steps and ten of 15, programs of 7 kB",
        &[
            "budget",
            "steps",
            "prompts",
            "mean",
            "p99",
            "longest",
            "with something left out",
        ],
    )?;
    for budget in BUDGETS {
        let dir = folder.join(format!("prompts-{budget}"));
        let engine = create(&dir).await?;
        for (searches, steps) in SEARCHES {
            for seed in 0..searches {
                let evolve = format!(
                    "EVOLVE TASK '{TASK}' USING MODEL verbose
                     WITH (steps => {steps}, seed => {seed}, workers => 1, prompt_tokens => {budget}, grade => false)"
                );
                rows(&engine, &evolve).await?;
            }
        }
        for (first, last) in WINDOWS {
            let sql = format!(
                "SELECT g.estimated_tokens_prompt, CAST(cardinality(g.prompt_cuts) AS BIGINT)
                 FROM evo.generations g JOIN evo.attempts a ON a.attempt_id = g.attempt_id
                 WHERE a.step BETWEEN {first} AND {last} ORDER BY g.estimated_tokens_prompt"
            );
            let (mut tokens, mut cut) = (Vec::new(), 0);
            for batch in rows(&engine, &sql).await? {
                tokens.extend(batch.column(0).as_primitive::<Int64Type>().iter().flatten());
                let cuts = batch.column(1).as_primitive::<Int64Type>();
                cut += cuts.iter().flatten().filter(|cuts| *cuts > 0).count();
            }
            let at = |share: f64| tokens.get(((tokens.len().max(1) - 1) as f64 * share).round() as usize);
            let mean = tokens.iter().sum::<i64>() as f64 / tokens.len().max(1) as f64;
            report.row(&[
                budget.to_string(),
                format!("{first} to {last}"),
                tokens.len().to_string(),
                format!("{mean:.0}"),
                at(0.99).copied().unwrap_or_default().to_string(),
                at(1.0).copied().unwrap_or_default().to_string(),
                cut.to_string(),
            ])?;
        }
        engine.close().await;
        drop(engine);
        std::fs::remove_dir_all(&dir)?;
    }
    Ok(())
}
