//! Profiles reach the budgets of a run.

use std::sync::Arc;

use clade::engine::OpenMode;

use crate::engine::fixture::{add_task, instant, open_store, rows, session, table};
use crate::engine::instant::{Instant, Scripted};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_standard_profile_bounds_a_run_as_published() {
    let folder = tempfile::tempdir().unwrap();
    let models = vec![Arc::new(Scripted::default()) as _];
    let engine = open_store(
        &folder.path().join("store"),
        &["search.profile=standard"],
        models,
        instant(Arc::new(Instant::default())),
        OpenMode::Create,
    )
    .await
    .unwrap();
    add_task(&engine, "toy").await;
    let client = session(&engine);
    // Eight hundred steps of programs that take no time; what bounds them is what is looked at.
    rows(
        &client,
        "EVOLVE TASK 'toy' WITH (seed => 1, grade => false, id => 'r', max_jobs => 3)",
    )
    .await
    .unwrap();
    let run = table(&client, "SELECT mode, steps_limit FROM evo.runs").await;
    assert!(run.contains("generation") && run.contains("800"), "{run}");
    let budgets = table(
        &client,
        "SELECT resource, \"limit\" FROM system.budgets WHERE \"limit\" IS NOT NULL ORDER BY resource",
    )
    .await;
    for (resource, limit) in [
        ("sandbox_seconds", "43200"),
        ("active_seconds", "64800"),
        ("steps", "800"),
    ] {
        let line = budgets.lines().find(|line| line.contains(resource));
        assert!(line.is_some_and(|line| line.contains(limit)), "{resource}\n{budgets}");
    }
    let options = table(
        &client,
        "SELECT option_number(options, 'timeout_seconds') AS timeout, option_number(options, 'debug_seconds') AS debug,
                option_number(options, 'final_timeout') AS final FROM evo.runs",
    )
    .await;
    for part in ["7200", "21600", "14400"] {
        assert!(options.contains(part), "{part}\n{options}");
    }
}
