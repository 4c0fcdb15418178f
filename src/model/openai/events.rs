//! Server-sent events, from bytes as they come to the data of whole events.

/// Takes bytes in pieces of any size and gives the data of each event.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// Bytes after the last line break.
    rest: Vec<u8>,
    /// How many of them are known to hold no line break.
    searched: usize,
    /// Data lines of the event that is being read.
    data: Vec<String>,
}

impl Events {
    /// Takes a piece; returns the events that it completes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        self.rest.extend_from_slice(bytes);
        let mut events = Vec::new();
        let (mut start, mut search) = (0, self.searched);
        while let Some(length) = self.rest[search..].iter().position(|byte| *byte == b'\n') {
            let end = search + length;
            let line = String::from_utf8_lossy(&self.rest[start..end]).into_owned();
            (start, search) = (end + 1, end + 1);
            events.extend(self.line(line.strip_suffix('\r').unwrap_or(&line)));
        }
        self.rest.drain(..start);
        self.searched = self.rest.len();
        events
    }

    /// The event that the end of the stream completes: some services leave the last empty line out.
    pub(super) fn finish(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.rest);
        self.searched = 0;
        let line = String::from_utf8_lossy(&rest).into_owned();
        self.line(line.trim_end_matches('\r'));
        self.line("")
    }

    /// Takes one line; an empty one ends the event. Comments and other fields than `data` are left out.
    fn line(&mut self, line: &str) -> Option<String> {
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            return (!data.is_empty()).then(|| data.join("\n"));
        }
        if let Some(data) = line.strip_prefix("data:") {
            self.data.push(data.strip_prefix(' ').unwrap_or(data).to_owned());
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_the_same_however_the_bytes_come() {
        let text = ": comment\r\ndata: {\"a\":\"é\"}\r\n\r\nevent: x\ndata:one\ndata: two\n\n\n\ndata: [DONE]\n\n";
        let expected = ["{\"a\":\"é\"}", "one\ntwo", "[DONE]"];
        for size in 1..text.len() {
            let mut events = Events::default();
            let found: Vec<String> = text
                .as_bytes()
                .chunks(size)
                .flat_map(|piece| events.push(piece))
                .collect();
            assert_eq!(found, expected, "pieces of {size}");
            assert_eq!(events.finish(), None);
        }
    }

    #[test]
    fn a_last_event_without_its_empty_line_counts() {
        let mut events = Events::default();
        assert!(events.push(b"data: end").is_empty());
        assert_eq!(events.finish().as_deref(), Some("end"));
    }
}
