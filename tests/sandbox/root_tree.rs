//! Jails that show a root tree in the place of the machine's files. The tree is that of the image of the docker executor.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use clade::sandbox::{Executor, Limits, NativeExecutor};

use super::support::{Bench, expect_success, has_docker, token};

/// Writes the files of the image into a folder.
fn export_image(into: &Path) {
    let output = |command: &mut Command| {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let container = output(Command::new("docker").args(["create", "clade-sandbox", "true"]));
    let mut export = Command::new("docker")
        .args(["export", &container])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let tar = export.stdout.take().unwrap();
    let unpacked = Command::new("tar").arg("-x").arg("-C").arg(into).stdin(tar).status();
    let exported = export.wait();
    output(Command::new("docker").args(["rm", "--force", &container]));
    assert!(unpacked.unwrap().success() && exported.unwrap().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_see_the_files_of_the_tree_and_none_of_the_machine() {
    if !has_docker() {
        return;
    }
    let bench = Bench::new();
    let tree = tempfile::Builder::new().prefix("clade-tree-").tempdir().unwrap();
    export_image(tree.path());
    std::fs::write(tree.path().join("usr/share/of-the-tree"), "here").unwrap();
    let mut options = bench.options().with_warm_pool();
    options.rootfs = Some(tree.path().to_owned());
    options.python = "/opt/venv/bin/python3".into();
    let native = NativeExecutor::new(options).unwrap();
    let outside = bench.root.path().display();
    let code = format!(
        "import os, sys, sklearn\n\
         assert sys.executable == '/opt/venv/bin/python3', sys.executable\n\
         assert sklearn.__file__.startswith('/opt/venv/'), sklearn.__file__\n\
         assert open('/usr/share/of-the-tree').read() == 'here'\n\
         assert not os.path.exists({:?}), 'the machine is seen'\n\
         assert not os.path.exists('/root') and not os.path.exists('/home')\n\
         try:\n    open('/usr/share/of-the-tree', 'w')\nexcept OSError:\n    pass\nelse:\n    raise SystemExit('written')\n\
         open('submission.csv', 'w').write(os.listdir(os.environ['DATA_DIR'])[0])\n",
        format!("{outside}")
    );
    for warm in [false, true] {
        let limits = Limits {
            wall: Duration::from_secs(120),
            ..Limits::default()
        };
        let mut job = bench.job(&code, limits);
        job.warm = warm;
        let outcome = native.run(job, &token()).await.unwrap();
        expect_success(&format!("warm: {warm}"), &outcome);
        assert_eq!(outcome.warm, warm);
        let submission = std::fs::read_to_string(outcome.submission.unwrap().path).unwrap();
        assert_eq!(submission, "train.csv");
    }
    bench.finish(native);
}
