//! What a killed process may leave: processes, mounts, control groups, temporary files.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Processes that mention a path in their arguments, environment, working folder or mounts.
pub fn processes(path: &Path) -> Vec<String> {
    let wanted = path.to_string_lossy().into_owned();
    let own = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let pid = entry.file_name().to_string_lossy().into_owned();
        if pid == own || !pid.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let text = |name: &str| {
            let bytes = std::fs::read(entry.path().join(name)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).replace('\0', " ")
        };
        let folder = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        let mentions = folder.starts_with(path)
            || ["cmdline", "environ", "mountinfo"]
                .iter()
                .any(|name| text(name).contains(&wanted));
        // A zombie has no memory and no mounts any more: it is its parent's, not ours.
        if mentions {
            found.push(format!("{pid} {}", text("cmdline")));
        }
    }
    found
}

/// Mounts of this process's namespace below a path.
pub fn mounts(path: &Path) -> Vec<String> {
    let wanted = path.to_string_lossy().into_owned();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    mounts
        .lines()
        .filter(|line| line.contains(&wanted))
        .map(str::to_owned)
        .collect()
}

/// Control groups of the sandboxes of some processes.
pub fn control_groups(pids: &[u32]) -> Vec<PathBuf> {
    let names: Vec<String> = pids.iter().map(|pid| format!("clade-{pid}-")).collect();
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let name = entry.file_name().to_string_lossy().into_owned();
                if names.iter().any(|wanted| name.starts_with(wanted.as_str())) {
                    found.push(entry.path());
                }
                folders.push(entry.path());
            }
        }
    }
    found
}

/// Files and folders below a folder.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found
}

/// Waits until there is nothing of a kind, for some seconds at most.
#[track_caller]
pub fn wait_for_none<T: std::fmt::Debug>(what: &str, find: impl Fn() -> Vec<T>) {
    let end = Instant::now() + Duration::from_secs(15);
    let mut found = find();
    while !found.is_empty() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(100));
        found = find();
    }
    assert!(found.is_empty(), "{what} are left: {found:#?}");
}
