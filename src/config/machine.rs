//! What this machine offers: cores and free memory.

use super::ByteSize;

/// Share of the free memory that jobs may plan with; the rest is for the engine, the page cache and the evaluator.
const JOB_SHARE: f64 = 0.8;

/// Jobs that fit on `cores` and into `free` bytes, at least one. Unknown free memory does not limit.
pub(super) fn concurrency(cores: u32, free: Option<u64>, cpus: u32, memory: ByteSize) -> u32 {
    let by_cores = cores / cpus.max(1);
    let by_memory = free.map_or(u32::MAX, |free| {
        let jobs = free as f64 * JOB_SHARE / memory.bytes().max(1) as f64;
        jobs.min(f64::from(u32::MAX)) as u32
    });
    by_cores.min(by_memory).max(1)
}

/// Cores this process may use (affinity and control group included).
pub(super) fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))
}

/// Memory that is free: what the kernel calls available, or less where a control group sets a limit.
pub(super) fn free_memory() -> Option<u64> {
    let available = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .as_deref()
        .and_then(available_of);
    let limit = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ]
    .iter()
    .filter_map(|path| std::fs::read_to_string(path).ok())
    .find_map(|text| text.trim().parse::<u64>().ok());
    match (available, limit) {
        (Some(available), Some(limit)) => Some(available.min(limit)),
        (available, limit) => available.or(limit),
    }
}

/// `MemAvailable` of a `/proc/meminfo`, in bytes.
fn available_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_bounded_by_cores_and_memory() {
        let gib = |n: u64| n << 30;
        assert_eq!(concurrency(8, Some(gib(100)), 1, ByteSize(gib(4))), 8);
        assert_eq!(concurrency(8, Some(gib(100)), 2, ByteSize(gib(4))), 4);
        assert_eq!(concurrency(8, Some(gib(10)), 1, ByteSize(gib(4))), 2);
        assert_eq!(concurrency(1, Some(gib(1)), 4, ByteSize(gib(4))), 1);
        assert_eq!(concurrency(8, None, 1, ByteSize(gib(4))), 8);
    }

    #[test]
    fn reads_meminfo() {
        assert_eq!(
            available_of("MemTotal: 10 kB\nMemAvailable:   2048 kB\n"),
            Some(2 << 20)
        );
        assert_eq!(available_of("MemTotal: 10 kB\n"), None);
    }
}
