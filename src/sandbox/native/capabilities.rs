//! Finds out what the machine offers, and says it.

use std::collections::BTreeMap;
use std::fs;

use super::cgroup::CgroupTree;
use super::launcher::Context;
use super::protocol::LauncherConfig;
use super::sys;
use crate::sandbox::report::{Capability, CapabilityReport, Layer};

/// Name of the back end.
pub(super) const BACKEND: &str = "native";

/// Facts that are read before anything is changed.
pub(super) struct Facts {
    user_namespaces: Option<u64>,
    apparmor_restricts: bool,
    clone_restricted: bool,
    landlock: i64,
    seccomp: bool,
    kernel: String,
    strict: bool,
    warm_pool: bool,
}

impl Facts {
    /// Reads them.
    pub(super) fn of(config: &LauncherConfig) -> Self {
        let number = |path: &str| {
            fs::read_to_string(path)
                .ok()
                .and_then(|text| text.trim().parse::<u64>().ok())
        };
        Self {
            user_namespaces: number("/proc/sys/user/max_user_namespaces"),
            apparmor_restricts: number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == Some(1),
            clone_restricted: number("/proc/sys/kernel/unprivileged_userns_clone") == Some(0),
            landlock: sys::landlock_version(),
            seccomp: fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail")
                .is_ok_and(|text| text.contains("errno")),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            strict: config.strict,
            warm_pool: config.preload.is_some(),
        }
    }

    /// Puts facts, the prepared context and the trial jail's failure together.
    pub(super) fn report(&self, context: Option<&Context>, failure: Option<&str>) -> CapabilityReport {
        let mut layers = BTreeMap::new();
        let namespaces = self.namespaces(failure);
        let stands = failure.is_none();
        layers.insert(Layer::Namespaces, namespaces);
        layers.insert(
            Layer::Filesystem,
            entry(
                stands,
                None,
                "a new root of read-only mounts",
                failure.map(str::to_owned),
            ),
        );
        layers.insert(
            Layer::Privileges,
            entry(stands, None, "no capabilities, no_new_privs", None),
        );
        layers.insert(Layer::Rlimits, entry(true, None, "setrlimit", None));
        let landlock_advice = "boot a kernel with Landlock (CONFIG_SECURITY_LANDLOCK, lsm=landlock,…)";
        layers.insert(
            Layer::Landlock,
            entry(
                self.landlock > 0,
                Some(format!("ABI {}", self.landlock)),
                "Landlock ruleset",
                (self.landlock == 0).then(|| landlock_advice.to_owned()),
            ),
        );
        let seccomp_advice = "use a kernel with CONFIG_SECCOMP_FILTER";
        layers.insert(
            Layer::Seccomp,
            entry(
                self.seccomp,
                None,
                "deny list of system calls",
                (!self.seccomp).then(|| seccomp_advice.to_owned()),
            ),
        );
        self.limits(context, &mut layers);
        let missing = Layer::REQUIRED
            .iter()
            .any(|layer| layers.get(layer).is_none_or(|c| !c.available));
        let usable = stands && context.is_some() && (!self.strict || !missing);
        let enforced = if self.warm_pool {
            "a zygote forks children into jails"
        } else {
            "switched off"
        };
        let warm = entry(usable && self.warm_pool, None, enforced, None);
        layers.insert(Layer::WarmPool, warm);
        CapabilityReport {
            backend: BACKEND.to_owned(),
            usable,
            summary: None,
            layers,
        }
    }

    fn namespaces(&self, failure: Option<&str>) -> Capability {
        let Some(failure) = failure else {
            return entry(
                true,
                Some(self.kernel.clone()),
                "user, pid, mount, net, ipc, uts and cgroup namespaces",
                None,
            );
        };
        let advice = if self.user_namespaces == Some(0) {
            "set user.max_user_namespaces above 0 (sysctl)".to_owned()
        } else if self.apparmor_restricts {
            "AppArmor restricts user namespaces: set kernel.apparmor_restrict_unprivileged_userns=0 or give clade a \
             profile that allows userns"
                .to_owned()
        } else if self.clone_restricted {
            "set kernel.unprivileged_userns_clone=1 (sysctl)".to_owned()
        } else {
            "in a container, run it with a seccomp profile that allows unshare, mount and clone3, or start clade \
             outside of it"
                .to_owned()
        };
        entry(false, Some(self.kernel.clone()), failure, Some(advice))
    }

    fn limits(&self, context: Option<&Context>, layers: &mut BTreeMap<Layer, Capability>) {
        let tree = context.and_then(|context| context.cgroups.as_ref());
        let reason = context.and_then(|context| context.no_cgroups.clone());
        let mut limit = |layer, controller: &str, otherwise: &str| {
            let group = tree.filter(|tree| tree.has(controller));
            let version = group.map(|tree| CgroupTree::version(tree).to_owned());
            let enforced = if group.is_some() { "control group" } else { otherwise };
            let advice = group.is_none().then(|| {
                let reason = reason.clone().unwrap_or_else(|| format!("no {controller} controller"));
                format!("{reason}; a delegated control group makes this limit exact")
            });
            layers.insert(layer, entry(true, version, enforced, advice));
        };
        limit(
            Layer::Memory,
            "memory",
            "RLIMIT_DATA for each process, polling for the tree",
        );
        limit(Layer::Processes, "pids", "RLIMIT_NPROC in the job's own user namespace");
        limit(Layer::Cpus, "cpu", "CPU affinity");
        layers.insert(
            Layer::Disk,
            entry(
                true,
                None,
                "RLIMIT_FSIZE for each file, polling for the directory",
                None,
            ),
        );
    }
}

fn entry(available: bool, version: Option<String>, enforced_by: &str, advice: Option<String>) -> Capability {
    Capability {
        available,
        version,
        enforced_by: enforced_by.to_owned(),
        advice,
    }
}
