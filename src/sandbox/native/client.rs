//! The server's side: the launcher process, slots, and the pool of slots that stand ready.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

use super::HELPER_COMMAND;
use super::cgroup;
use super::protocol::{JobReport, LauncherConfig, LauncherReply, LogSummary, SlotCommand, SlotEvent, SlotRequest};
use super::wire;
use crate::sandbox::SandboxError;
use crate::sandbox::launch::Launch;
use crate::sandbox::logs::CapturedLog;
use crate::sandbox::observe::LogPart;
use crate::sandbox::report::CapabilityReport;

/// Time that a launcher whose socket is closed has to clean up before it is killed.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// A running launcher.
#[derive(Debug)]
pub(super) struct Launcher {
    control: OwnedFd,
    process: Mutex<Child>,
    pool: Mutex<Pool>,
    /// Names its control groups.
    instance: String,
    /// What it found on this machine.
    pub(super) report: CapabilityReport,
}

#[derive(Debug, Default)]
struct Pool {
    cold: VecDeque<Slot>,
    warm: VecDeque<Slot>,
}

/// A jail that stands or is being built.
#[derive(Debug)]
pub(super) struct Slot {
    stream: UnixStream,
    parked: bool,
}

/// A finished job.
pub(super) struct Finished {
    pub(super) report: JobReport,
    pub(super) stdout: CapturedLog,
    pub(super) stderr: CapturedLog,
    pub(super) started_at: Option<DateTime<Utc>>,
}

impl Launcher {
    /// Starts the helper and waits for its findings. Blocks for some milliseconds.
    pub(super) fn start(helper: &PathBuf, config: &LauncherConfig) -> Result<Self, SandboxError> {
        let broken = |e: io::Error| SandboxError::Helper(e.to_string());
        let (control, theirs) = wire::packet_pair().map_err(broken)?;
        let mut child = Command::new(helper)
            .arg(HELPER_COMMAND)
            .env_clear()
            // A build against shared libraries still needs to find them.
            .envs(std::env::var_os("LD_LIBRARY_PATH").map(|value| ("LD_LIBRARY_PATH", value)))
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .spawn()
            .map_err(SandboxError::io("start the helper", helper))?;
        let answer = || -> io::Result<LauncherReply> {
            wire::send_packet(&control, config, &[])?;
            let packet = wire::receive_packet(&control)?.ok_or(io::ErrorKind::UnexpectedEof)?;
            packet.parse()
        };
        match answer() {
            Ok(LauncherReply::Ready(report)) => Ok(Self {
                control,
                process: Mutex::new(child),
                pool: Mutex::default(),
                instance: config.instance.clone(),
                report,
            }),
            Ok(LauncherReply::Unusable(report)) => {
                let _ = child.wait();
                Err(unavailable(&report))
            }
            Err(e) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(SandboxError::Helper(format!(
                    "{} did not answer as a sandbox helper ({e}); is it this program?",
                    helper.display()
                )))
            }
        }
    }

    /// Lets the launcher end its jobs, clean up and go; tells whether it did.
    fn stop(&mut self) -> bool {
        let process = self.process.get_mut();
        let closed = wire::packet_pair().map(|(replacement, _)| std::mem::replace(&mut self.control, replacement));
        let ended = match closed {
            Ok(control) => {
                // The closed socket tells it.
                drop(control);
                ended_within(process, STOP_LIMIT)
            }
            Err(_) => None,
        };
        let status = ended.or_else(|| {
            let _ = process.kill();
            process.wait().ok()
        });
        status.is_some_and(|status| status.success())
    }

    /// The launcher process has not ended.
    pub(super) fn is_alive(&self) -> bool {
        matches!(self.process.lock().try_wait(), Ok(None))
    }

    /// Asks for a new jail; it is built while the caller goes on.
    fn open_slot(&self, warm: bool) -> Result<Slot, SandboxError> {
        let broken = |e: io::Error| SandboxError::Helper(e.to_string());
        let (ours, theirs) = StdUnixStream::pair().map_err(broken)?;
        ours.set_nonblocking(true).map_err(broken)?;
        wire::send_packet(&self.control, &SlotRequest { warm }, &[theirs.as_fd()])
            .map_err(|e| SandboxError::Helper(format!("it does not take requests: {e}")))?;
        Ok(Slot {
            stream: UnixStream::from_std(ours).map_err(broken)?,
            parked: false,
        })
    }

    /// Takes a slot out of the pool, or a new one, and refills the pool to `standby` slots.
    pub(super) fn take_slot(self: &Arc<Self>, warm: bool, standby: usize) -> Result<Slot, SandboxError> {
        let ready = {
            let mut pool = self.pool.lock();
            let queue = if warm { &mut pool.warm } else { &mut pool.cold };
            queue.pop_front()
        };
        match ready {
            Some(slot) => Ok(slot),
            None => {
                let slot = self.open_slot(warm)?;
                self.refill(warm, standby);
                Ok(slot)
            }
        }
    }

    /// Opens slots until `standby` stand ready.
    pub(super) fn refill(&self, warm: bool, standby: usize) {
        loop {
            let present = {
                let pool = self.pool.lock();
                if warm { pool.warm.len() } else { pool.cold.len() }
            };
            if present >= standby {
                return;
            }
            // A launcher that is gone is noticed by the next job.
            let Ok(slot) = self.open_slot(warm) else { return };
            let mut pool = self.pool.lock();
            if warm {
                pool.warm.push_back(slot)
            } else {
                pool.cold.push_back(slot)
            }
        }
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        *self.pool.get_mut() = Pool::default();
        if !self.stop() {
            // It could not clean up itself; the directories go with the instance.
            cgroup::remove_instance(&self.instance);
        }
    }
}

