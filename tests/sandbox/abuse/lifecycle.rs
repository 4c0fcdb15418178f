//! Group E: ways not to end. What a job leaves running is dead when its result is there. Killed helpers are in `killed`.

use std::time::Duration;

use clade::sandbox::{Executor, JobEnd, JobOutcome, Limits, NativeExecutor, ResultState};

use super::attempts::run;
use super::rows::{Column, HELD, NOT_TRIED, Rows, WORKS};
use super::words;
use crate::sandbox::support::{Bench, kill, processes_with, program, small_limits, token};

/// A program of `life.py` and its end.
struct Life {
    case: &'static str,
    attack: &'static str,
    kind: &'static str,
    end: JobEnd,
    /// What the table says where it ends so and nothing lives on.
    word: &'static str,
    is_safe: bool,
}

fn life(case: &'static str, attack: &'static str, kind: &'static str, end: JobEnd, word: &'static str) -> Life {
    Life {
        case,
        attack,
        kind,
        end,
        word,
        is_safe: true,
    }
}

const GOOD: JobEnd = JobEnd::Exited { code: 0 };
const STOPPED: &str = "stopped: wall time";
const ENDED: &str = "dies with the program";

fn lives() -> [Life; 10] {
    [
        life("E24", "daemon that ignores all signals", "daemon", GOOD, ENDED),
        life(
            "E24",
            "program in a session of its own",
            "exec",
            JobEnd::WallLimit,
            STOPPED,
        ),
        life("E25", "process that holds the log open", "stdout_holder", GOOD, ENDED),
        life(
            "E26",
            "ignoring SIGTERM, and so a daemon",
            "ignore_term",
            JobEnd::WallLimit,
            STOPPED,
        ),
        life("E26", "stopping itself", "stop_itself", JobEnd::WallLimit, STOPPED),
        Life {
            is_safe: false,
            ..life("E26", "killing every process it can", "kill_all", GOOD, "no effect")
        },
        Life {
            is_safe: false,
            ..life("E26", "stopping its parent", "stop_parent", GOOD, "no effect")
        },
        life(
            "E27",
            "submission written after SIGTERM",
            "late_submission",
            JobEnd::WallLimit,
            STOPPED,
        ),
        life("E27", "exit after SIGTERM", "late_exit", JobEnd::WallLimit, STOPPED),
        life("E29", "children that nobody waits for", "zombies", GOOD, "passes"),
    ]
}

async fn live(backend: &dyn Executor, bench: &Bench, life: &Life, warm: bool) -> JobOutcome {
    let wall = if life.end == JobEnd::WallLimit { 5 } else { 60 };
    let mut job = bench.job(
        &program("life.py"),
        Limits {
            wall: Duration::from_secs(wall),
            ..small_limits()
        },
    );
    job.env.insert("KIND".to_owned(), life.kind.to_owned());
    if backend.name() != "process" {
        job.env.insert("JAILED".to_owned(), "1".to_owned());
    }
    job.warm = warm;
    let outcome = backend.run(job, &token()).await.unwrap();
    assert_eq!(outcome.warm, warm);
    outcome
}

