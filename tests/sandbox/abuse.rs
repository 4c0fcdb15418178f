//! Hostile programs, one table: what each tries, and how it must end. Each runs with and without control groups; where
//! that is safe, the attack is first shown to work without isolation, for else the test would prove nothing.

use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::time::Duration;

use clade::sandbox::{Cause, Executor, JobEnd, JobOutcome, Limits, NativeExecutor, ResultState};

use super::support::{Bench, expect_success, program, small_limits, token};

/// Both ways in which limits can be enforced.
fn natives(bench: &Bench) -> Vec<NativeExecutor> {
    let with = |cgroups| {
        let mut options = bench.options();
        options.cgroups = cgroups;
        NativeExecutor::new(options).unwrap()
    };
    vec![with(true), with(false)]
}

async fn run<T: Executor>(backend: &T, bench: &Bench, name: &str, env: &[(&str, &str)], limits: Limits) -> JobOutcome {
    let mut job = bench.job(&program(name), limits);
    job.env.extend(
        env.iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
    );
    if backend.name() == "native" {
        job.env.insert("JAILED".to_owned(), "1".to_owned());
    }
    backend.run(job, &token()).await.unwrap()
}

/// No attack of the program may work; without isolation the named ones do.
async fn check_attacks(bench: &Bench, name: &str, env: &[(&str, &str)], work_without: &[&str]) {
    let process = bench.process();
    let outcome = run(&process, bench, name, env, small_limits()).await;
    let text = outcome.stdout.text();
    for attack in work_without {
        assert!(
            text.contains(&format!("BREACH {attack}")),
            "{name}: {attack} proves nothing:\n{text}{}",
            outcome.stderr.text()
        );
    }
    drop(process);
    for native in natives(bench) {
        let outcome = run(&native, bench, name, env, small_limits()).await;
        let text = outcome.stdout.text();
        expect_success(name, &outcome);
        assert!(
            !text.contains("BREACH") && !text.contains("SLOW") && !text.contains("refused"),
            "{name}:\n{text}"
        );
        assert!(
            text.contains("held") || text.contains("allowed"),
            "{name} tried nothing:\n{text}"
        );
        bench.finish(native);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_cannot_be_read() {
    let bench = Bench::new();
    let secret = bench.root.path().join("hidden answers.csv");
    std::fs::write(&secret, "the-secret-of-this-test").unwrap();
    // Stands for another job: its scratch directory lies beside this job's.
    let neighbour = bench.scratch_root().join("clade-sandbox-0/1-other/job-1");
    std::fs::create_dir_all(&neighbour).unwrap();
    std::fs::write(neighbour.join("candidate.py"), "the-secret-of-this-test").unwrap();
    let holder = std::process::Command::new("sleep")
        .arg("120")
        .env("HELD", "the-secret-of-this-test")
        .spawn()
        .unwrap();
    let _holder = KillOnDrop(holder);
    let (secret, neighbour_file) = (
        secret.display().to_string(),
        neighbour.join("candidate.py").display().to_string(),
    );
    let env = [("SECRET", secret.as_str()), ("NEIGHBOUR", neighbour_file.as_str())];
    let works = [
        "absolute path",
        "above the data",
        "other job",
        "root of another process",
        "environment of another process",
    ];
    let process = bench.process();
    let outcome = run(&process, &bench, "read_secrets.py", &env, small_limits()).await;
    let text = outcome.stdout.text();
    for attack in works {
        assert!(
            text.contains(&format!("BREACH {attack}")),
            "{attack} proves nothing:\n{text}"
        );
    }
    for native in natives(&bench) {
        let outcome = run(&native, &bench, "read_secrets.py", &env, small_limits()).await;
        let text = outcome.stdout.text();
        assert_eq!(outcome.end, JobEnd::Exited { code: 0 }, "{}", outcome.stderr.text());
        assert!(
            !text.contains("BREACH") && text.contains("held absolute path"),
            "{text}"
        );
    }
}

struct KillOnDrop(std::process::Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_outside_can_be_written() {
    let bench = Bench::new();
    let outside = bench.root.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let outside = outside.display().to_string();
    let works = [
        "new file in the data",
        "mode of the data",
        "time of the data",
        "host directory",
    ];
    check_attacks(&bench, "write_outside.py", &[("OUTSIDE", &outside)], &works).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_and_privileges_cannot_be_had() {
    let works: &[&str] = if rustix::process::geteuid().is_root() {
        &["character device", "becoming root"]
    } else {
        &[]
    };
    check_attacks(&Bench::new(), "devices_and_suid.py", &[], works).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_listed_things_are_visible() {
    let bench = Bench::new();
    let native = bench.native();
    let outcome = run(&native, &bench, "visible.py", &[], small_limits()).await;
    let seen: serde_json::Value =
        serde_json::from_str(&outcome.stdout.text()).unwrap_or_else(|_| panic!("{}", outcome.stderr.text()));
    let list = |name: &str| -> Vec<String> { serde_json::from_value(seen[name].clone()).unwrap() };
    let python = super::support::python().canonicalize().unwrap();
    let extra: Vec<String> = [super::support::python(), python]
        .iter()
        .map(|path| {
            path.components()
                .nth(1)
                .unwrap()
                .as_os_str()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    let allowed = [
        "bin",
        "candidate",
        "dev",
        "etc",
        "lib",
        "lib32",
        "lib64",
        "proc",
        "sbin",
        "tmp",
        "usr",
    ];
    for name in list("root") {
        assert!(
            allowed.contains(&name.as_str()) || extra.contains(&name),
            "/{name} is visible"
        );
    }
    let dev = [
        "fd", "full", "null", "random", "shm", "stderr", "stdin", "stdout", "urandom", "zero",
    ];
    assert_eq!(list("dev"), dev);
    for name in list("etc") {
        assert!(
            ["alternatives", "group", "ld.so.cache", "localtime", "passwd"].contains(&name.as_str()),
            "/etc/{name}"
        );
    }
    assert_eq!(list("data"), ["train.csv"]);
    assert_eq!(list("work"), ["candidate.py"]);
    assert_eq!(list("processes"), Vec::<String>::new());
    assert_eq!(list("descriptors"), ["0", "1", "2", "3"], "3 is the listing itself");
    let writable: Vec<String> = list("writable")
        .into_iter()
        .filter(|place| !place.starts_with("/dev/") || place == "/dev/shm")
        .collect();
    assert_eq!(
        writable,
        ["/candidate/scratch", "/dev/shm", "/proc", "/tmp"],
        "/proc is kept by Landlock"
    );
    let ours = [
        "CLADE_TEST_MARK",
        "DATA_DIR",
        "SANDBOX_DATA_DIR",
        "HOME",
        "JAILED",
        "LANG",
        "LC_ALL",
        "LOKY_MAX_CPU_COUNT",
        "LC_CTYPE",
    ];
    for name in list("environment") {
        let known = ours.contains(&name.as_str())
            || name.ends_with("_THREADS")
            || ["MPLBACKEND", "MPLCONFIGDIR", "PATH", "TMPDIR"].contains(&name.as_str())
            || name.starts_with("PYTHON");
        assert!(known, "the variable {name} is visible");
    }
    assert_eq!(seen["host"], "sandbox");
    assert_eq!(seen["ids"], serde_json::json!([1000, 1000, 1000, 1000]));
    bench.finish(native);
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_way_out_by_network() {
    let bench = Bench::new();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let tcp6 = TcpListener::bind("[::1]:0").ok();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (tcp_port, udp_port) = (
        tcp.local_addr().unwrap().port().to_string(),
        udp.local_addr().unwrap().port().to_string(),
    );
    let echo = udp.try_clone().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 16];
        while let Ok((n, from)) = echo.recv_from(&mut buffer) {
            let _ = echo.send_to(&buffer[..n], from);
        }
    });
    let name = format!("clade-test-{}", std::process::id());
    use std::os::linux::net::SocketAddrExt;
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let _abstract_listener = UnixListener::bind_addr(&address).unwrap();
    let path = bench.root.path().join("s");
    let _path_listener = UnixListener::bind(&path).unwrap();
    let (path, tcp6_port) = (
        path.display().to_string(),
        tcp6.as_ref()
            .map(|l| l.local_addr().unwrap().port().to_string())
            .unwrap_or_default(),
    );
    let env = [
        ("TCP_PORT", tcp_port.as_str()),
        ("TCP6_PORT", tcp6_port.as_str()),
        ("UDP_PORT", udp_port.as_str()),
        ("ABSTRACT", name.as_str()),
        ("SOCKET_PATH", path.as_str()),
    ];
    check_attacks(
        &bench,
        "network.py",
        &env,
        &["TCP", "UDP", "abstract socket", "socket by path"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kernel_offers_little() {
    check_attacks(
        &Bench::new(),
        "kernel.py",
        &[],
        &["personality", "clone3", "unshare user", "clone user"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_and_threads_are_counted() {
    let bench = Bench::new();
    for native in natives(&bench) {
        let limits = Limits {
            processes: 40,
            ..small_limits()
        };
        let outcome = run(&native, &bench, "processes.py", &[], limits).await;
        let text = outcome.stdout.text();
        let number = |name: &str| -> u64 {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
                .expect(&text)
        };
        for kind in ["processes", "threads"] {
            let count = number(kind);
            assert!((30..=40).contains(&count), "{kind}: {count} of 40");
        }
        bench.finish(native);
    }
}

/// One row of the table of limits.
struct Row {
    program: &'static str,
    env: &'static [(&'static str, &'static str)],
    limits: fn(Limits) -> Limits,
    end: fn(&JobOutcome) -> bool,
    /// Longest time from start to end.
    within: u64,
}

fn quarter_gib(limits: Limits) -> Limits {
    Limits {
        memory_bytes: 256 << 20,
        ..limits
    }
}

fn stopped_or_over_memory(outcome: &JobOutcome) -> bool {
    outcome.stdout.text().contains("stopped after") || outcome.end == JobEnd::MemoryLimit
}

fn file_too_large(outcome: &JobOutcome) -> bool {
    outcome.end == JobEnd::Exited { code: 1 } && outcome.stderr.text().contains("File too large")
}

const LIMITS: &[Row] = &[
    Row {
        program: "fork_bomb.py",
        env: &[],
        limits: |l| Limits {
            wall: Duration::from_secs(2),
            ..l
        },
        end: |o| o.end == JobEnd::WallLimit && o.state == Some(ResultState::Timeout),
        within: 8,
    },
    Row {
        program: "memory_one.py",
        env: &[],
        limits: quarter_gib,
        end: |o| {
            (o.end == JobEnd::Exited { code: 1 } && o.stderr.text().contains("MemoryError"))
                || (o.end == JobEnd::MemoryLimit && o.oom)
        },
        within: 15,
    },
    Row {
        program: "memory_children.py",
        env: &[],
        limits: |l| Limits {
            memory_bytes: 512 << 20,
            ..l
        },
        end: |o| o.oom && o.cause == Cause::Oom && o.state == Some(ResultState::CodeExecutionError),
        within: 15,
    },
    Row {
        program: "memory_files.py",
        env: &[("KIND", "tmp")],
        limits: quarter_gib,
        end: stopped_or_over_memory,
        within: 15,
    },
    Row {
        program: "memory_files.py",
        env: &[("KIND", "dev/shm")],
        limits: quarter_gib,
        end: stopped_or_over_memory,
        within: 15,
    },
    Row {
        program: "memory_files.py",
        env: &[("KIND", "memfd")],
        limits: quarter_gib,
        end: |o| o.end == JobEnd::MemoryLimit && o.oom,
        within: 15,
    },
    Row {
        program: "cpu_forever.py",
        env: &[],
        limits: |l| Limits {
            cpu_seconds: Some(2),
            ..l
        },
        end: |o| o.end == JobEnd::CpuLimit && o.cause == Cause::CpuLimit,
        within: 15,
    },
    Row {
        program: "disk.py",
        env: &[("KIND", "one_file")],
        limits: |l| l,
        end: file_too_large,
        within: 15,
    },
    Row {
        program: "disk.py",
        env: &[("KIND", "sparse")],
        limits: |l| l,
        end: file_too_large,
        within: 15,
    },
    Row {
        program: "disk.py",
        env: &[("KIND", "many_files")],
        limits: |l| l,
        end: |o| matches!(o.end, JobEnd::DiskLimit(_)) && o.cause == Cause::DiskLimit,
        within: 15,
    },
    Row {
        program: "disk.py",
        env: &[("KIND", "inodes")],
        limits: |l| l,
        end: |o| matches!(o.end, JobEnd::DiskLimit(_)) && o.detail.as_ref().is_some_and(|d| d.contains("files")),
        within: 15,
    },
    Row {
        program: "disk.py",
        env: &[("KIND", "deleted")],
        limits: |l| l,
        end: |o| matches!(o.end, JobEnd::DiskLimit(_)),
        within: 15,
    },
    Row {
        program: "disk.py",
        env: &[("KIND", "quick")],
        limits: |l| l,
        end: |o| matches!(o.end, JobEnd::DiskLimit(_)),
        within: 10,
    },
    Row {
        program: "descriptors.py",
        env: &[],
        limits: |l| l,
        end: |o| o.end == JobEnd::Exited { code: 0 } && o.stdout.text().contains("stopped after 10"),
        within: 10,
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn every_limit_holds() {
    let bench = Bench::new();
    for native in natives(&bench) {
        for row in LIMITS {
            let outcome = run(&native, &bench, row.program, row.env, (row.limits)(small_limits())).await;
            let what = format!(
                "{} {:?}: {:?}, {}",
                row.program, row.env, outcome.end, outcome.stderr.tail
            );
            assert!(
                (row.end)(&outcome),
                "{what}\n{}\n{}",
                outcome.stdout.head,
                outcome.stderr.head
            );
            assert!(
                outcome.wall_seconds.unwrap() < row.within as f64,
                "{what} took {:?} s",
                outcome.wall_seconds
            );
        }
        bench.finish(native);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn directories_of_any_depth_are_removed() {
    let bench = Bench::new();
    let native = bench.native();
    let limits = Limits {
        scratch_files: 1500,
        ..small_limits()
    };
    let outcome = run(&native, &bench, "disk.py", &[("KIND", "deep")], limits.clone()).await;
    // On a busy machine the wall time may come first; either way the tree must go.
    assert!(
        matches!(outcome.end, JobEnd::DiskLimit(_) | JobEnd::WallLimit),
        "{:?}",
        outcome.end
    );
    let outcome = run(&native, &bench, "disk.py", &[("KIND", "locked")], limits).await;
    assert_eq!(outcome.state, None, "{:?}", outcome.detail);
    bench.finish(native);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_share_of_the_processors_is_limited() {
    let bench = Bench::new();
    for native in natives(&bench) {
        let outcome = run(
            &native,
            &bench,
            "cpu_burn.py",
            &[],
            Limits {
                cpus: 1,
                ..small_limits()
            },
        )
        .await;
        let share: f64 = outcome
            .stdout
            .text()
            .trim()
            .parse()
            .unwrap_or_else(|_| panic!("{}", outcome.stderr.text()));
        assert!(share <= 1.15, "{share} processors of 1");
        assert!(
            outcome.cpu_seconds.unwrap() > 0.2,
            "the children's time is counted: {:?}",
            outcome.cpu_seconds
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_drained_and_counted() {
    let bench = Bench::new();
    for native in natives(&bench) {
        for (kind, streams) in [
            ("stdout", [true, false]),
            ("stderr", [false, true]),
            ("both", [true, true]),
            ("binary", [true, false]),
            ("zeros", [true, false]),
            ("truncate", [true, false]),
        ] {
            let env = [("KIND", kind), ("MEGABYTES", "64")];
            let outcome = run(&native, &bench, "log_flood.py", &env, small_limits()).await;
            assert_eq!(
                outcome.end,
                JobEnd::Exited { code: 0 },
                "{kind}: {}",
                outcome.stderr.tail
            );
            for (log, written) in [(&outcome.stdout, streams[0]), (&outcome.stderr, streams[1])] {
                assert_eq!(log.bytes, if written { (64 << 20) + 5 } else { 0 }, "{kind}");
                assert_eq!(log.truncated, written, "{kind}");
                assert!(log.kept.len() < 70 << 10, "{kind}");
                assert_eq!(log.kept.ends_with(b"\nend\n"), written, "{kind}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn honest_programs_work() {
    let bench = Bench::new();
    let limits = Limits {
        memory_bytes: 4 << 30,
        scratch_bytes: 1 << 30,
        ..small_limits()
    };
    let process = bench.process();
    let outcome = run(&process, &bench, "positive.py", &[], limits.clone()).await;
    assert!(outcome.stdout.text().contains("all good"), "{}", outcome.stderr.text());
    drop(process);
    let mut natives = natives(&bench);
    natives.push(NativeExecutor::new(bench.options().with_warm_pool()).unwrap());
    for native in natives {
        let mut job = bench.job(
            &program("positive.py"),
            Limits {
                wall: Duration::from_secs(120),
                ..limits.clone()
            },
        );
        job.warm = true;
        let outcome = native.run(job, &token()).await.unwrap();
        assert!(
            outcome.stdout.text().contains("all good"),
            "{:?} {}",
            outcome.end,
            outcome.stderr.text()
        );
        assert_eq!(outcome.state, None, "{:?}", outcome.detail);
        bench.finish(native);
    }
}
