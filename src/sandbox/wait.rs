//! Waiting for a child with its resource usage.

use std::io;

/// What `wait4` says of one child.
pub(crate) struct Waited {
    /// Raw status.
    pub(crate) status: i32,
    /// CPU seconds of the child and the children it has waited for.
    pub(crate) cpu_seconds: f64,
    /// Largest resident size of one of them.
    pub(crate) max_rss_bytes: u64,
}

/// Waits for a child.
pub(crate) fn wait4(pid: i32) -> io::Result<Waited> {
    // SAFETY: an all-zero rusage is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let mut status = 0;
    loop {
        // SAFETY: both pointers are valid for writes.
        if unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) } >= 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    Ok(Waited {
        status,
        cpu_seconds: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        max_rss_bytes: usage.ru_maxrss as u64 * 1024,
    })
}