async fn check_life(backend: &dyn Executor, bench: &Bench, life: &Life, warm: bool) {
    let outcome = live(backend, bench, life, warm).await;
    let what = format!("{} in {}", life.kind, backend.name());
    assert_eq!(outcome.end, life.end, "{what}: {}", outcome.stderr.text());
    let seconds = outcome.wall_seconds.unwrap();
    assert!(seconds < 40.0, "{what} hung for {seconds} s");
    let text = outcome.stdout.text();
    assert!(text.contains("started"), "{what}: output before the end is kept");
    if life.end == JobEnd::WallLimit {
        assert_eq!(outcome.state, Some(ResultState::Timeout), "{what}");
        assert_eq!(outcome.submission, None, "{what}");
    }
    if life.kind == "late_submission" {
        assert!(text.contains("saved"), "the handler ran in {what}");
    }
    if life.kind == "late_exit" {
        assert_eq!(outcome.exit_code, Some(3), "{what}");
    }
    let left = processes_with(&bench.mark());
    assert!(left.is_empty(), "{what} left {left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn e24_e25_e26_e27_e29_every_life_ends() {
    let bench = Bench::new();
    let mut rows = Rows::default();
    let process = bench.process();
    for life in &lives() {
        let mut word = NOT_TRIED;
        if life.is_safe {
            let outcome = live(&process, &bench, life, false).await;
            assert_eq!(outcome.end, life.end, "{}: {}", life.kind, outcome.stderr.text());
            let escaped = processes_with(&bench.mark());
            escaped.iter().for_each(|pid| kill(pid.parse().unwrap()));
            word = if escaped.is_empty() { life.word } else { WORKS };
        }
        rows.see(Column::Without, life.case, life.attack, word);
    }
    drop(process);
    for backend in bench.isolating() {
        for life in &lives() {
            check_life(&*backend, &bench, life, false).await;
            rows.see(Column::of(backend.name()), life.case, life.attack, life.word);
        }
        bench.finish(backend);
    }
    rows.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn e24_e25_e26_e27_e29_every_life_ends_in_the_warm_pool() {
    let bench = Bench::new();
    let mut options = bench.options().with_warm_pool();
    options.preload = Some(vec!["json".to_owned()]);
    let native = NativeExecutor::new(options).unwrap();
    for life in &lives() {
        check_life(&native, &bench, life, true).await;
    }
    bench.finish(native);
}

#[tokio::test(flavor = "multi_thread")]
async fn e26_the_first_process_cannot_be_killed() {
    let bench = Bench::new();
    let mut rows = Rows::default();
    let attack = "killing the first process";
    rows.see(Column::Without, "E26", attack, NOT_TRIED);
    for backend in bench.isolating() {
        let outcome = run(&*backend, &bench, "life.py", &[("KIND", "kill_init")], small_limits()).await;
        let text = outcome.stdout.text();
        let column = Column::of(backend.name());
        // In a container the call succeeds, for the first process is of the same user, and the kernel lets it have no effect.
        let (line, word) = match column {
            Column::Docker => ("ignored", "no effect"),
            _ => ("held", HELD),
        };
        assert_eq!(text, format!("started\n{line}\nalive\n"), "{}", outcome.stderr.text());
        assert_eq!(outcome.end, GOOD);
        rows.see(column, "E26", attack, word);
        bench.finish(backend);
    }
    rows.check();
}

/// program, attack, end of a process of its own, how the table says it.
const EXITS: [(&str, &str, JobEnd); 3] = [
    (
        "import os; os._exit(137)",
        "exit code 137 of its own",
        JobEnd::Exited { code: 137 },
    ),
    (
        "import os; os.kill(os.getpid(), 9)",
        "SIGKILL of its own",
        JobEnd::Signaled { signal: 9 },
    ),
    ("import os; os._exit(0)", "good end without a submission", GOOD),
];

#[tokio::test(flavor = "multi_thread")]
async fn e28_an_end_of_its_own_is_no_memory_limit() {
    let bench = Bench::new();
    let mut rows = Rows::default();
    for backend in bench.every() {
        for (code, attack, end) in &EXITS {
            let outcome = backend.run(bench.job(code, small_limits()), &token()).await.unwrap();
            // An engine tells the end by a signal as an exit code.
            let end = match end {
                JobEnd::Signaled { signal } if backend.name() == "docker" => &JobEnd::Exited { code: 128 + signal },
                end => end,
            };
            assert_eq!(outcome.end, *end, "{attack} in {}", backend.name());
            assert!(!outcome.oom, "{attack} in {}", backend.name());
            let (state, word) = match outcome.end {
                GOOD => (ResultState::SubmissionMissing, "refused: nothing there".to_owned()),
                _ => (ResultState::CodeExecutionError, words::end(&outcome)),
            };
            assert_eq!(outcome.state, Some(state), "{attack} in {}", backend.name());
            rows.see(Column::of(backend.name()), "E28", attack, &word);
        }
        bench.finish(backend);
    }
    rows.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn e31_wall_time_is_kept_whatever_the_clock_says() {
    let bench = Bench::new();
    let mut rows = Rows::default();
    let (short, clock) = ("wall time over before the interpreter stands", "setting the clock");
    rows.see(Column::Without, "E31", clock, NOT_TRIED);
    for backend in bench.every() {
        let column = Column::of(backend.name());
        let limits = Limits {
            wall: Duration::from_millis(1),
            ..small_limits()
        };
        let outcome = backend
            .run(bench.job("import time; time.sleep(60)", limits), &token())
            .await
            .unwrap();
        assert_eq!(outcome.state, Some(ResultState::Timeout), "{:?}", outcome.end);
        rows.see(column, "E31", short, &words::end(&outcome));
        if column != Column::Without {
            let outcome = run(&*backend, &bench, "life.py", &[("KIND", "clock")], small_limits()).await;
            assert_eq!(outcome.stdout.text(), "started\nheld\n", "{}", outcome.stderr.text());
            rows.see(column, "E31", clock, HELD);
        }
        bench.finish(backend);
    }
    rows.check();
}
