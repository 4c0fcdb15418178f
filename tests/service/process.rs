//! A process of the program that runs beside a test.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};

/// A running process; it is killed when this is dropped.
pub struct Process {
    child: Child,
    said: Arc<Mutex<String>>,
    listening: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts a command, and waits until it says a line that `is_ready` takes.
    pub fn start(command: &mut Command, mut is_ready: impl FnMut(&str) -> bool) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut process = Self {
            child,
            said: Arc::default(),
            listening: None,
        };
        loop {
            let mut line = String::new();
            let length = stderr.read_line(&mut line).unwrap();
            process.said.lock().unwrap().push_str(&line);
            assert!(length > 0, "it ended: {}", process.said());
            if is_ready(&line) {
                break;
            }
        }
        let said = Arc::clone(&process.said);
        process.listening = Some(std::thread::spawn(move || {
            let mut line = String::new();
            while stderr.read_line(&mut line).is_ok_and(|length| length > 0) {
                said.lock().unwrap().push_str(&line);
                line.clear();
            }
        }));
        process
    }

    /// What it said so far.
    pub fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM; it must end well. Gives what it said.
    pub fn stop(mut self) -> String {
        self.signal(Signal::TERM);
        let status = self.child.wait().unwrap();
        if let Some(listening) = self.listening.take() {
            listening.join().unwrap();
        }
        assert!(status.success(), "{status}: {}", self.said());
        self.said()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that was stopped is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
