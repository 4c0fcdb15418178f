//! Jobs that run in this process: their output so far, and the means to stop them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::sandbox::{LogObserver, LogPart, LogStream};

/// Output so far, within fixed memory: the first and the last bytes.
#[derive(Debug)]
struct LiveLog {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    tail_start: u64,
    /// The head is at its end: what comes goes to the tail.
    head_ended: bool,
    limit: usize,
    total: u64,
}

impl LiveLog {
    fn new(limit: usize) -> Self {
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            tail_start: 0,
            head_ended: false,
            limit: limit / 2,
            total: 0,
        }
    }

    fn push(&mut self, skipped: u64, bytes: &[u8]) {
        if skipped > 0 {
            self.total += skipped;
            self.tail.clear();
            self.tail_start = self.total;
            self.head_ended = true;
        }
        let mut rest = bytes;
        if !self.head_ended {
            let (head, more) = rest.split_at(rest.len().min(self.limit - self.head.len()));
            self.head.extend_from_slice(head);
            self.total += head.len() as u64;
            rest = more;
            if !rest.is_empty() {
                self.head_ended = true;
                self.tail_start = self.total;
            }
        }
        self.tail.extend(rest);
        self.total += rest.len() as u64;
        let excess = self.tail.len().saturating_sub(self.limit);
        self.tail.drain(..excess);
        self.tail_start += excess as u64;
    }

    /// Bytes from a place on, or from the next place that is kept.
    fn read(&self, offset: u64, most: usize) -> (u64, Vec<u8>) {
        let head_end = self.head.len() as u64;
        if offset < head_end {
            let start = offset as usize;
            let end = self.head.len().min(start.saturating_add(most));
            return (offset, self.head[start..end].to_vec());
        }
        if !self.head_ended {
            return (head_end, Vec::new());
        }
        let offset = offset.clamp(self.tail_start, self.total);
        let skip = (offset - self.tail_start) as usize;
        (offset, self.tail.iter().skip(skip).take(most).copied().collect())
    }
}

/// A piece of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPiece {
    /// Where it begins; later than asked for where bytes in between are not kept.
    pub offset: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Bytes of the log so far.
    pub total: u64,
}

/// A job that runs.
#[derive(Debug)]
pub struct LiveJob {
    /// Ends it.
    cancel: CancellationToken,
    is_cancelled: AtomicBool,
    logs: Mutex<[LiveLog; 2]>,
    changed: watch::Sender<bool>,
}

impl LiveJob {
    /// Ends it now, by the user's wish.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::SeqCst);
        self.cancel.cancel();
    }

    /// Whether the user wants it to end.
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::SeqCst)
    }

    /// The token of its end.
    pub fn token(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Bytes of an output.
    pub fn read(&self, stream: LogStream, offset: u64, most: usize) -> LogPiece {
        let logs = self.logs.lock();
        let log = &logs[stream.index()];
        let (offset, bytes) = log.read(offset, most);
        LogPiece {
            offset,
            bytes,
            total: log.total,
        }
    }

    /// Tells when there is more output; the value says whether the job has ended.
    pub fn changes(&self) -> watch::Receiver<bool> {
        self.changed.subscribe()
    }

    /// Adds output that begins at a place; what was there before is not added again, and what is missing counts as not shown.
    pub fn push_at(&self, stream: LogStream, offset: u64, bytes: &[u8]) {
        {
            let mut logs = self.logs.lock();
            let log = &mut logs[stream.index()];
            let skipped = offset.saturating_sub(log.total);
            let known = usize::try_from(log.total.saturating_sub(offset)).unwrap_or(usize::MAX);
            log.push(skipped, bytes.get(known..).unwrap_or_default());
        }
        self.changed.send_modify(|_| {});
    }

    /// What gets the output.
    pub fn observer(self: &Arc<Self>) -> LogObserver {
        let job = Arc::clone(self);
        LogObserver::new(move |part: LogPart<'_>| {
            job.logs.lock()[part.stream.index()].push(part.skipped, part.bytes);
            job.changed.send_modify(|_| {});
        })
    }
}

/// All jobs that run in this process.
#[derive(Debug, Default)]
pub struct LiveJobs(Mutex<HashMap<String, Arc<LiveJob>>>);

