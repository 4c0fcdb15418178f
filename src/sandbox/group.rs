//! What control groups tell of the processes in them.

use std::fs;
use std::path::{Path, PathBuf};

/// Where control groups are mounted.
pub(crate) const MOUNTS: &str = "/sys/fs/cgroup";

/// The group of a process that somebody else has put there, such as a container engine.
#[derive(Debug)]
pub(crate) struct ForeignGroup {
    is_v2: bool,
    memory: Option<PathBuf>,
    cpu: Option<PathBuf>,
}

impl ForeignGroup {
    /// The group of a process; knows nothing where this machine does not show it.
    pub(crate) fn of_process(pid: i32) -> Self {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let v1 = |controller: &str| {
            let path = Path::new(MOUNTS).join(controller).join(group_of(&text, controller)?);
            path.is_dir().then_some(path)
        };
        let unified = || {
            let group = text.lines().find_map(|line| line.strip_prefix("0::"))?;
            let path = Path::new(MOUNTS).join(group.trim_start_matches('/'));
            path.join("memory.events").is_file().then_some(path)
        };
        match v1("memory") {
            Some(memory) => Self {
                is_v2: false,
                memory: Some(memory),
                cpu: v1("cpuacct"),
            },
            None => Self {
                is_v2: true,
                memory: unified(),
                cpu: unified(),
            },
        }
    }

    /// How often the kernel killed for memory in this group.
    pub(crate) fn oom_kills(&self) -> u64 {
        self.memory.as_ref().map_or(0, |path| oom_kills(path, self.is_v2))
    }

    /// CPU seconds used in this group.
    pub(crate) fn cpu_seconds(&self) -> Option<f64> {
        cpu_seconds(self.cpu.as_ref()?, self.is_v2)
    }
}

/// How often the kernel killed for memory in a group with the memory controller.
pub(crate) fn oom_kills(path: &Path, is_v2: bool) -> u64 {
    let file = if is_v2 { "memory.events" } else { "memory.oom_control" };
    read_field(&path.join(file), "oom_kill").unwrap_or(0)
}

/// CPU seconds used in a group with the controller that counts them.
pub(crate) fn cpu_seconds(path: &Path, is_v2: bool) -> Option<f64> {
    if is_v2 {
        return read_field(&path.join("cpu.stat"), "usage_usec").map(|micros| micros as f64 / 1e6);
    }
    let nanos: u64 = fs::read_to_string(path.join("cpuacct.usage"))
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(nanos as f64 / 1e9)
}

/// Group of a v1 controller, relative to its mount, in the text of `/proc/PID/cgroup`.
pub(crate) fn group_of<'a>(text: &'a str, controller: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (names, group) = (fields.next()?, fields.next()?);
        names
            .split(',')
            .any(|name| name == controller)
            .then(|| group.trim_start_matches('/'))
    })
}

fn read_field(path: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_by_controller() {
        let text = "4:memory:/docker/1\n3:cpu,cpuacct:/\n0::/user.slice\n";
        assert_eq!(group_of(text, "memory"), Some("docker/1"));
        assert_eq!(group_of(text, "cpuacct"), Some(""));
        assert_eq!(group_of(text, "freezer"), None);
    }
}
