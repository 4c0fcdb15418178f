//! The look at a program before it runs: what cannot come to a good end is a row of its own class, and no job.

use super::fixture::{number, rows, session, table};
use crate::peers::bed::{NativeBed, Reply, submits};

const MISSING: &str = "import numpy, nowhere_to_be_found\nfail = 1\n";

fn bed() -> NativeBed {
    let program = |code: &str| Reply::Program(code.to_owned());
    NativeBed::new([
        submits(0.5, ""),
        program(MISSING),
        program("import subprocess, sys\n\nsubprocess.check_call([sys.executable, '-m', 'pip', 'install', 'x'])\n"),
        program("x = 1\nif x:\n    return x\n"),
        submits(
            0.75,
            "try:\n    import nowhere_to_be_found\nexcept ImportError:\n    pass",
        ),
    ])
}

fn search(more: &str) -> String {
    format!(
        "EVOLVE TASK 'toy' WITH POLICY best_of_n WITH (steps => 5, workers => 1, seed => 1, grade => false, id => 'r'{more})"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_come_to_a_good_end_is_a_row_and_no_job() {
    let bed = bed();
    let engine = bed.bed.create().await;
    let client = session(&engine);
    rows(&client, &search(", preflight => true")).await.unwrap();
    let nodes = table(
        &client,
        "SELECT step, status, error_class, error_signature, error FROM evo.nodes WHERE job_id IS NULL ORDER BY step",
    )
    .await;
    for (step, signature, error) in [
        (
            2,
            "import_error",
            "line 1: ModuleNotFoundError: No module named 'nowhere_to_be_found'",
        ),
        (
            3,
            "forbidden_install",
            "line 3: it installs packages (-m pip install x)",
        ),
        (4, "syntax_error", "line 3: SyntaxError: 'return' outside function"),
    ] {
        let line = nodes.lines().find(|line| line.starts_with(&format!("| {step} ")));
        for part in [
            "| preflight_failed | candidate ",
            signature,
            "the program was not run: ",
            error,
        ] {
            assert!(line.is_some_and(|line| line.contains(part)), "{part}\n{nodes}");
        }
    }
    for (count, sql) in [
        (2, "SELECT count(*) FROM evo.nodes WHERE status = 'success'"),
        (2, "SELECT count(*) FROM sandbox.jobs"),
        (
            3,
            "SELECT count(*) FROM evo.nodes WHERE is_buggy AND code IS NOT NULL AND sandbox_seconds = 0",
        ),
    ] {
        assert_eq!(number(&client, sql).await, count, "{sql}");
    }
    drop(client);
    bed.finish(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_it_the_sandbox_decides() {
    let bed = bed();
    let engine = bed.bed.create().await;
    let client = session(&engine);
    rows(&client, &search("")).await.unwrap();
    for (count, sql) in [
        (5, "SELECT count(*) FROM sandbox.jobs"),
        (0, "SELECT count(*) FROM evo.nodes WHERE status = 'preflight_failed'"),
        (
            1,
            "SELECT count(*) FROM evo.nodes WHERE step = 2 AND error_signature = 'import_error'",
        ),
    ] {
        assert_eq!(number(&client, sql).await, count, "{sql}");
    }
    drop(client);
    bed.finish(engine).await;
}
