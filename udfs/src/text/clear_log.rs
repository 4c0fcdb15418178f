//! Takes the program's own output out of a run log.

/// Marks of a region: first all regions of the first pair are taken, then all of the second.
const REGIONS: [(&str, &str); 2] = [
    ("--- OUTPUT START ---", "--- OUTPUT END ---"),
    ("--- SANDBOX STDOUT START ---", "--- SANDBOX STDOUT END ---"),
];
/// Begins and ends a heartbeat.
const HEARTBEAT: &str = "[HB]";

/// The output regions of a run log without heartbeats, each after a line break, joined by blank lines; empty when the
/// log has none.
///
/// A region that is not closed goes to the end of the log. A heartbeat that is not closed drops the rest of its region.
pub fn clear_log(log: &str) -> String {
    let mut cleared = String::new();
    for (start, end) in REGIONS {
        let mut rest = log;
        while let Some((_, after)) = rest.split_once(start) {
            let (region, next) = after.split_once(end).unwrap_or((after, ""));
            append_region(region, &mut cleared);
            rest = next;
        }
    }
    cleared
}

fn append_region(region: &str, cleared: &mut String) {
    let text = without_heartbeats(region.trim());
    let text = text.trim();
    if text.is_empty() {
        return;
    }
    if !cleared.is_empty() {
        cleared.push_str("\n\n");
    }
    cleared.push('\n');
    cleared.push_str(text);
}

/// Every second piece between the marks is a heartbeat.
fn without_heartbeats(text: &str) -> String {
    text.split(HEARTBEAT).step_by(2).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::clear_log;

    #[test]
    fn regions_of_both_pairs() {
        let log = "--- SANDBOX STDOUT START ---\nb\n--- SANDBOX STDOUT END ---\n--- OUTPUT START ---\na [HB]x[HB]\n--- OUTPUT END ---\n\
                   --- OUTPUT START ---\nc [HB] lost";
        assert_eq!(clear_log(log), "\na\n\n\nc\n\n\nb");
    }
}
