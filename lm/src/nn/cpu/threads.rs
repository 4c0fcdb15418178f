//! The threads of libtorch.

use std::ffi::{c_uint, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

unsafe extern "C" {
    /// Calls a function in so many threads, this one among them, and waits for all (GNU OpenMP's entry for a parallel region).
    fn GOMP_parallel(function: unsafe extern "C" fn(*mut c_void), data: *mut c_void, threads: c_uint, flags: c_uint);
}

/// Threads that libtorch works with.
pub(super) fn count() -> usize {
    usize::try_from(tch::get_num_threads()).unwrap_or(1).max(1)
}

/// Parts of some work, and what does one.
struct Work<'a> {
    parts: usize,
    next: AtomicUsize,
    part: &'a (dyn Fn(usize) + Sync),
}

impl Work<'_> {
    fn run(&self) {
        loop {
            let part = self.next.fetch_add(1, Ordering::Relaxed);
            if part >= self.parts {
                return;
            }
            (self.part)(part);
        }
    }
}

unsafe extern "C" fn run(work: *mut c_void) {
    // SAFETY: `share_out` gives a `Work` that lives until all threads have returned, and that they only read but for its counter.
    let work = unsafe { &*work.cast::<Work<'_>>() };
    work.run();
}

/// Does all parts of some work, each once, in so many threads. A thread takes the next part when it has done one, so that those which
/// other programs disturb do fewer. `part` must not panic: threads of C cannot pass that on, and the process would end.
pub(super) fn share_out(threads: usize, parts: usize, part: &(dyn Fn(usize) + Sync)) {
    let mut work = Work {
        parts,
        next: AtomicUsize::new(0),
        part,
    };
    let threads = threads.min(parts);
    if threads <= 1 {
        work.run();
        return;
    }
    let threads = c_uint::try_from(threads).unwrap_or(1);
    // SAFETY: the function takes what it is given.
    unsafe { GOMP_parallel(run, (&raw mut work).cast(), threads, 0) }
}
