//! Memory that a model needs, and memory that is free.

use std::path::{Path, PathBuf};

use tch::{Device, Kind};

use super::files::{format_error, read_text};
use crate::error::{LmError, Result};
use crate::weights::TensorInfo;

/// Bytes of weights in a number format.
#[must_use]
pub fn needed(tensors: &[TensorInfo], kind: Kind) -> u64 {
    tensors.iter().map(elements).sum::<u64>() * kind.elt_size_in_bytes() as u64
}

/// Numbers in a tensor.
pub(super) fn elements(tensor: &TensorInfo) -> u64 {
    tensor.shape.iter().map(|size| size.unsigned_abs()).product()
}

/// Bytes of memory that are free on a device: for the CPU what the system calls available, or what is left of the control group's
/// limit where that is less.
///
/// # Errors
/// When the system does not tell, or the device is of a kind that does not.
pub fn available(device: Device) -> Result<u64> {
    match device {
        Device::Cpu => Host::this().available(),
        Device::Cuda(index) => cuda_free(index),
        other => Err(LmError::Unsupported(format!(
            "how much memory is free on {other:?} is not known"
        ))),
    }
}

/// Refuses what does not fit into the memory that is free on a device.
///
/// # Errors
/// When it does not.
pub fn check(what: &str, needed: u64, device: Device) -> Result<()> {
    let available = available(device)?;
    if needed <= available {
        return Ok(());
    }
    Err(LmError::Memory {
        what: what.to_owned(),
        needed,
        available,
        device: match device {
            Device::Cuda(index) => format!("CUDA device {index}"),
            _ => "the CPU".to_owned(),
        },
        advice: "load it in bfloat16, load a smaller model, or free memory".to_owned(),
    })
}

/// Where the system tells of memory.
struct Host {
    proc: PathBuf,
    cgroup: PathBuf,
}

impl Host {
    fn this() -> Self {
        Self {
            proc: PathBuf::from("/proc"),
            cgroup: PathBuf::from("/sys/fs/cgroup"),
        }
    }

    fn available(&self) -> Result<u64> {
        let path = self.proc.join("meminfo");
        let system = read_text(&path)?
            .lines()
            .find_map(|line| {
                line.strip_prefix("MemAvailable:")?
                    .trim()
                    .strip_suffix("kB")?
                    .trim()
                    .parse::<u64>()
                    .ok()
            })
            .ok_or_else(|| format_error(&path, "has no line 'MemAvailable'"))?;
        let limits = std::fs::read_to_string(self.proc.join("self/cgroup")).unwrap_or_default();
        let left = limits.lines().filter_map(|line| self.left_of_group(line)).min();
        Ok(left.map_or(system * 1024, |left| left.min(system * 1024)))
    }

    /// What the limits of a control group and of those above it leave. A line names the group in one hierarchy; the second version
    /// of control groups has one, the first has one for memory.
    fn left_of_group(&self, line: &str) -> Option<u64> {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        let (root, limit, usage) = match controllers {
            "" => (self.cgroup.clone(), "memory.max", "memory.current"),
            "memory" => (
                self.cgroup.join("memory"),
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
            ),
            _ => return None,
        };
        let folder = root.join(group.trim_start_matches('/'));
        let groups = folder.ancestors().take_while(|folder| folder.starts_with(&root));
        groups.filter_map(|folder| left_in(folder, limit, usage)).min()
    }
}

/// What the limit of one control group leaves. Pages of files that nobody uses count as used there, but give way.
fn left_in(folder: &Path, limit: &str, usage: &str) -> Option<u64> {
    let number = |file: &str| {
        std::fs::read_to_string(folder.join(file))
            .ok()?
            .trim()
            .parse::<u64>()
            .ok()
    };
    let statistics = std::fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let reclaimable = statistics
        .lines()
        .find_map(|line| {
            line.strip_prefix("total_inactive_file ")
                .or_else(|| line.strip_prefix("inactive_file "))
        })
        .and_then(|bytes| bytes.trim().parse::<u64>().ok())
        .unwrap_or(0);
    Some(number(limit)?.saturating_sub(number(usage)?.saturating_sub(reclaimable)))
}

