//! Standard output, which may be closed. Before `main` the runtime opens `/dev/null` in the place of a closed descriptor, and what
//! is written there would be lost without a word. So the descriptor is looked at earlier, when the program is loaded.

use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};

static IS_CLOSED: AtomicBool = AtomicBool::new(false);

extern "C" fn look() {
    // SAFETY: F_GETFD only asks, and any number is a valid question.
    let answer = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    IS_CLOSED.store(answer == -1, Ordering::Relaxed);
}

// SAFETY: the loader calls what stands in this section, with the C calling convention and before any other thread is there. The
// function needs nothing of the runtime.
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
static LOOK: extern "C" fn() = look;

/// A writer to standard output; where that is closed, one that fails with the first byte.
pub fn standard_output() -> Box<dyn Write + Send> {
    if IS_CLOSED.load(Ordering::Relaxed) {
        Box::new(Closed)
    } else {
        Box::new(BufWriter::new(io::stdout()))
    }
}

/// Takes nothing.
struct Closed;

impl Write for Closed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        Err(io::Error::other("standard output is closed"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
