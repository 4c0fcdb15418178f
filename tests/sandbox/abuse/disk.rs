//! Group D, disks: the scratch directory is bounded, and it is gone afterwards, whatever a program put there.

use clade::sandbox::{Cause, JobEnd, Limits};

use super::attempts::run;
use super::resources::{Excess, check};
use super::rows::{Column, NOT_TRIED, Rows};
use crate::sandbox::support::{Bench, small_limits};

const fn fill(attack: &'static str, kind: &'static str, end: &'static str, is_safe: bool) -> Excess {
    Excess {
        case: "D20",
        attack,
        program: "disk.py",
        kind,
        limits: |limits| limits,
        end,
        is_safe,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d20_the_scratch_directory_is_bounded() {
    let list = [
        fill("one big file", "one_file", "stopped: file size", false),
        fill("one big file that is a hole", "sparse", "stopped: file size", true),
        fill("many big files", "many_files", "stopped: disk", false),
        fill("space that is only reserved", "quick", "stopped: disk", true),
        fill("very many empty files", "inodes", "stopped: disk", false),
        fill(
            "files that are deleted and still open",
            "deleted",
            "stopped: disk",
            false,
        ),
    ];
    check(&list, |excess, outcome| {
        if excess.end == "stopped: disk" {
            assert_eq!(outcome.cause, Cause::DiskLimit);
            let detail = outcome.detail.as_deref().unwrap_or_default();
            assert_eq!(detail.contains("files"), excess.kind == "inodes", "{detail}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d23_directories_of_any_depth_are_removed() {
    let bench = Bench::new();
    let mut rows = Rows::default();
    let (deep, locked) = ("endlessly deep directories", "directories without permissions");
    rows.see(Column::Without, "D23", deep, NOT_TRIED);
    let outcome = run(
        &bench.process(),
        &bench,
        "disk.py",
        &[("KIND", "locked")],
        small_limits(),
    )
    .await;
    assert_eq!(outcome.state, None, "{:?}", outcome.detail);
    rows.see(Column::Without, "D23", locked, "removed");
    for backend in bench.isolating() {
        let limits = Limits {
            scratch_files: 1500,
            ..small_limits()
        };
        let outcome = run(&*backend, &bench, "disk.py", &[("KIND", "deep")], limits.clone()).await;
        // On a busy machine the wall time may come first; either way the tree must go.
        let is_stopped = matches!(outcome.end, JobEnd::DiskLimit(_) | JobEnd::WallLimit);
        assert!(is_stopped, "{:?} {}", outcome.end, outcome.stderr.text());
        let outcome = run(&*backend, &bench, "disk.py", &[("KIND", "locked")], limits).await;
        assert_eq!(outcome.state, None, "{:?}", outcome.detail);
        let column = Column::of(backend.name());
        // This looks for anything that is left of the two.
        bench.finish(backend);
        rows.see(column, "D23", deep, "removed");
        rows.see(column, "D23", locked, "removed");
    }
    rows.check();
}
