//! The machine, and how figures are printed.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result};

/// What the machine is and how busy: figures mean nothing without it.
pub fn state() -> Result<String> {
    let cores = std::thread::available_parallelism()?;
    let load = std::fs::read_to_string("/proc/loadavg").context("/proc/loadavg")?;
    let load: Vec<&str> = load.split(' ').take(3).collect();
    let build = if cfg!(debug_assertions) {
        "debug build"
    } else {
        "release build"
    };
    Ok(format!(
        "{cores} cores, load {} (1, 5, 15 minutes), {build}",
        load.join(" ")
    ))
}

/// Seconds on a processor that this process and its ended children have used.
pub fn cpu_seconds() -> f64 {
    let seconds = |who| {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the call fills the struct it is given, which is all zeros before.
        let usage = unsafe {
            libc::getrusage(who, usage.as_mut_ptr());
            usage.assume_init()
        };
        let of = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        of(usage.ru_utime) + of(usage.ru_stime)
    };
    seconds(libc::RUSAGE_SELF) + seconds(libc::RUSAGE_CHILDREN)
}

/// Largest resident memory of this process so far, in bytes.
pub fn peak_memory() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .context("VmHWM")?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes << 10)
}

/// Milliseconds of durations: median and 99th percentile.
pub fn percentiles(times: &mut [Duration]) -> (f64, f64) {
    times.sort();
    let at = |share: f64| {
        let place = (times.len().saturating_sub(1) as f64 * share).round() as usize;
        times.get(place).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    };
    (at(0.5), at(0.99))
}

/// Prints Markdown to standard output.
pub struct Report {
    out: std::io::Stdout,
}

impl Report {
    pub fn new() -> Self {
        Self { out: std::io::stdout() }
    }

    pub fn line(&mut self, text: &str) -> Result<()> {
        writeln!(self.out, "{text}")?;
        Ok(self.out.flush()?)
    }

    /// A heading and the head of a table.
    pub fn table(&mut self, title: &str, columns: &[&str]) -> Result<()> {
        self.line(&format!("\n## {title}\n\n{}", row(columns)))?;
        self.line(&row(&vec!["---"; columns.len()]))
    }

    pub fn row(&mut self, cells: &[String]) -> Result<()> {
        self.line(&row(cells))
    }
}

fn row(cells: &[impl AsRef<str>]) -> String {
    let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
    format!("| {} |", cells.join(" | "))
}
