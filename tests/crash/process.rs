//! This test binary started again as a process of its own that searches or reads, and that can be killed.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use clade::engine::{Engine, OpenMode};
use clade_catalog::FlushScope;
use tokio_util::sync::CancellationToken;

use crate::engine::fixture::{instant, number, open_store, rows, session};
use crate::engine::instant::{Instant, Scripted};
use crate::engine::metered::Metered;

const READY: &str = "ready";

/// An engine with the scripted and the metered generator on a store.
pub async fn open(store: &Path, mode: OpenMode) -> Arc<Engine> {
    let models = vec![Arc::new(Scripted::default()) as _, Arc::new(Metered::default()) as _];
    let sandbox = Arc::new(Instant {
        shuffle: true,
        ..Instant::default()
    });
    open_store(store, &["store.flush_rows=5"], models, instant(sandbox), mode)
        .await
        .unwrap()
}

/// A process of ours.
pub struct Process {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Process {
    /// A process that starts a run, or resumes it when the store has it.
    pub fn searching(store: &Path, run_id: &str, evolve: &str) -> Self {
        Self::start("crash::process::searching_process", store, run_id, evolve)
    }

    /// A process that reads until the runs of a list (parted by commas) have ended.
    pub fn reading(store: &Path, runs: &str) -> Self {
        Self::start("crash::together::reading_process", store, runs, "")
    }

    fn start(test: &str, store: &Path, run_id: &str, sql: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .env("CLADE_CHILD_STORE", store)
            .env("CLADE_CHILD_RUN", run_id)
            .env("CLADE_CHILD_SQL", sql)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Waits until it has opened the store; false when it ended before.
    pub fn wait_ready(&mut self) -> bool {
        self.lines
            .by_ref()
            .map_while(Result::ok)
            .any(|line| line.ends_with(READY))
    }

    /// SIGKILL. The dead process is not waited for: it stays in the process table, as under a careless parent.
    pub fn kill(mut self) -> Child {
        self.child.kill().unwrap();
        // Its end of the pipe closes when it is dead.
        self.lines.by_ref().map_while(Result::ok).for_each(drop);
        self.child
    }

    /// Waits for its end, which must be a good one.
    pub fn finish(mut self) {
        let said: Vec<String> = self.lines.by_ref().map_while(Result::ok).collect();
        assert!(self.child.wait().unwrap().success(), "{}", said.join("\n"));
    }
}

/// What a process of ours was told.
pub struct Orders {
    pub engine: Arc<Engine>,
    pub run_id: String,
    pub sql: String,
}

/// Opens the store a process of ours was told to work on; nothing when it was started as an ordinary test.
pub async fn orders(mode: OpenMode) -> Option<Orders> {
    let store = std::env::var_os("CLADE_CHILD_STORE")?;
    let engine = open(Path::new(&store), mode).await;
    #[expect(clippy::print_stdout, reason = "the parent waits for this line")]
    {
        println!("{READY}");
    }
    Some(Orders {
        engine,
        run_id: std::env::var("CLADE_CHILD_RUN").unwrap(),
        sql: std::env::var("CLADE_CHILD_SQL").unwrap(),
    })
}

/// Flushes, compacts and checkpoints all the time, so that a kill often meets it.
async fn move_rows(engine: Arc<Engine>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        engine.store().flush(FlushScope::All).await.unwrap();
        engine.store().optimize(Some("evo.nodes")).await.unwrap();
        engine.store().checkpoint().await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "other tests start it as a process of its own"]
async fn searching_process() {
    let Some(Orders { engine, run_id, sql }) = orders(OpenMode::Existing).await else {
        return;
    };
    let session = session(&engine);
    let stop = CancellationToken::new();
    let mover = tokio::spawn(move_rows(Arc::clone(&engine), stop.clone()));
    let known = format!("SELECT count(*) FROM evo.runs WHERE run_id = '{run_id}'");
    let sql = match number(&session, &known).await {
        0 => sql,
        _ => format!("RESUME RUN '{run_id}'"),
    };
    rows(&session, &sql).await.unwrap();
    // Its end is waited for, so that it does not see the runtime go away.
    stop.cancel();
    mover.await.unwrap();
    engine.close().await;
}
