//! Group D: processes, memory, processors, logs and descriptors. Disks are in `disk`.

use std::time::Duration;

use clade::sandbox::{Cause, JobEnd, JobOutcome, Limits};

use super::attempts::run;
use super::rows::{Column, HELD, NOT_TRIED, Rows, WORKS};
use super::words;
use crate::sandbox::support::{Bench, expect_success, small_limits};

/// A program that goes over a limit.
pub struct Excess {
    pub case: &'static str,
    pub attack: &'static str,
    pub program: &'static str,
    pub kind: &'static str,
    pub limits: fn(Limits) -> Limits,
    /// How it must end, in words.
    pub end: &'static str,
    /// It ends by itself without a sandbox, and harms nothing.
    pub is_safe: bool,
}

/// Runs programs in every isolating back end; `look` sees each outcome.
pub async fn check(list: &[Excess], look: fn(&Excess, &JobOutcome)) {
    let bench = Bench::new();
    let mut rows = Rows::default();
    let process = bench.process();
    for excess in list {
        let mut word = NOT_TRIED;
        if excess.is_safe {
            let env = [("KIND", excess.kind)];
            let outcome = run(&process, &bench, excess.program, &env, (excess.limits)(small_limits())).await;
            expect_success(excess.attack, &outcome);
            word = WORKS;
        }
        rows.see(Column::Without, excess.case, excess.attack, word);
    }
    drop(process);
    for backend in bench.isolating() {
        for excess in list {
            let env = [("KIND", excess.kind)];
            let outcome = run(&*backend, &bench, excess.program, &env, (excess.limits)(small_limits())).await;
            let word = words::end(&outcome);
            let what = format!("{} in {}: {:?}", excess.attack, backend.name(), outcome.end);
            assert_eq!(
                word,
                excess.end,
                "{what}\n{}\n{}",
                outcome.stdout.head,
                outcome.stderr.text()
            );
            // Far more than any of them needs: none may hang until the wall time.
            let is_at_once = outcome.end == JobEnd::WallLimit || outcome.wall_seconds.unwrap() < 20.0;
            assert!(is_at_once, "{what} took {:?} s", outcome.wall_seconds);
            look(excess, &outcome);
            rows.see(Column::of(backend.name()), excess.case, excess.attack, &word);
        }
        bench.finish(backend);
    }
    rows.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn d17_processes_and_threads_are_counted() {
    let bench = Bench::new();
    let mut rows = Rows::default();
    let attacks = [
        "one process after another",
        "one thread after another",
        "processes that double",
    ];
    for attack in attacks {
        rows.see(Column::Without, "D17", attack, NOT_TRIED);
    }
    for backend in bench.isolating() {
        let column = Column::of(backend.name());
        let limits = Limits {
            processes: 40,
            ..small_limits()
        };
        let outcome = run(&*backend, &bench, "processes.py", &[], limits).await;
        let text = outcome.stdout.text();
        let number = |name: &str| -> u64 {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
            line.unwrap_or_else(|| panic!("{text}{}", outcome.stderr.text()))
        };
        for (kind, attack) in ["processes", "threads"].iter().zip(attacks) {
            let count = number(kind);
            assert!((30..=40).contains(&count), "{kind} in {column:?}: {count} of 40");
            rows.see(column, "D17", attack, "stopped: processes");
        }
        let limits = Limits {
            wall: Duration::from_secs(2),
            ..small_limits()
        };
        let outcome = run(&*backend, &bench, "fork_bomb.py", &[], limits).await;
        let word = words::end(&outcome);
        assert_eq!(word, "stopped: wall time", "{:?}", outcome.end);
        assert!(outcome.wall_seconds.unwrap() < 30.0, "{:?}", outcome.wall_seconds);
        rows.see(column, "D17", attacks[2], &word);
        bench.finish(backend);
    }
    rows.check();
}

const MEMORY: &str = "stopped: memory";

fn quarter_gib(limits: Limits) -> Limits {
    Limits {
        memory_bytes: 256 << 20,
        ..limits
    }
}

fn half_gib(limits: Limits) -> Limits {
    Limits {
        memory_bytes: 512 << 20,
        ..limits
    }
}

const fn memory(
    attack: &'static str,
    program: &'static str,
    kind: &'static str,
    limits: fn(Limits) -> Limits,
    is_safe: bool,
) -> Excess {
    Excess {
        case: "D18",
        attack,
        program,
        kind,
        limits,
        end: MEMORY,
        is_safe,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d18_memory_of_every_kind_is_counted() {
    let list = [
        memory("memory of one process", "memory_one.py", "", quarter_gib, false),
        memory("memory of many children", "memory_children.py", "", half_gib, false),
        memory("files in /tmp", "memory_files.py", "tmp", quarter_gib, false),
        memory("files in /dev/shm", "memory_files.py", "dev/shm", quarter_gib, false),
        memory("files without a name", "memory_files.py", "memfd", quarter_gib, false),
        memory("shared memory", "memory_files.py", "shared", quarter_gib, true),
        memory("mapped files", "memory_files.py", "mapped", quarter_gib, true),
    ];
    check(&list, |excess, outcome| {
        if excess.program == "memory_children.py" {
            assert!(outcome.oom && outcome.cause == Cause::Oom, "{outcome:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d19_processor_time_is_limited() {
    let list = [Excess {
        case: "D19",
        attack: "calculating for ever",
        program: "cpu_forever.py",
        kind: "",
        limits: |limits| Limits {
            cpu_seconds: Some(2),
            ..limits
        },
        end: "stopped: CPU time",
        is_safe: false,
    }];
    check(&list, |_, outcome| assert_eq!(outcome.cause, Cause::CpuLimit)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d19_the_share_of_the_processors_is_limited() {
    let bench = Bench::new();
    let mut rows = Rows::default();
    let attack = "more processors than allowed";
    let limits = Limits {
        cpus: 1,
        ..small_limits()
    };
    let share = |outcome: &JobOutcome| -> f64 {
        let number = outcome.stdout.text().trim().parse();
        number.unwrap_or_else(|_| panic!("{}", outcome.stderr.text()))
    };
    let process = bench.process();
    let outcome = run(&process, &bench, "cpu_burn.py", &[], limits.clone()).await;
    // A machine with one processor, or a busy one, cannot show it.
    if share(&outcome) > 1.15 {
        rows.see(Column::Without, "D19", attack, WORKS);
    } else {
        rows.unseen("D19", attack);
    }
    drop(process);
    for backend in bench.isolating() {
        let outcome = run(&*backend, &bench, "cpu_burn.py", &[], limits.clone()).await;
        let share = share(&outcome);
        assert!(share <= 1.15, "{share} processors of 1 in {}", backend.name());
        let seconds = outcome.cpu_seconds.unwrap();
        assert!(seconds > 0.2, "the time of children is counted: {seconds}");
        rows.see(Column::of(backend.name()), "D19", attack, HELD);
        bench.finish(backend);
    }
    rows.check();
}

/// kind, attack, whether it writes to standard output and to standard error.
const FLOODS: &[(&str, &str, [bool; 2])] = &[
    ("stdout", "one endless line", [true, false]),
    ("stderr", "standard error", [false, true]),
    ("both", "both streams", [true, true]),
    ("binary", "bytes that are no text", [true, false]),
    ("zeros", "NUL bytes", [true, false]),
    ("truncate", "shortening the log that was written", [true, false]),
];

#[tokio::test(flavor = "multi_thread")]
async fn d21_logs_are_drained_and_counted() {
    let bench = Bench::new();
    let mut rows = Rows::default();
    for (kind, attack, writes) in FLOODS {
        let env = [("KIND", *kind), ("MEGABYTES", "64")];
        let outcome = run(&bench.process(), &bench, "log_flood.py", &env, small_limits()).await;
        check_flood(kind, *writes, &outcome);
        rows.see(Column::Without, "D21", attack, "cut");
    }
    for backend in bench.isolating() {
        for (kind, attack, writes) in FLOODS {
            let env = [("KIND", *kind), ("MEGABYTES", "64")];
            let outcome = run(&*backend, &bench, "log_flood.py", &env, small_limits()).await;
            check_flood(kind, *writes, &outcome);
            rows.see(Column::of(backend.name()), "D21", attack, "cut");
        }
        bench.finish(backend);
    }
    rows.check();
}

#[track_caller]
fn check_flood(kind: &str, writes: [bool; 2], outcome: &JobOutcome) {
    let what = format!("{kind} in {}", outcome.isolation.backend);
    assert_eq!(
        outcome.end,
        JobEnd::Exited { code: 0 },
        "{what}: {}",
        outcome.stderr.tail
    );
    for (log, written) in [(&outcome.stdout, writes[0]), (&outcome.stderr, writes[1])] {
        assert_eq!(log.bytes, if written { (64 << 20) + 5 } else { 0 }, "{what}");
        assert_eq!(log.truncated, written, "{what}");
        assert!(log.kept.len() < 70 << 10, "{what}");
        assert_eq!(log.kept.ends_with(b"\nend\n"), written, "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d22_descriptors_and_pipes_run_out() {
    let excess = |attack, kind| Excess {
        case: "D22",
        attack,
        program: "descriptors.py",
        kind,
        limits: |limits| limits,
        end: "stopped: open files",
        is_safe: false,
    };
    check(
        &[excess("open files", "files"), excess("filled pipes", "pipes")],
        |_, _| {},
    )
    .await;
}
