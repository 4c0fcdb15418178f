//! Output that is sent to the server while the program runs: so much at a time that a flood does not keep the supervisor from
//! watching.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use super::protocol::SlotEvent;
use super::wire;
use crate::sandbox::observe::LogStream;

/// Bytes of each output that are shown in one interval; what is more is counted.
const SHARE_BYTES: usize = 64 << 10;
const INTERVAL: Duration = Duration::from_millis(100);

/// What was shown of both outputs.
#[derive(Debug, Default)]
pub(super) struct Live {
    shares: [Share; 2],
}

#[derive(Debug, Default)]
struct Share {
    since: Option<Instant>,
    shown: usize,
    skipped: u64,
}

impl Live {
    /// Shows bytes of an output, as far as its share of this interval goes. `Err`: the server is gone.
    pub(super) fn show(&mut self, server: &mut impl Write, stream: LogStream, bytes: &[u8]) -> io::Result<()> {
        let share = &mut self.shares[stream.index()];
        if share.since.is_none_or(|since| since.elapsed() >= INTERVAL) {
            (share.since, share.shown) = (Some(Instant::now()), 0);
        }
        let take = bytes.len().min(SHARE_BYTES - share.shown);
        let (shown, rest) = bytes.split_at(take);
        share.shown += take;
        if !shown.is_empty() {
            let skipped = std::mem::take(&mut share.skipped);
            wire::write_message(server, &SlotEvent::Output { stream, skipped })?;
            wire::write_frame(server, shown)?;
        }
        share.skipped += rest.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// What was sent: bytes skipped before, and bytes.
    fn sent(mut wire: &[u8]) -> Vec<(u64, usize)> {
        let mut parts = Vec::new();
        while let Some(event) = wire::read_message::<SlotEvent>(&mut wire).unwrap() {
            let SlotEvent::Output { skipped, .. } = event else {
                unreachable!()
            };
            let (length, rest) = wire.split_first_chunk::<4>().unwrap();
            let length = wire::frame_length(*length).unwrap();
            parts.push((skipped, length));
            wire = &rest[length..];
        }
        parts
    }

    #[test]
    fn a_flood_is_counted_rather_than_sent() {
        let (mut live, mut wire) = (Live::default(), Vec::new());
        for _ in 0..100 {
            live.show(&mut wire, LogStream::Stdout, &[b'x'; 10_000]).unwrap();
        }
        live.show(&mut wire, LogStream::Stderr, b"seen").unwrap();
        live.shares[0].since = Instant::now().checked_sub(INTERVAL);
        live.show(&mut wire, LogStream::Stdout, b"more").unwrap();
        let parts = sent(&wire);
        let shown: usize = parts.iter().map(|(_, bytes)| bytes).sum();
        let skipped: u64 = parts.iter().map(|(skipped, _)| skipped).sum();
        assert_eq!(shown as u64 + skipped, 1_000_000 + 8);
        assert_eq!(shown, SHARE_BYTES + 8);
    }
}
