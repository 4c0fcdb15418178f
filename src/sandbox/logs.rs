//! Capture of a program's output within fixed memory.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::observe::{LogObserver, LogPart, LogStream};

/// Most bytes in each of `head` and `tail`.
const EXCERPT_BYTES: usize = 8 << 10;

/// Captured output: what was kept, and how much there was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapturedLog {
    /// First part as text; lossy where it is no UTF-8.
    pub head: String,
    /// Last part as text, not overlapping `head`; empty when `head` is all there was.
    pub tail: String,
    /// Bytes that the program wrote.
    pub bytes: u64,
    /// Bytes that were kept; where the middle is gone, one line says how much.
    pub kept: Vec<u8>,
    /// The middle is gone.
    pub truncated: bool,
}

impl CapturedLog {
    /// The kept bytes as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }
}

/// Keeps the first and the last bytes of a stream.
#[derive(Debug)]
pub(crate) struct LogBuffer {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_limit: usize,
    tail_limit: usize,
    bytes: u64,
    observer: Option<(LogObserver, LogStream)>,
}

impl LogBuffer {
    /// A buffer that keeps at most `limit` bytes.
    pub(crate) fn new(limit: u64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let head_limit = limit / 2;
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            head_limit,
            tail_limit: limit - head_limit,
            bytes: 0,
            observer: None,
        }
    }

    /// Shows what is added to an observer as well.
    pub(crate) fn observed(mut self, observer: Option<&LogObserver>, stream: LogStream) -> Self {
        self.observer = observer.map(|observer| (observer.clone(), stream));
        self
    }

    /// Adds what was read.
    pub(crate) fn push(&mut self, chunk: &[u8]) {
        if let Some((observer, stream)) = &self.observer {
            observer.see(LogPart {
                stream: *stream,
                skipped: 0,
                bytes: chunk,
            });
        }
        self.bytes += chunk.len() as u64;
        let take = chunk.len().min(self.head_limit - self.head.len());
        let (head, rest) = chunk.split_at(take);
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.tail_limit)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.tail_limit);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// Bytes that were added so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What was kept.
    pub(crate) fn finish(self) -> CapturedLog {
        let Self { head, tail, bytes, .. } = self;
        CapturedLog::of_ends(head, &Vec::from(tail), bytes)
    }
}

impl CapturedLog {
    /// A log of which the beginning and the end are kept.
    pub(crate) fn of_ends(head: Vec<u8>, tail: &[u8], bytes: u64) -> Self {
        let dropped = bytes.saturating_sub((head.len() + tail.len()) as u64);
        let truncated = dropped > 0;
        let mut kept = head;
        if truncated {
            kept.extend_from_slice(format!("\n[... {dropped} bytes left out ...]\n").as_bytes());
        }
        kept.extend_from_slice(tail);
        Self::of_kept(kept, bytes, truncated)
    }

    /// A log as it was kept, of so many bytes.
    pub(crate) fn of_kept(kept: Vec<u8>, bytes: u64, truncated: bool) -> Self {
        let head_end = text_boundary(&kept, kept.len().min(EXCERPT_BYTES));
        let tail_start = text_boundary(&kept, kept.len().saturating_sub(EXCERPT_BYTES).max(head_end));
        Self {
            head: String::from_utf8_lossy(&kept[..head_end]).into_owned(),
            tail: String::from_utf8_lossy(&kept[tail_start..]).into_owned(),
            bytes,
            kept,
            truncated,
        }
    }
}

/// Largest position up to `at` that does not cut a UTF-8 sequence.
fn text_boundary(bytes: &[u8], at: usize) -> usize {
    if at >= bytes.len() {
        return bytes.len();
    }
    (at.saturating_sub(3)..=at)
        .rev()
        .find(|&i| bytes[i] & 0xC0 != 0x80)
        .unwrap_or(at)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn capture(limit: u64, chunks: &[&[u8]]) -> CapturedLog {
        let mut buffer = LogBuffer::new(limit);
        chunks.iter().for_each(|chunk| buffer.push(chunk));
        buffer.finish()
    }

    #[test]
    fn short_output_is_kept_whole() {
        let log = capture(100, &[b"one\n", b"two\n"]);
        assert_eq!(
            (log.text().as_str(), log.bytes, log.truncated),
            ("one\ntwo\n", 8, false)
        );
        assert_eq!((log.head.as_str(), log.tail.as_str()), ("one\ntwo\n", ""));
    }

    #[test]
    fn output_at_the_limit_is_not_truncated() {
        let log = capture(10, &[b"0123456789"]);
        assert_eq!((log.text().as_str(), log.truncated), ("0123456789", false));
        let log = capture(10, &[b"0123456789a"]);
        assert_eq!(log.text(), "01234\n[... 1 bytes left out ...]\n6789a");
        assert!(log.truncated);
    }

    #[test]
    fn memory_stays_bounded_and_the_end_is_kept() {
        let mut buffer = LogBuffer::new(1000);
        for i in 0..10_000 {
            buffer.push(format!("line {i}\n").as_bytes());
        }
        assert!(buffer.head.capacity() < 4096 && buffer.tail.capacity() < 4096);
        let log = buffer.finish();
        assert!(log.truncated && log.text().starts_with("line 0\n") && log.text().ends_with("line 9999\n"));
        assert_eq!(
            log.bytes,
            (0..10_000).map(|i| format!("line {i}\n").len() as u64).sum::<u64>()
        );
    }

    #[test]
    fn a_limit_of_zero_counts_only() {
        let log = capture(0, &[b"abc"]);
        assert_eq!((log.bytes, log.truncated), (3, true));
    }

    #[test]
    fn excerpts_do_not_overlap_nor_cut_characters() {
        let text = "é".repeat(6000);
        let log = capture(1 << 20, &[text.as_bytes()]);
        assert_eq!(format!("{}{}", log.head, log.tail), text);
        assert!(!log.head.contains('\u{fffd}'));
    }

    #[test]
    fn bytes_that_are_no_text_are_kept() {
        let log = capture(100, &[&[0xff, 0x00, 0xfe]]);
        assert_eq!(log.kept, vec![0xff, 0x00, 0xfe]);
    }
}
