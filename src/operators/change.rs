//! What lies between a related program and the parent that a prompt shows, as a short diff.

use similar::TextDiff;

use super::context::ContextNode;

/// Lines of context around a change.
const CONTEXT_LINES: usize = 1;
/// Lines of a diff that are shown.
const MOST_LINES: usize = 60;
/// A longer program is not compared.
const MOST_PROGRAM_LINES: usize = 2_000;
/// Programs that have less in common are different programs; a diff of them says nothing.
const ALIKE: f32 = 0.5;

/// Gives each related node its change: of an ancestor what was changed up to the parent, of a sibling or child what it changed
/// against the parent that it is more like.
pub fn describe_changes(nodes: &mut [ContextNode], parents: usize) {
    let (parents, related) = nodes.split_at_mut(parents.min(nodes.len()));
    let programs: Vec<&str> = parents.iter().filter_map(|parent| parent.code.as_deref()).collect();
    for node in related {
        let is_earlier = node.role == "ancestor";
        if !is_earlier && node.role != "sibling" && node.role != "child" {
            continue;
        }
        let Some(code) = node.code.as_deref() else { continue };
        node.change = programs
            .iter()
            .filter_map(|parent| {
                if is_earlier {
                    change(code, parent)
                } else {
                    change(parent, code)
                }
            })
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, text)| text);
    }
}

/// How alike two programs are, and the diff that turns the first into the second; none for equal or different programs.
fn change(before: &str, after: &str) -> Option<(f32, String)> {
    let lines = |text: &str| text.lines().count();
    if before == after || lines(before).max(lines(after)) > MOST_PROGRAM_LINES {
        return None;
    }
    let diff = TextDiff::from_lines(before, after);
    let ratio = diff.ratio();
    if ratio < ALIKE {
        return None;
    }
    let text = diff.unified_diff().context_radius(CONTEXT_LINES).to_string();
    let mut lines = text.lines();
    let mut shown: Vec<&str> = lines.by_ref().take(MOST_LINES).collect();
    let more = lines.count();
    let note = format!("({more} more lines)");
    if more > 0 {
        shown.push(&note);
    }
    Some((ratio, shown.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_a_short_diff() {
        let before = "a\nb\nc\nd\ne\n";
        let after = "a\nb\nC\nd\ne\n";
        let text = change(before, after).map(|(_, text)| text);
        assert_eq!(text.as_deref(), Some("@@ -2,3 +2,3 @@\n b\n-c\n+C\n d"));
        assert!(change(before, before).is_none(), "nothing changed");
        assert!(change(before, "v\nw\nx\ny\nz\n").is_none(), "another program");
        let long: String = (0..400).map(|n| format!("line {n}\n")).collect();
        let every_third: String = (0..400)
            .map(|n| {
                if n % 3 == 0 {
                    format!("other {n}\n")
                } else {
                    format!("line {n}\n")
                }
            })
            .collect();
        let text = change(&long, &every_third).map(|(_, text)| text).unwrap_or_default();
        assert_eq!(text.lines().count(), MOST_LINES + 1);
        assert!(text.ends_with("more lines)"));
    }
}