/// The place of a job among those that run; it is given up when this is dropped.
#[derive(Debug)]
pub struct LivePlace {
    jobs: Arc<LiveJobs>,
    job_id: String,
    /// The job.
    pub job: Arc<LiveJob>,
}

impl LiveJobs {
    /// Adds a job that ends with `stop`, of which so many bytes of each output are kept.
    pub fn enter(self: &Arc<Self>, job_id: &str, log_bytes: u64, stop: &CancellationToken) -> LivePlace {
        let limit = usize::try_from(log_bytes).unwrap_or(usize::MAX);
        let job = Arc::new(LiveJob {
            cancel: stop.child_token(),
            is_cancelled: AtomicBool::new(false),
            logs: Mutex::new([LiveLog::new(limit), LiveLog::new(limit)]),
            changed: watch::Sender::new(false),
        });
        self.0.lock().insert(job_id.to_owned(), Arc::clone(&job));
        LivePlace {
            jobs: Arc::clone(self),
            job_id: job_id.to_owned(),
            job,
        }
    }

    /// A job that runs here.
    pub fn get(&self, job_id: &str) -> Option<Arc<LiveJob>> {
        self.0.lock().get(job_id).cloned()
    }

    /// Ends a job that runs here.
    pub fn cancel(&self, job_id: &str) {
        if let Some(job) = self.get(job_id) {
            job.cancel();
        }
    }
}

impl Drop for LivePlace {
    fn drop(&mut self) {
        let mut jobs = self.jobs.0.lock();
        // A job that was taken from its worker may run anew by now, under the same id.
        if jobs.get(&self.job_id).is_some_and(|job| Arc::ptr_eq(job, &self.job)) {
            jobs.remove(&self.job_id);
        }
        drop(jobs);
        self.job.changed.send_replace(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_output_is_read_from_any_place() {
        let mut log = LiveLog::new(100);
        log.push(0, b"hello ");
        log.push(0, b"world");
        assert_eq!(log.read(0, 100), (0, b"hello world".to_vec()));
        assert_eq!(log.read(6, 3), (6, b"wor".to_vec()));
        assert_eq!(log.read(11, 3), (11, Vec::new()));
        assert_eq!(log.read(99, 3), (11, Vec::new()));
    }

    #[test]
    fn long_output_keeps_its_begin_and_its_end() {
        let mut log = LiveLog::new(10);
        for byte in 0..100 {
            log.push(0, &[byte]);
        }
        assert_eq!(log.total, 100);
        assert_eq!(log.read(0, 100), (0, vec![0, 1, 2, 3, 4]));
        assert_eq!(log.read(5, 100), (95, vec![95, 96, 97, 98, 99]));
        assert_eq!(log.read(97, 1), (97, vec![97]));
    }

    #[test]
    fn output_that_comes_twice_is_kept_once() {
        let jobs = Arc::new(LiveJobs::default());
        let place = jobs.enter("a", 100, &CancellationToken::new());
        for (offset, text) in [(0, "abc"), (0, "abc"), (2, "cde"), (9, "x")] {
            place.job.push_at(LogStream::Stdout, offset, text.as_bytes());
        }
        let piece = place.job.read(LogStream::Stdout, 0, 100);
        assert_eq!((piece.bytes, piece.total), (b"abcde".to_vec(), 10));
        assert_eq!(place.job.read(LogStream::Stdout, 5, 100).bytes, b"x");
    }

    #[test]
    fn a_place_that_is_given_up_leaves_its_successor_alone() {
        let jobs = Arc::new(LiveJobs::default());
        let stop = CancellationToken::new();
        let (first, second) = (jobs.enter("a", 100, &stop), jobs.enter("a", 100, &stop));
        drop(first);
        assert!(jobs.get("a").is_some());
        drop(second);
        assert!(jobs.get("a").is_none());
    }

    #[test]
    fn bytes_that_are_not_shown_count() {
        let mut log = LiveLog::new(100);
        log.push(0, b"a");
        log.push(1000, b"b");
        assert_eq!(log.total, 1002);
        assert_eq!(log.read(1, 10), (1001, b"b".to_vec()));
    }
}
