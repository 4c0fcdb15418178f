//! The container of a program: everything that the engine is told before it starts.

use std::collections::HashMap;
use std::path::Path;

use bollard::models::{
    ContainerCreateBody, DeviceRequest, HostConfig, HostConfigLogConfig, Mount, MountType, ResourcesUlimits,
};

use super::options::{DockerOptions, Gpus};
use crate::sandbox::job::Limits;
use crate::sandbox::launch::SCRATCH;

/// Label with the name of the executor that made a container.
pub(super) const INSTANCE_LABEL: &str = "org.clade.instance";
/// Label with the directory below which that executor works.
pub(super) const BASE_LABEL: &str = "org.clade.scratch";
/// Label with the user of that executor.
pub(super) const USER_LABEL: &str = "org.clade.user";
/// Where a container finds what to run.
pub(super) const CONTROL: &str = "/clade";
/// Most open files of one process.
const OPEN_FILES: i64 = 4096;
/// Seconds between the soft and the hard limit of CPU time.
const CPU_GRACE_SECONDS: i64 = 2;
/// Processes that are not the program's: the engine's init.
const OWN_PROCESSES: u64 = 1;

/// What makes two containers interchangeable before their jobs are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kind {
    /// Host paths with their places, read-only.
    pub(super) inputs: Vec<(String, String)>,
    /// Limits.
    pub(super) limits: Limits,
}

/// Describes a container of a kind whose directories exist.
pub(super) fn describe(
    options: &DockerOptions,
    kind: &Kind,
    labels: HashMap<String, String>,
    user: String,
    control: &Path,
    scratch: &Path,
) -> ContainerCreateBody {
    let limits = &kind.limits;
    let mut mounts: Vec<Mount> = kind
        .inputs
        .iter()
        .map(|(source, target)| bind(source, target, true))
        .collect();
    mounts.push(bind(&control.to_string_lossy(), CONTROL, true));
    mounts.push(bind(&scratch.to_string_lossy(), SCRATCH, false));
    let temporary = (limits.memory_bytes / 2).max(1 << 20);
    let inodes = limits.scratch_files.min(65_536);
    // Libraries that compile put their code into /tmp, and run it.
    let tmpfs = format!("rw,exec,nosuid,nodev,size={temporary},nr_inodes={inodes},mode=1777");
    ContainerCreateBody {
        image: Some(options.image.clone()),
        user: Some(user),
        entrypoint: Some(vec![options.python.clone()]),
        cmd: Some(vec!["-I".to_owned(), "-S".to_owned(), format!("{CONTROL}/start.py")]),
        // Nothing of the image's environment reaches the program: the start script replaces it.
        working_dir: Some(SCRATCH.to_owned()),
        hostname: Some("sandbox".to_owned()),
        network_disabled: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        tty: Some(false),
        labels: Some(labels),
        host_config: Some(HostConfig {
            network_mode: Some("none".to_owned()),
            readonly_rootfs: Some(true),
            cap_drop: Some(vec!["ALL".to_owned()]),
            security_opt: Some(vec!["no-new-privileges".to_owned()]),
            pids_limit: Some(signed(limits.processes + OWN_PROCESSES)),
            memory: Some(signed(limits.memory_bytes)),
            // Equal to the memory: no swap.
            memory_swap: Some(signed(limits.memory_bytes)),
            nano_cpus: (limits.cpus > 0).then(|| i64::from(limits.cpus) * 1_000_000_000),
            tmpfs: Some([("/tmp".to_owned(), tmpfs)].into()),
            shm_size: Some(signed(temporary)),
            ipc_mode: Some("private".to_owned()),
            // A program that is process 1 does not hear SIGTERM, and nobody would reap its orphans.
            init: Some(true),
            oom_score_adj: Some(500),
            ulimits: Some(ulimits(limits)),
            // What a program prints comes by attaching; a log file of the engine would grow without bound.
            log_config: Some(HostConfigLogConfig {
                typ: Some("none".to_owned()),
                config: None,
            }),
            auto_remove: Some(false),
            mounts: Some(mounts),
            runtime: options.runtime.clone(),
            device_requests: device_requests(options.gpus),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    }
}

fn bind(source: &str, target: &str, read_only: bool) -> Mount {
    Mount {
        typ: Some(MountType::BIND),
        source: Some(source.to_owned()),
        target: Some(target.to_owned()),
        read_only: Some(read_only),
        ..Mount::default()
    }
}

fn ulimits(limits: &Limits) -> Vec<ResourcesUlimits> {
    let limit = |name: &str, soft: i64, hard: i64| ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(soft),
        hard: Some(hard),
    };
    let file = signed(limits.file_bytes);
    let mut list = vec![
        limit("core", 0, 0),
        limit("fsize", file, file),
        limit("nofile", 1024, OPEN_FILES),
    ];
    if let Some(seconds) = limits.cpu_seconds {
        list.push(limit(
            "cpu",
            signed(seconds),
            signed(seconds).saturating_add(CPU_GRACE_SECONDS),
        ));
    }
    list
}

fn device_requests(gpus: Gpus) -> Option<Vec<DeviceRequest>> {
    let count = match gpus {
        Gpus::None => return None,
        Gpus::All => -1,
        Gpus::Count(count) => i64::from(count),
    };
    Some(vec![DeviceRequest {
        count: Some(count),
        capabilities: Some(vec![vec!["gpu".to_owned()]]),
        ..DeviceRequest::default()
    }])
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
