//! Control groups, where this machine lets us have some.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::cgroup_removal::remove_group;
use crate::sandbox::group::{self, MOUNTS};
use crate::sandbox::job::Limits;

const PERIOD_MICROS: u64 = 100_000;
/// Start of the names of our groups.
const PREFIX: &str = "clade-";

/// Where an executor instance may make groups.
#[derive(Debug)]
pub(super) enum CgroupTree {
    /// One directory in each controller's own tree.
    V1 {
        /// For the memory limit.
        memory: Option<PathBuf>,
        /// For the number of processes.
        pids: Option<PathBuf>,
        /// For the CPU share.
        cpu: Option<PathBuf>,
        /// For the CPU time.
        cpuacct: Option<PathBuf>,
    },
    /// One directory, with the controllers it has.
    V2 {
        /// The directory.
        path: PathBuf,
        /// Names of its controllers.
        controllers: Vec<String>,
    },
}

/// The group of one job; dropping it removes it.
#[derive(Debug)]
pub(super) struct Cgroup {
    v2: bool,
    memory: Option<PathBuf>,
    pids: Option<PathBuf>,
    cpu: Option<PathBuf>,
    cpuacct: Option<PathBuf>,
}

impl CgroupTree {
    /// Finds where groups can be made and makes the instance's own, or says why there is none.
    pub(super) fn open(instance: &str) -> Result<Self, String> {
        let own = fs::read_to_string("/proc/self/cgroup").map_err(|e| format!("/proc/self/cgroup: {e}"))?;
        let v1 = |controller: &str| {
            let parent = parent_group(&own, controller)?;
            let path = parent.join(format!("{PREFIX}{instance}"));
            make_group(&path).ok().map(|()| path)
        };
        if own.lines().any(|line| {
            line.split(':')
                .nth(1)
                .is_some_and(|names| names.split(',').any(|n| n == "memory"))
        }) {
            let (memory, pids, cpu, cpuacct) = (v1("memory"), v1("pids"), v1("cpu"), v1("cpuacct"));
            return match (&memory, &pids) {
                (None, None) => Err("control groups (v1) are not writable for this user".to_owned()),
                _ => Ok(Self::V1 {
                    memory,
                    pids,
                    cpu,
                    cpuacct,
                }),
            };
        }
        Self::open_v2(&own, instance)
    }

    fn open_v2(own: &str, instance: &str) -> Result<Self, String> {
        let group = own
            .lines()
            .find_map(|line| line.strip_prefix("0::"))
            .ok_or("there are no control groups")?;
        let candidates = [
            Path::new(MOUNTS).join(group.trim_start_matches('/')),
            PathBuf::from(MOUNTS),
        ];
        let mut reason = "control groups (v2) are not delegated to this user".to_owned();
        for parent in candidates {
            let wanted = ["memory", "pids", "cpu"];
            let offered = fs::read_to_string(parent.join("cgroup.controllers")).unwrap_or_default();
            let wanted: Vec<&str> = wanted
                .into_iter()
                .filter(|c| offered.split_whitespace().any(|o| o == *c))
                .collect();
            if wanted.is_empty() {
                continue;
            }
            let enable: Vec<String> = wanted.iter().map(|c| format!("+{c}")).collect();
            if let Err(e) = fs::write(parent.join("cgroup.subtree_control"), enable.join(" ")) {
                reason = format!("control groups (v2) cannot be used below {}: {e}", parent.display());
                continue;
            }
            let path = parent.join(format!("{PREFIX}{instance}"));
            match make_group(&path).and_then(|()| fs::write(path.join("cgroup.subtree_control"), enable.join(" "))) {
                Ok(()) => {
                    let controllers = wanted.into_iter().map(str::to_owned).collect();
                    return Ok(Self::V2 { path, controllers });
                }
                Err(e) => reason = format!("cannot make a control group below {}: {e}", parent.display()),
            }
        }
        Err(reason)
    }

    /// `v1` or `v2`.
    pub(super) fn version(&self) -> &'static str {
        match self {
            Self::V1 { .. } => "v1",
            Self::V2 { .. } => "v2",
        }
    }

    /// The controller can limit jobs.
    pub(super) fn has(&self, controller: &str) -> bool {
        match self {
            Self::V1 { memory, pids, cpu, .. } => match controller {
                "memory" => memory.is_some(),
                "pids" => pids.is_some(),
                "cpu" => cpu.is_some(),
                _ => false,
            },
            Self::V2 { controllers, .. } => controllers.iter().any(|c| c == controller),
        }
    }

    /// Makes the group of one job.
    pub(super) fn create(&self, name: &str) -> io::Result<Cgroup> {
        let below = |parent: &Option<PathBuf>| -> io::Result<Option<PathBuf>> {
            let Some(parent) = parent else { return Ok(None) };
            let path = parent.join(name);
            make_group(&path)?;
            Ok(Some(path))
        };
        Ok(match self {
            Self::V1 {
                memory,
                pids,
                cpu,
                cpuacct,
            } => {
                let mut group = Cgroup {
                    v2: false,
                    memory: None,
                    pids: None,
                    cpu: None,
                    cpuacct: None,
                };
                // Field by field, so that a failure removes what is there.
                group.memory = below(memory)?;
                group.pids = below(pids)?;
                group.cpu = below(cpu)?;
                group.cpuacct = below(cpuacct)?;
                group
            }
            Self::V2 { path, .. } => {
                let path = path.join(name);
                make_group(&path)?;
                let with = |controller| self.has(controller).then(|| path.clone());
                let (memory, pids, cpu) = (with("memory"), with("pids"), with("cpu"));
                Cgroup {
                    v2: true,
                    memory,
                    pids,
                    cpu,
                    cpuacct: Some(path),
                }
            }
        })
    }

    /// Removes the instance's own groups.
    pub(super) fn remove(&self) {
        let paths: Vec<&PathBuf> = match self {
            Self::V1 {
                memory,
                pids,
                cpu,
                cpuacct,
            } => [memory, pids, cpu, cpuacct].into_iter().flatten().collect(),
            Self::V2 { path, .. } => vec![path],
        };
        paths.into_iter().for_each(|path| remove_group(path));
    }
}

