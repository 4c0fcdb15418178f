//! A program on a terminal of its own.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Longest wait for an answer; a busy machine is slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running program with both ends of its terminal.
pub struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<(Mutex<String>, Condvar)>,
    /// Up to here the output has been looked at.
    seen: usize,
}

impl Terminal {
    /// Starts a command on a terminal of some size.
    pub fn start(command: &mut Command, columns: u16) -> Self {
        let (mut master, mut slave) = (-1, -1);
        let size = libc::winsize {
            ws_row: 40,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        // SAFETY: openpty writes the two descriptors; name and termios may be null.
        let opened = unsafe {
            libc::openpty(
                &raw mut master,
                &raw mut slave,
                std::ptr::null_mut(),
                std::ptr::null(),
                &raw const size,
            )
        };
        assert_eq!(opened, 0, "no terminal can be opened");
        // SAFETY: both descriptors were just opened and belong to nobody else.
        let (master, slave) = unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
        command.env("TERM", "xterm");
        command
            .stdin(Stdio::from(slave.try_clone().unwrap()))
            .stdout(Stdio::from(slave.try_clone().unwrap()))
            .stderr(slave);
        // SAFETY: only system calls that are allowed between fork and exec.
        unsafe {
            command.pre_exec(|| {
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        // The command keeps its copies of the terminal's end; with them open the reader would never see the end.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let keyboard = File::from(master);
        let mut output = keyboard.try_clone().unwrap();
        let screen: Arc<(Mutex<String>, Condvar)> = Arc::default();
        let writer = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The terminal reports an error once the program has ended.
            while let Ok(count) = output.read(&mut buffer) {
                if count == 0 {
                    break;
                }
                writer
                    .0
                    .lock()
                    .unwrap()
                    .push_str(&String::from_utf8_lossy(&buffer[..count]));
                writer.1.notify_all();
            }
        });
        Self {
            child,
            keyboard,
            screen,
            seen: 0,
        }
    }

    /// Types a text.
    pub fn type_text(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// Waits until a text appears after what was looked at before; returns all that came up to its end.
    #[track_caller]
    pub fn expect(&mut self, text: &str) -> String {
        let until = Instant::now() + PATIENCE;
        let mut screen = self.screen.0.lock().unwrap();
        loop {
            if let Some(at) = screen[self.seen..].find(text) {
                let end = self.seen + at + text.len();
                let part = screen[self.seen..end].to_owned();
                self.seen = end;
                return part;
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "'{text}' never came; the screen:\n{}",
                &screen[self.seen..]
            );
            screen = self.screen.1.wait_timeout(screen, left).unwrap().0;
        }
    }

    /// Waits for the end of the program.
    pub fn wait(mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(
                Instant::now() < until,
                "the program does not end; the screen:\n{}",
                self.screen.0.lock().unwrap()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Already ended: nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
