//! One parent selection: the rows of the run's policy, and the draw from them.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use clade::policy::shipped;
use clade::scheduler::{Run, candidates, draw_step, load_index};
use parking_lot::Mutex;

use crate::fixture::create;
use crate::history::run_of;
use crate::machine::{Report, cpu_seconds, percentiles};

const RUN: &str = "r";
const SIZES: [usize; 3] = [100, 5_000, 100_000];
/// Selections of one policy are measured this long at least, and this often.
const LEAST_TIME: Duration = Duration::from_millis(500);
const LEAST_ROUNDS: usize = 5;
/// One policy takes no longer than this, whatever the number of its rounds.
const MOST_TIME: Duration = Duration::from_secs(10);

pub async fn measure(report: &mut Report, folder: &Path) -> Result<()> {
    report.table(
        "Selection: policy view and draw of one step, in a run of that many nodes",
        &[
            "policy",
            "nodes",
            "first",
            "p50",
            "p99",
            "CPU",
            "of it planning, p50",
            "of it the draw, p50",
        ],
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
            let (mut whole, mut draws, mut plans) = (Vec::new(), Vec::new(), Vec::new());
            let mut used = 0.0;
            let started = Instant::now();
            while whole.len() <= LEAST_ROUNDS || started.elapsed() < LEAST_TIME {
                let (begun, cpu) = (Instant::now(), cpu_seconds());
                let snapshot = services.store.snapshot(None).await?;
                let rows = candidates(services, &run, &index, snapshot).await?;
                let selected = Instant::now();
                draw_step(&run, &rows, nodes as i64 + 2)?;
                draws.push(selected.elapsed());
                whole.push(begun.elapsed());
                // The first plans the policy's query; it is shown apart.
                if whole.len() > 1 {
                    used += cpu_seconds() - cpu;
                }
                let planned = Instant::now();
                services
                    .queries
                    .physical_plan(&run.policy_sql, &[], Some(RUN), None)
                    .await?;
                plans.push(planned.elapsed());
                if whole.len() > 1 && started.elapsed() > MOST_TIME {
                    break;
                }
            }
            let first = whole.remove(0).as_secs_f64() * 1e3;
            draws.remove(0);
            let cpu = used * 1e3 / whole.len() as f64;
            let ((median, slow), (plan, _), (draw, _)) = (
                percentiles(&mut whole),
                percentiles(&mut plans),
                percentiles(&mut draws),
            );
            let times = [first, median, slow, cpu, plan, draw].map(|time| format!("{time:.1} ms"));
            let [first, median, slow, cpu, plan, draw] = times;
            let name = policy.name.to_owned();
            report.row(&[name, nodes.to_string(), first, median, slow, cpu, plan, draw])?;
        }
        engine.close().await;
        drop(engine);
        std::fs::remove_dir_all(&dir)?;
    }
    Ok(())
}