impl Cgroup {
    /// Moves a process into the group.
    pub(super) fn add(&self, pid: i32) -> io::Result<()> {
        let mut paths: Vec<&PathBuf> = [&self.memory, &self.pids, &self.cpu, &self.cpuacct]
            .into_iter()
            .flatten()
            .collect();
        paths.dedup();
        paths
            .into_iter()
            .try_for_each(|path| fs::write(path.join("cgroup.procs"), pid.to_string()))
    }

    /// Sets the limits of a job.
    pub(super) fn limit(&self, limits: &Limits) -> io::Result<()> {
        // Init and the waiter count too.
        let processes = limits.processes + 4;
        if let Some(path) = &self.memory {
            if self.v2 {
                fs::write(path.join("memory.max"), limits.memory_bytes.to_string())?;
                let _ = fs::write(path.join("memory.swap.max"), "0");
                let _ = fs::write(path.join("memory.oom.group"), "1");
            } else {
                fs::write(path.join("memory.limit_in_bytes"), limits.memory_bytes.to_string())?;
                let _ = fs::write(
                    path.join("memory.memsw.limit_in_bytes"),
                    limits.memory_bytes.to_string(),
                );
            }
        }
        if let Some(path) = &self.pids {
            fs::write(path.join("pids.max"), processes.to_string())?;
        }
        if let Some(path) = self.cpu.as_ref().filter(|_| limits.cpus > 0) {
            let quota = u64::from(limits.cpus) * PERIOD_MICROS;
            if self.v2 {
                fs::write(path.join("cpu.max"), format!("{quota} {PERIOD_MICROS}"))?;
            } else {
                fs::write(path.join("cpu.cfs_period_us"), PERIOD_MICROS.to_string())?;
                fs::write(path.join("cpu.cfs_quota_us"), quota.to_string())?;
            }
        }
        Ok(())
    }

    /// The group can limit the CPU share.
    pub(super) fn limits_cpus(&self) -> bool {
        self.cpu.is_some()
    }

    /// The group can limit the memory.
    pub(super) fn limits_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// The group can limit the number of processes.
    pub(super) fn limits_processes(&self) -> bool {
        self.pids.is_some()
    }

    /// How often the kernel killed for memory in this group.
    pub(super) fn oom_kills(&self) -> u64 {
        self.memory.as_ref().map_or(0, |path| group::oom_kills(path, self.v2))
    }

    /// CPU seconds used in this group.
    pub(super) fn cpu_seconds(&self) -> Option<f64> {
        group::cpu_seconds(self.cpuacct.as_ref()?, self.v2)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for path in [&self.memory, &self.pids, &self.cpu, &self.cpuacct]
            .into_iter()
            .flatten()
        {
            remove_group(path);
        }
    }
}

fn make_group(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
        _ => Ok(()),
    }
}

/// Directory of this process's group in the tree of a v1 controller.
fn parent_group(own: &str, controller: &str) -> Option<PathBuf> {
    let path = Path::new(MOUNTS)
        .join(controller)
        .join(group::group_of(own, controller)?);
    // In a container the path of the host may not exist: the root shown there is then the container's own group.
    Some(if path.is_dir() {
        path
    } else {
        Path::new(MOUNTS).join(controller)
    })
}

/// Groups below which instances may have made theirs.
fn parents() -> Vec<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut parents: Vec<PathBuf> = ["memory", "pids", "cpu", "cpuacct"]
        .into_iter()
        .filter_map(|c| parent_group(&own, c))
        .collect();
    if let Some(group) = own.lines().find_map(|line| line.strip_prefix("0::")) {
        parents.push(Path::new(MOUNTS).join(group.trim_start_matches('/')));
        parents.push(PathBuf::from(MOUNTS));
    }
    parents
}

/// Removes the groups of an instance whose launcher is dead.
pub(super) fn remove_instance(instance: &str) {
    for parent in parents() {
        remove_group(&parent.join(format!("{PREFIX}{instance}")));
    }
}

/// Removes the groups of instances that are dead.
pub(super) fn sweep(is_alive: impl Fn(&str) -> bool) {
    for entry in parents()
        .iter()
        .filter_map(|parent| fs::read_dir(parent).ok())
        .flatten()
        .flatten()
    {
        let name = entry.file_name();
        if let Some(instance) = name.to_str().and_then(|name| name.strip_prefix(PREFIX))
            && !is_alive(instance)
        {
            remove_group(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_group_is_found_per_controller() {
        let own = "4:memory:/nowhere/at/all\n3:cpu,cpuacct:/\n0::/user.slice\n";
        assert_eq!(
            parent_group(own, "memory"),
            Some(PathBuf::from("/sys/fs/cgroup/memory"))
        );
        assert_eq!(parent_group(own, "freezer"), None);
        assert!(parent_group(own, "cpuacct").is_some());
    }
}
