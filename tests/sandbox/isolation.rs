//! The back end in the hands of root and of an ordinary user.

use std::process::Command;

use clade::sandbox::{Executor, JobEnd, NativeExecutor, SandboxError};

use super::support::{Bench, expect_success, program, small_limits, token};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_root_can_keep_its_data_to_itself() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    for (path, mode) in [(bench.data.join("train.csv"), 0o600), (bench.data.clone(), 0o700)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let native = bench.native();
    let code = "import os; print(open(os.environ['DATA_DIR'] + '/train.csv').read())";
    let outcome = native.run(bench.job(code, small_limits()), &token()).await.unwrap();
    assert_eq!(outcome.end, JobEnd::Exited { code: 0 }, "{}", outcome.stderr.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_must_not_lie_among_the_visible_files() {
    let bench = Bench::new();
    let mut options = bench.options();
    options.visible = vec![bench.root.path().to_owned()];
    options.hidden = vec![bench.root.path().join("store")];
    let error = NativeExecutor::new(options).unwrap_err();
    assert!(
        matches!(error, SandboxError::Config(_)) && error.to_string().contains("store"),
        "{error}"
    );
}

/// Programs that an ordinary user's jail must hold as well. Runs in a process of that user.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by another test under another user"]
async fn inner_ordinary_user() {
    let bench = Bench::new();
    let mut options = bench.options().with_warm_pool();
    options.preload = Some(vec!["json".to_owned()]);
    let native = NativeExecutor::new(options).unwrap();
    // Leaves keys of this user in the kernel, whose names are in sight where nothing hides them.
    let process = bench.process();
    for name in ["kernel.py", "masked.py"] {
        let outcome = process
            .run(bench.job(&program(name), small_limits()), &token())
            .await
            .unwrap();
        expect_success(name, &outcome);
        let text = outcome.stdout.text();
        assert!(
            name != "masked.py" || text.contains("/proc/keys"),
            "the keys prove nothing: {text}"
        );
    }
    drop(process);
    for warm in [false, true] {
        for name in ["kernel.py", "outside.py", "privileges.py", "masked.py", "meeting.py"] {
            let mut job = bench.job(&program(name), small_limits());
            job.env.insert("JAILED".to_owned(), "1".to_owned());
            job.env.insert("BACKEND".to_owned(), "native".to_owned());
            let outside = bench.out.display().to_string();
            let meeting = [("CASE", "G38"), ("GROUP", "users"), ("NAME", "a"), ("PAUSE", "0")];
            let variables = meeting.into_iter().chain([("OUTSIDE", outside.as_str())]);
            job.env
                .extend(variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
            job.warm = warm;
            let outcome = native.run(job, &token()).await.unwrap();
            assert_eq!(outcome.warm, warm);
            let text = outcome.stdout.text();
            expect_success(name, &outcome);
            assert!(!text.contains("BREACH") && text.contains("held"), "{name}:\n{text}");
        }
    }
    for (name, end) in [
        ("memory_children.py", JobEnd::MemoryLimit),
        ("fork_bomb.py", JobEnd::WallLimit),
    ] {
        let mut limits = small_limits();
        (limits.memory_bytes, limits.wall) = (512 << 20, std::time::Duration::from_secs(5));
        let outcome = native.run(bench.job(&program(name), limits), &token()).await.unwrap();
        assert_eq!(outcome.end, end, "{name}: {}", outcome.stderr.text());
    }
    let outcome = native
        .run(
            bench.job("open('submission.csv', 'w').write('x')", small_limits()),
            &token(),
        )
        .await
        .unwrap();
    assert_eq!(outcome.submission.map(|s| s.bytes), Some(1));
    let mut job = bench.job(&program("disk.py"), small_limits());
    job.env.insert("KIND".to_owned(), "locked".to_owned());
    let outcome = native.run(job, &token()).await.unwrap();
    assert_eq!(outcome.state, None, "{:?}", outcome.detail);
    bench.finish(native);
}

/// Only root can become somebody else; where the tests run as an ordinary user, all of them are this test.
#[test]
fn an_ordinary_user_gets_the_same_layers() {
    use std::os::unix::process::CommandExt;
    let python = std::path::Path::new("/usr/bin/python3");
    if !rustix::process::geteuid().is_root() || !python.exists() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(place.path(), Some(1001), Some(1001)).unwrap();
    // The build directory may be closed to others.
    let (test, helper) = (place.path().join("test"), place.path().join("helper"));
    std::fs::copy(std::env::current_exe().unwrap(), &test).unwrap();
    std::fs::copy(super::support::helper(), &helper).unwrap();
    let output = Command::new(&test)
        .args([
            "--exact",
            "sandbox::isolation::inner_ordinary_user",
            "--ignored",
            "--nocapture",
        ])
        .env("CLADE_PYTHON", python)
        .env("CLADE_TEST_HELPER", &helper)
        .env("TMPDIR", place.path())
        // Whoever may use the engine is as good as root.
        .env("CLADE_SKIP_DOCKER", "1")
        .current_dir("/")
        .uid(1001)
        .gid(1001)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn data_that_a_container_could_not_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    let Some(docker) = bench.docker() else { return };
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let data = bench.data.join("train.csv");
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o600)).unwrap();
    let error = docker
        .run(bench.job("print(1)", small_limits()), &token())
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("train.csv") && error.contains("chmod"), "{error}");
    bench.finish(docker);
}