/// Free memory of a CUDA device, as the runtime that libtorch has loaded tells.
fn cuda_free(index: usize) -> Result<u64> {
    type Choose = unsafe extern "C" fn(libc::c_int) -> libc::c_int;
    type Chosen = unsafe extern "C" fn(*mut libc::c_int) -> libc::c_int;
    type Information = unsafe extern "C" fn(*mut usize, *mut usize) -> libc::c_int;

    let unknown = |what: &str| {
        LmError::Unsupported(format!(
            "how much memory CUDA device {index} has free is not known: {what}"
        ))
    };
    let symbol = |name: &std::ffi::CStr| {
        // SAFETY: the name ends with a zero byte; looking a symbol up among the loaded libraries has no other effect.
        let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        if address.is_null() {
            Err(unknown("this libtorch has no CUDA runtime"))
        } else {
            Ok(address)
        }
    };
    // SAFETY: the functions of these names have these types in every version of the CUDA runtime.
    let (choose, chosen, information) = unsafe {
        (
            std::mem::transmute::<*mut libc::c_void, Choose>(symbol(c"cudaSetDevice")?),
            std::mem::transmute::<*mut libc::c_void, Chosen>(symbol(c"cudaGetDevice")?),
            std::mem::transmute::<*mut libc::c_void, Information>(symbol(c"cudaMemGetInfo")?),
        )
    };
    let device = libc::c_int::try_from(index).map_err(|_| unknown("there is no such device"))?;
    let (mut before, mut free, mut total) = (0, 0, 0);
    // SAFETY: the pointers are to numbers of the right types on the stack. The device of this thread is the same afterwards.
    let codes = unsafe {
        let codes = [
            chosen(&raw mut before),
            choose(device),
            information(&raw mut free, &raw mut total),
        ];
        choose(before);
        codes
    };
    match codes.into_iter().find(|code| *code != 0) {
        Some(code) => Err(unknown(&format!("the CUDA runtime answers with the error {code}"))),
        None => Ok(free as u64),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::weights::Dtype;

    fn host(cgroup_line: &str, files: &[(&str, &str)]) -> (tempfile::TempDir, Host) {
        let folder = tempfile::tempdir().unwrap();
        let all = [
            ("proc/meminfo", "MemTotal: 100 kB\nMemAvailable:   64 kB\n"),
            ("proc/self/cgroup", cgroup_line),
        ];
        for (name, text) in all.iter().chain(files) {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let host = Host {
            proc: folder.path().join("proc"),
            cgroup: folder.path().join("cgroup"),
        };
        (folder, host)
    }

    #[test]
    fn without_a_limit_the_system_tells() {
        let (_folder, host) = host(
            "0::/a\n",
            &[("cgroup/a/memory.max", "max\n"), ("cgroup/a/memory.current", "10\n")],
        );
        assert_eq!(host.available().unwrap(), 64 * 1024);
    }

    #[test]
    fn the_limit_of_an_outer_group_counts_less_pages_that_give_way() {
        let files = [
            ("cgroup/a/memory.max", "50000\n"),
            ("cgroup/a/memory.current", "20000\n"),
            ("cgroup/a/memory.stat", "anon 1\ninactive_file 5000\n"),
            ("cgroup/a/b/memory.max", "max\n"),
            ("cgroup/a/b/memory.current", "1\n"),
        ];
        let (_folder, host) = host("0::/a/b\n", &files);
        assert_eq!(host.available().unwrap(), 35_000);
    }

    #[test]
    fn the_first_version_of_control_groups_is_read_too() {
        let files = [
            ("cgroup/memory/x/memory.limit_in_bytes", "9000\n"),
            ("cgroup/memory/x/memory.usage_in_bytes", "1000\n"),
        ];
        let (_folder, host) = host("5:cpu:/x\n4:memory:/x\n", &files);
        assert_eq!(host.available().unwrap(), 8000);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_numbers() {
        let tensor = TensorInfo {
            name: "w".to_owned(),
            shape: vec![1 << 40, 4],
            dtype: Dtype::F32,
        };
        let bytes = needed(&[tensor], Kind::BFloat16);
        assert_eq!(bytes, 8 << 40);
        let error = check("the model", bytes, Device::Cpu).unwrap_err().to_string();
        assert!(
            error.contains("the model needs 8796093022208 bytes of memory on the CPU"),
            "{error}"
        );
        assert!(error.contains("smaller model"), "{error}");
    }
}
