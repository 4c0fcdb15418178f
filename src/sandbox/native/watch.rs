//! The loop that watches a running job: its output, its limits and its end.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};

use super::jail::Jail;
use super::live::Live;
use super::protocol::{ExitStatus, InitOrder, InitReport, SlotCommand, WarmMessage};
use super::supervisor::waiter_report;
use super::wire;
use crate::sandbox::job::Limits;
use crate::sandbox::logs::LogBuffer;
use crate::sandbox::observe::LogStream;
use crate::sandbox::outcome::JobEnd;
use crate::sandbox::usage;

/// Shortest time between two looks at what the job uses.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The looks may take this part of the time at most.
const POLL_SHARE: u32 = 10;
/// Reads from one pipe before the other things get their turn.
const READS_A_TURN: usize = 16;
const READ_BYTES: usize = 64 << 10;

/// What was measured.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Measured {
    pub(super) cpu_seconds: f64,
    pub(super) peak_memory_bytes: u64,
}

impl Measured {
    /// More CPU time than allowed was used.
    pub(super) fn over_cpu(&self, limits: &Limits) -> bool {
        limits.cpu_seconds.is_some_and(|limit| self.cpu_seconds > limit as f64)
    }
}

/// How it ended.
pub(super) struct Ending {
    /// The limit that ended it; `None` when it ended by itself.
    pub(super) end: Option<JobEnd>,
    /// How the program ended, where that is known.
    pub(super) status: Option<ExitStatus>,
    pub(super) usage: Measured,
    pub(super) logs: [LogBuffer; 2],
}

/// A running job.
pub(super) struct Watch<'a> {
    jail: &'a mut Jail,
    stream: &'a mut UnixStream,
    pipes: [Option<OwnedFd>; 2],
    logs: [LogBuffer; 2],
    /// Shows the output to the server while the program runs.
    live: Option<Live>,
    scratch: &'a OwnedFd,
    temporary: Vec<OwnedFd>,
    limits: &'a Limits,
    grace: Duration,
    deadline: Instant,
    kill_at: Option<Instant>,
    next_look: Instant,
    status: Option<ExitStatus>,
    end: Option<JobEnd>,
    usage: Measured,
    buffer: Vec<u8>,
}

/// What woke the loop.
struct Wakeup {
    server: bool,
    init: bool,
    dead: bool,
    waiter: bool,
    pipes: [bool; 2],
}