/// How a process ended, when it did in time.
fn ended_within(process: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let deadline = std::time::Instant::now() + limit;
    loop {
        match process.try_wait() {
            Ok(None) if std::time::Instant::now() < deadline => std::thread::sleep(Duration::from_millis(1)),
            outcome => return outcome.ok().flatten(),
        }
    }
}

fn unavailable(report: &CapabilityReport) -> SandboxError {
    use crate::sandbox::report::Layer;
    match report.first_missing(&Layer::REQUIRED) {
        Some((layer, capability)) => SandboxError::Unavailable {
            reason: format!("the layer {} is missing: {}", layer.as_str(), capability.enforced_by),
            advice: capability
                .advice
                .clone()
                .unwrap_or_else(|| "look at the kernel's configuration".to_owned()),
        },
        None => SandboxError::Helper("it cannot run jobs but names no missing layer".to_owned()),
    }
}

impl Slot {
    /// Waits until the jail stands. `Ok(Err)`: it could not be built.
    pub(super) async fn wait_parked(&mut self) -> Result<Result<(), String>, SandboxError> {
        if self.parked {
            return Ok(Ok(()));
        }
        match read_event(&mut self.stream).await? {
            SlotEvent::Parked => {
                self.parked = true;
                Ok(Ok(()))
            }
            SlotEvent::Failed(reason) => Ok(Err(reason)),
            event => Err(SandboxError::Helper(format!("a slot reports {event:?} out of turn"))),
        }
    }

    /// Runs a job in a jail that stands, to its end.
    pub(super) async fn run(mut self, launch: Launch, cancel: &CancellationToken) -> Result<Finished, SandboxError> {
        let (mut reader, mut writer) = self.stream.split();
        let observer = launch.observer.clone();
        send(&mut writer, &SlotCommand::Run(Box::new(launch))).await?;
        let mut started_at = None;
        let mut cancelled = false;
        loop {
            let event = {
                let mut next = std::pin::pin!(read_event(&mut reader));
                tokio::select! {
                    event = &mut next => event?,
                    // The token is looked at once: after that the supervisor brings the job to its end.
                    () = cancel.cancelled(), if !cancelled => {
                        cancelled = true;
                        send(&mut writer, &SlotCommand::Cancel).await?;
                        next.await?
                    }
                }
            };
            match event {
                SlotEvent::Started { unix_micros } => started_at = DateTime::from_timestamp_micros(unix_micros),
                SlotEvent::Output { stream, skipped } => {
                    let bytes = read_frame(&mut reader).await?;
                    if let Some(observer) = &observer {
                        observer.see(LogPart {
                            stream,
                            skipped,
                            bytes: &bytes,
                        });
                    }
                }
                SlotEvent::Ended(report) => {
                    let stdout = log(&report.stdout, read_frame(&mut reader).await?);
                    let stderr = log(&report.stderr, read_frame(&mut reader).await?);
                    return Ok(Finished {
                        report: *report,
                        stdout,
                        stderr,
                        started_at,
                    });
                }
                SlotEvent::Parked | SlotEvent::Failed(_) => {
                    return Err(SandboxError::Helper("a slot answers out of turn".to_owned()));
                }
            }
        }
    }
}

fn log(summary: &LogSummary, kept: Vec<u8>) -> CapturedLog {
    let LogSummary {
        head,
        tail,
        bytes,
        truncated,
    } = summary;
    CapturedLog {
        head: head.clone(),
        tail: tail.clone(),
        bytes: *bytes,
        kept,
        truncated: *truncated,
    }
}

async fn send(writer: &mut (impl AsyncWrite + Unpin), command: &SlotCommand) -> Result<(), SandboxError> {
    let mut bytes = Vec::new();
    wire::write_message(&mut bytes, command).map_err(lost)?;
    writer.write_all(&bytes).await.map_err(lost)
}

async fn read_frame(reader: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>, SandboxError> {
    let mut length = [0; 4];
    reader.read_exact(&mut length).await.map_err(lost)?;
    let mut bytes = vec![0; wire::frame_length(length).map_err(lost)?];
    reader.read_exact(&mut bytes).await.map_err(lost)?;
    Ok(bytes)
}

async fn read_event(reader: &mut (impl AsyncRead + Unpin)) -> Result<SlotEvent, SandboxError> {
    serde_json::from_slice(&read_frame(reader).await?).map_err(|e| lost(e.into()))
}

fn lost(error: io::Error) -> SandboxError {
    SandboxError::Helper(format!("the job's supervisor is lost ({error})"))
}
