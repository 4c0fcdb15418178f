//! Figures for docs/performance.md. Run on a quiet machine, in release:
//! `cargo test --release --test integration sandbox::speed -- --ignored --nocapture --test-threads 1`
#![allow(clippy::print_stdout)]

use std::time::{Duration, Instant};

use clade::sandbox::{EvaluationSpec, Evaluator, Executor, JobEnd, JobOutcome, Limits, NativeExecutor};

use super::support::{Bench, small_limits, token};

const ROUNDS: usize = 60;
/// Prints the time of its first instruction.
const FIRST: &str = "import time; print(time.time_ns())";
const FIRST_WITH_MODULES: &str = "import pandas, sklearn.ensemble, numpy, time; print(time.time_ns())";

struct Figures {
    to_first: Vec<f64>,
    whole: Vec<f64>,
}

async fn measure(native: &NativeExecutor, bench: &Bench, code: &str, warm: bool, pause: Duration) -> Figures {
    let mut figures = Figures {
        to_first: Vec::new(),
        whole: Vec::new(),
    };
    for _ in 0..ROUNDS {
        tokio::time::sleep(pause).await;
        let mut job = bench.job(code, small_limits());
        job.warm = warm;
        let begin = Instant::now();
        let outcome: JobOutcome = native.run(job, &token()).await.unwrap();
        figures.whole.push(begin.elapsed().as_secs_f64() * 1e3);
        assert_eq!(outcome.end, JobEnd::Exited { code: 0 }, "{}", outcome.stderr.text());
        assert_eq!(outcome.warm, warm);
        let first: i64 = outcome.stdout.text().trim().parse().unwrap();
        let queued = outcome.queued_at.timestamp_nanos_opt().unwrap();
        figures.to_first.push((first - queued) as f64 / 1e6);
    }
    figures
}

fn show(name: &str, mut values: Vec<f64>) {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share) as usize];
    println!(
        "{name:58} min {:7.1}  p10 {:7.1}  p50 {:7.1}  p90 {:7.1} ms",
        at(0.0),
        at(0.1),
        at(0.5),
        at(0.9)
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "prints figures"]
async fn starts() {
    let bench = Bench::new();
    let none = Duration::from_millis(5);
    let python = super::support::python();
    let plain = |code: &str| {
        let mut times = Vec::new();
        for _ in 0..20 {
            let begin = Instant::now();
            std::process::Command::new(&python).args(["-c", code]).output().unwrap();
            times.push(begin.elapsed().as_secs_f64() * 1e3);
        }
        times
    };
    show("plain `python -c pass`, whole", plain("pass"));
    for (name, standby, cgroups) in [
        ("cold", 0, true),
        ("cold, without control groups", 0, false),
        ("cold, standby 2", 2, true),
    ] {
        let mut options = bench.options();
        (options.standby, options.cgroups) = (standby, cgroups);
        let native = NativeExecutor::new(options).unwrap();
        measure(&native, &bench, FIRST, false, none).await;
        let figures = measure(
            &native,
            &bench,
            FIRST,
            false,
            Duration::from_millis(if standby > 0 { 50 } else { 5 }),
        )
        .await;
        show(&format!("{name}: to the first Python instruction"), figures.to_first);
        show(&format!("{name}: whole job"), figures.whole);
    }
    let native = NativeExecutor::new(bench.options().with_warm_pool()).unwrap();
    measure(&native, &bench, FIRST, true, none).await;
    let figures = measure(&native, &bench, FIRST_WITH_MODULES, true, Duration::from_millis(150)).await;
    show(
        "warm: to the first instruction with pandas and sklearn",
        figures.to_first,
    );
    show("warm: whole job", figures.whole);
    let figures = measure(&native, &bench, FIRST_WITH_MODULES, true, Duration::ZERO).await;
    show("warm, back to back: to the first instruction", figures.to_first);
    show("warm, back to back: whole job", figures.whole);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "prints figures"]
async fn evaluations() {
    let Some(shared) = crate::shared::folder() else { return };
    let (bench, task) = (Bench::new(), shared.join("tasks/abalone-age"));
    let rows = std::fs::read_to_string(task.join("data/private/test_answer.csv")).unwrap();
    let thousand: String = rows.lines().take(1001).map(|line| format!("{line}\n")).collect();
    let submission = bench.out.join("submission.csv");
    let answers = bench.out.join("answers.csv");
    std::fs::write(&submission, &thousand).unwrap();
    std::fs::write(&answers, &thousand).unwrap();
    let native = NativeExecutor::new(bench.options().with_warm_pool()).unwrap();
    for warm in [false, true] {
        let mut times = Vec::new();
        for round in 0..ROUNDS / 2 {
            tokio::time::sleep(Duration::from_millis(150)).await;
            let spec = EvaluationSpec {
                metric_py: task.join("utils/metric.py"),
                answers: vec![answers.clone()],
                submission: submission.clone(),
                limits: Limits::for_evaluation(),
                warm,
            };
            let evaluation = native.evaluate(spec, &token()).await.unwrap();
            assert_eq!(evaluation.score, Some(0.0), "{evaluation:?}");
            if round > 0 {
                times.push(evaluation.wall_seconds * 1e3);
            }
        }
        show(
            &format!("evaluation of {} rows, warm: {warm}", thousand.lines().count() - 1),
            times,
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "prints figures"]
async fn processor_time_of_a_trivial_job() {
    let bench = Bench::new();
    let native = bench.native();
    measure(&native, &bench, FIRST, false, Duration::ZERO).await;
    let ticks = || -> f64 {
        let text = std::fs::read_to_string("/proc/stat").unwrap();
        let fields: Vec<f64> = text
            .lines()
            .next()
            .unwrap()
            .split_whitespace()
            .skip(1)
            .map(|f| f.parse().unwrap())
            .collect();
        fields[0] + fields[2]
    };
    let before = ticks();
    measure(&native, &bench, FIRST, false, Duration::ZERO).await;
    println!(
        "machine-wide CPU for each trivial cold job: {:.1} ms (quiet machine only)",
        (ticks() - before) * 10.0 / ROUNDS as f64
    );
}