impl<'a> Watch<'a> {
    #[allow(
        clippy::too_many_arguments,
        reason = "one call site; a second structure would only repeat the fields"
    )]
    pub(super) fn new(
        jail: &'a mut Jail,
        stream: &'a mut UnixStream,
        pipes: [OwnedFd; 2],
        logs: [LogBuffer; 2],
        live: Option<Live>,
        scratch: &'a OwnedFd,
        limits: &'a Limits,
        grace: Duration,
        begin: Instant,
    ) -> Self {
        let temporary = usage::open_temporary(jail.pid);
        // A wall time beyond the clock's range is no limit in practice.
        let far = Duration::from_secs(100 * 365 * 24 * 3600);
        Self {
            jail,
            stream,
            pipes: pipes.map(Some),
            logs,
            live,
            scratch,
            temporary,
            limits,
            grace,
            deadline: begin + limits.wall.min(far),
            kill_at: None,
            next_look: begin + POLL_INTERVAL / 2,
            status: None,
            end: None,
            usage: Measured::default(),
            buffer: vec![0; READ_BYTES],
        }
    }

    /// Watches until the whole tree is dead. `Err`: the server is gone.
    pub(super) fn run(mut self) -> io::Result<Ending> {
        for pipe in self.pipes.iter().flatten() {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        loop {
            let wakeup = self.wait()?;
            for (index, ready) in wakeup.pipes.into_iter().enumerate() {
                if ready {
                    self.read_output(index, READS_A_TURN)?;
                }
            }
            if wakeup.server {
                self.obey_server()?;
            }
            if wakeup.init {
                self.hear_init();
            }
            if wakeup.waiter {
                let report = waiter_report(self.jail, Duration::ZERO);
                self.hear_waiter(report);
                break;
            }
            if wakeup.dead {
                break;
            }
            self.check_time();
        }
        self.finish()
    }

    fn wait(&self) -> io::Result<Wakeup> {
        let now = Instant::now();
        let next = [Some(self.next_look), self.kill_at.or(Some(self.deadline))]
            .into_iter()
            .flatten()
            .min();
        let left = next
            .map_or(POLL_INTERVAL, |at| at.saturating_duration_since(now))
            .min(Duration::from_secs(3600));
        let timeout = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        let waiter = self.jail.warm.as_ref().map(|warm| &warm.status);
        let sources: [Option<&OwnedFd>; 5] = [
            Some(&self.jail.socket),
            Some(&self.jail.pidfd),
            waiter,
            self.pipes[0].as_ref(),
            self.pipes[1].as_ref(),
        ];
        let mut watched = vec![PollFd::new(&*self.stream, PollFlags::IN)];
        watched.extend(sources.iter().flatten().map(|fd| PollFd::new(*fd, PollFlags::IN)));
        match poll(&mut watched, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        let mut ready = watched.iter().map(|fd| !fd.revents().is_empty());
        let server = ready.next().unwrap_or(false);
        let mut of = |source: &Option<&OwnedFd>| source.is_some() && ready.next().unwrap_or(false);
        let [init, dead, waiter, out, err] = [0, 1, 2, 3, 4].map(|index| of(&sources[index]));
        Ok(Wakeup {
            server,
            init,
            dead,
            waiter,
            pipes: [out, err],
        })
    }

    /// Reads what the program wrote. `Err`: the server is gone.
    fn read_output(&mut self, index: usize, most: usize) -> io::Result<()> {
        for _ in 0..most {
            let Some(pipe) = &self.pipes[index] else { return Ok(()) };
            match rustix::io::read(pipe, &mut self.buffer) {
                Ok(0) => self.pipes[index] = None,
                Ok(n) => {
                    let bytes = &self.buffer[..n];
                    self.logs[index].push(bytes);
                    if let Some(live) = &mut self.live {
                        live.show(self.stream, LogStream::BOTH[index], bytes)?;
                    }
                }
                Err(Errno::INTR) => {}
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    fn obey_server(&mut self) -> io::Result<()> {
        match wire::read_message(self.stream)? {
            Some(SlotCommand::Cancel) => {
                self.terminate(JobEnd::Cancelled);
                Ok(())
            }
            Some(SlotCommand::Run(_)) => Err(io::Error::other("a slot runs one job only")),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn hear_init(&mut self) {
        match wire::receive_packet(&self.jail.socket)
            .ok()
            .flatten()
            .map(|packet| packet.parse())
        {
            Some(Ok(InitReport::Exited(status))) => self.status = Some(status),
            Some(Ok(InitReport::Failed(reason))) if self.end.is_none() => self.end = Some(JobEnd::Setup(reason)),
            // The socket ends with init; its descriptor tells the rest.
            None | Some(_) => {
                let mut init = [PollFd::new(&self.jail.pidfd, PollFlags::IN)];
                let _ = poll(&mut init, Some(&Timespec { tv_sec: 1, tv_nsec: 0 }));
            }
        }
    }

    fn hear_waiter(&mut self, report: Option<WarmMessage>) {
        let Some(report) = report else { return };
        self.usage.cpu_seconds += report.cpu_seconds;
        self.usage.peak_memory_bytes = self.usage.peak_memory_bytes.max(report.max_rss_bytes);
        self.status = match report {
            WarmMessage { code: Some(code), .. } => Some(ExitStatus::Code(code)),
            WarmMessage {
                signal: Some(signal), ..
            } => Some(ExitStatus::Signal(signal)),
            _ => None,
        };
    }

    /// Asks the program to end, and sets the time when it will be killed.
    fn terminate(&mut self, why: JobEnd) {
        if self.end.is_none() {
            self.end = Some(why);
            self.kill_at = Some(Instant::now() + self.grace);
            let _ = wire::send_packet(&self.jail.socket, &InitOrder::Terminate, &[]);
        }
    }

    fn kill(&mut self, why: Option<JobEnd>) {
        if self.end.is_none() {
            self.end = why;
        }
        // Asked once, it is dead soon: no reason to wake up for it again.
        self.kill_at = Some(Instant::now() + Duration::from_secs(60));
        let _ = pidfd_send_signal(&self.jail.pidfd, Signal::KILL);
    }

    fn check_time(&mut self) {
        let now = Instant::now();
        match self.kill_at {
            Some(at) if now >= at => self.kill(None),
            None if now >= self.deadline => self.terminate(JobEnd::WallLimit),
            _ => {}
        }
        if now >= self.next_look {
            self.look();
            let spent = now.elapsed();
            self.next_look = Instant::now() + POLL_INTERVAL.max(spent * POLL_SHARE);
        }
    }

    /// Looks at memory, CPU and disk.
    fn look(&mut self) {
        let group = self.jail.cgroup.as_ref();
        let (exact_memory, group_cpu) = (
            group.is_some_and(|g| g.limits_memory()),
            group.and_then(|g| g.cpu_seconds()),
        );
        let processes = usage::processes(&self.jail.proc);
        let (nameless_disk, nameless_memory) = usage::nameless_bytes(&self.jail.proc, usage::device(self.scratch));
        let files = usage::filesystem_bytes(&self.temporary) + nameless_memory;
        let mut memory = processes.resident_bytes + files;
        if memory > self.limits.memory_bytes {
            memory = usage::proportional_bytes(&self.jail.proc) + files;
        }
        self.usage.peak_memory_bytes = self.usage.peak_memory_bytes.max(memory);
        let cpu = group_cpu.unwrap_or(processes.cpu_seconds).max(processes.cpu_seconds);
        // Where the kernel has killed one process of the job, the others may wait for it for ever.
        let killed_one = group.is_some_and(|g| g.oom_kills() > 0);
        if killed_one || (!exact_memory && memory > self.limits.memory_bytes) {
            self.kill(Some(JobEnd::MemoryLimit));
        } else if self.limits.cpu_seconds.is_some_and(|limit| cpu > limit as f64) {
            self.kill(Some(JobEnd::CpuLimit));
        } else if let Some(which) = usage::disk_excess(self.scratch, self.limits, nameless_disk) {
            self.kill(Some(JobEnd::DiskLimit(which)));
        }
    }

    /// Ends what is left, and takes the last output and figures.
    fn finish(mut self) -> io::Result<Ending> {
        let waited = self.jail.destroy();
        if self.status.is_none() {
            while let Ok(packet) = super::jail::receive_within(&self.jail.socket, Duration::ZERO) {
                match packet.parse() {
                    Ok(InitReport::Exited(status)) => self.status = Some(status),
                    Ok(InitReport::Failed(reason)) if self.end.is_none() => self.end = Some(JobEnd::Setup(reason)),
                    _ => {}
                }
            }
            if self.jail.warm.is_some() {
                let report = waiter_report(self.jail, Duration::from_secs(1));
                self.hear_waiter(report);
            }
        }
        match waited {
            Ok(Some(waited)) => {
                self.usage.cpu_seconds += waited.cpu_seconds;
                self.usage.peak_memory_bytes = self.usage.peak_memory_bytes.max(waited.max_rss_bytes);
            }
            Ok(None) => {}
            Err(e) => self.end = Some(JobEnd::Setup(format!("the end of the job is not confirmed: {e}"))),
        }
        if let Some(seconds) = self.jail.cgroup.as_ref().and_then(|group| group.cpu_seconds()) {
            self.usage.cpu_seconds = self.usage.cpu_seconds.max(seconds);
        }
        // Every writer is dead, so this ends.
        for index in 0..2 {
            while self.pipes[index].is_some() {
                let before = self.logs[index].bytes();
                self.read_output(index, 1)?;
                if self.logs[index].bytes() == before {
                    break;
                }
            }
        }
        Ok(Ending {
            end: self.end,
            status: self.status,
            usage: self.usage,
            logs: self.logs,
        })
    }
}
