//! One parent selection: the rows of the run's policy, and the draw from them.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use clade::policy::shipped;
use clade::scheduler::{Run, candidates, draw_step, load_index};
use parking_lot::Mutex;

use crate::fixture::create;
use crate::history::run_of;
use crate::machine::{Report, percentiles};

const RUN: &str = "r";
const SIZES: [usize; 3] = [100, 5_000, 100_000];
/// Selections of one policy are measured this long at least, and this often.
const LEAST_TIME: Duration = Duration::from_millis(500);
const LEAST_ROUNDS: usize = 5;

pub async fn measure(report: &mut Report, folder: &Path) -> Result<()> {
    report.table(
        "Selection: policy view and draw of one step, in a run of that many nodes",
        &["policy", "nodes", "first", "p50", "p99", "of it the draw, p50"],
    )?;
    for nodes in SIZES {
        let dir = folder.join(format!("selection-{nodes}"));
        let engine = create(&dir).await?;
        run_of(&engine, RUN, nodes, 1_000).await?;
        let services = engine.scheduler().services();
        let index = Mutex::new(load_index(services, RUN).await?);
        let mut run = Run::load(services, RUN).await?;
        for policy in shipped() {
            run.policy = policy.name.to_owned();
            run.policy_sql = policy.sql.to_owned();
            let (mut whole, mut draws) = (Vec::new(), Vec::new());
            let started = Instant::now();
            while whole.len() <= LEAST_ROUNDS || started.elapsed() < LEAST_TIME {
                let begun = Instant::now();
                let snapshot = services.store.snapshot(None).await?;
                let rows = candidates(services, &run, &index, snapshot).await?;
                let selected = Instant::now();
                draw_step(&run, &rows, nodes as i64 + 2)?;
                draws.push(selected.elapsed());
                whole.push(begun.elapsed());
                if started.elapsed() > 20 * LEAST_TIME {
                    break;
                }
            }
            // The first plans the policy's query.
            let first = whole.remove(0).as_secs_f64() * 1e3;
            draws.remove(0);
            if whole.is_empty() {
                report.row(&[
                    policy.name.into(),
                    nodes.to_string(),
                    format!("{first:.1} ms"),
                    "-".into(),
                    "-".into(),
                    "-".into(),
                ])?;
                continue;
            }
            let (median, slow) = percentiles(&mut whole);
            let (draw, _) = percentiles(&mut draws);
            report.row(&[
                policy.name.into(),
                nodes.to_string(),
                format!("{first:.1} ms"),
                format!("{median:.1} ms"),
                format!("{slow:.1} ms"),
                format!("{draw:.1} ms"),
            ])?;
        }
        engine.close().await;
        drop(engine);
        std::fs::remove_dir_all(&dir)?;
    }
    Ok(())
}
