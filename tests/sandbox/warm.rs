//! The warm pool: the same layers, the same results, no memory of other jobs.

use clade::sandbox::{Executor, JobEnd, JobOutcome, NativeExecutor};

use super::programs::check_all;
use super::support::{Bench, small_limits, token};

fn pool(bench: &Bench) -> NativeExecutor {
    NativeExecutor::new(bench.options().with_warm_pool()).unwrap()
}

async fn run(native: &NativeExecutor, bench: &Bench, code: &str) -> JobOutcome {
    let mut job = bench.job(code, small_limits());
    job.warm = true;
    let outcome = native.run(job, &token()).await.unwrap();
    assert!(outcome.warm, "not from the warm pool");
    outcome
}

#[tokio::test(flavor = "multi_thread")]
async fn every_program_ends_as_expected_in_the_warm_pool() {
    let bench = Bench::new();
    let native = pool(&bench);
    check_all(&native, &bench, true).await;
    bench.finish(native);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warm_job_is_shut_in_like_a_cold_one() {
    let bench = Bench::new();
    let native = pool(&bench);
    let code = r#"
import os, sys, resource
status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
    assert int(status[name], 16) == 0, name
assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", status
assert sorted(os.listdir("/proc/self/fd"), key=int)[:3] == ["0", "1", "2"] and len(os.listdir("/proc/self/fd")) == 4
assert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)
assert os.getcwd() == "/candidate/scratch" and __file__ == "/candidate/scratch/candidate.py" and __name__ == "__main__"
assert sys.argv == ["/candidate/scratch/candidate.py"] and sys.path[0] == "/candidate/scratch"
assert "sklearn" in sys.modules
assert {p for p in os.listdir("/proc") if p.isdigit()} == {str(os.getpid())}, os.listdir("/proc")
assert b"CLADE" not in open("/proc/self/environ", "rb").read()
assert os.environ["DATA_DIR"] == "/candidate/data" and os.listdir("/candidate/data") == ["train.csv"]
assert os.getuid() == 1000 and os.getgroups() in ([], [1000], [65534]), os.getgroups()
for bad in (lambda: open("/usr/x", "w"), lambda: open("/candidate/data/x", "w"), lambda: open("/x", "w"), lambda: os.kill(1, 9)):
    try:
        bad()
    except OSError:
        pass
    else:
        raise SystemExit("an attack worked")
print("ok")
"#;
    let outcome = run(&native, &bench, code).await;
    assert_eq!(outcome.end, JobEnd::Exited { code: 0 }, "{}", outcome.stderr.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn libraries_of_a_warm_job_use_its_cpus_only() {
    let bench = Bench::new();
    let mut options = bench.options().with_warm_pool();
    options.warm_cpus = 1;
    let native = NativeExecutor::new(options).unwrap();
    let code =
        "import sklearn, threadpoolctl; print({pool['num_threads'] for pool in threadpoolctl.threadpool_info()})";
    assert_eq!(run(&native, &bench, code).await.stdout.text(), "{1}\n");
    bench.finish(native);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_used_up_zygote_is_replaced() {
    let bench = Bench::new();
    let mut options = bench.options().with_warm_pool();
    options.zygote_jobs = 1;
    options.preload = Some(vec!["json".to_owned()]);
    options.warm_standby = 0;
    let native = NativeExecutor::new(options).unwrap();
    for _ in 0..3 {
        assert_eq!(run(&native, &bench, "print(1)").await.stdout.text(), "1\n");
    }
    bench.finish(native);
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_look_like_those_of_an_interpreter() {
    let bench = Bench::new();
    let mut options = bench.options().with_warm_pool();
    options.preload = Some(vec!["json".to_owned()]);
    let native = NativeExecutor::new(options).unwrap();
    let cold = bench.native();
    for code in [
        "import sys; sys.exit(3)",
        "import sys; sys.exit('reason')",
        "raise ValueError('x')",
        "def f():\n    g()\ndef g():\n    raise KeyError('y')\nf()",
        "import os; os.kill(os.getpid(), 9)",
        "import os; os._exit(137)",
        "x = = 1",
        "import atexit; atexit.register(print, 'bye'); print('hello', end='')",
        "import threading, time; threading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()",
        "print('no newline', end='')",
        "import sys; print(sys.stdin.read() == '')",
    ] {
        let warm = run(&native, &bench, code).await;
        let cold = cold.run(bench.job(code, small_limits()), &token()).await.unwrap();
        assert_eq!(warm.end, cold.end, "{code}");
        assert_eq!(warm.stdout.text(), cold.stdout.text(), "{code}");
        assert_eq!(warm.stderr.text(), cold.stderr.text(), "{code}");
    }
}
