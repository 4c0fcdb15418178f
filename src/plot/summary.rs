//! Title, subtitle and footer.

use std::collections::BTreeMap;

use super::scale::score_text;
use super::style::OPERATORS;
use super::{History, PlotRun};

/// First characters of an id that are shown.
const SHORT_ID: usize = 12;

/// Kinds of failure that the footer names.
const NAMED_FAILURES: usize = 3;

/// `task · policy · model`.
pub(super) fn title(run: &PlotRun) -> String {
    format!("{}  ·  {}  ·  {}", run.task, run.policy, run.model)
}

/// The best score, where it was found, and the run.
pub(super) fn subtitle(run: &PlotRun, history: &History) -> String {
    let found = history.best.and_then(|best| {
        let node = &history.nodes[best];
        let score = score_text(node.score?);
        Some(format!(
            "best {} {score} at step {} (node {})",
            run.metric,
            node.step,
            short(&node.node_id)
        ))
    });
    let found = found.unwrap_or_else(|| "no valid score yet".to_owned());
    format!("{found}  ·  run {} ({})", short(&run.run_id), run.status)
}

/// `metric (higher is better)`.
pub(super) fn metric(run: &PlotRun) -> String {
    format!(
        "{} ({} is better)",
        run.metric,
        if run.higher_is_better { "higher" } else { "lower" }
    )
}

/// Two lines: counts of programs and failures; operators, and the scores that are beyond the axis.
pub(super) fn footer(history: &History, beyond: usize) -> [String; 2] {
    let nodes = &history.nodes;
    let scored = history.scored().count();
    let mut text = format!("{}  ·  {scored} scored", counted(nodes.len(), "program"));
    let failed = nodes.iter().filter(|node| node.valid_score().is_none());
    let mut causes: BTreeMap<&str, usize> = BTreeMap::new();
    failed.for_each(|node| *causes.entry(&node.status).or_default() += 1);
    if !causes.is_empty() {
        let mut causes: Vec<_> = causes.into_iter().collect();
        causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let mut named: Vec<String> = causes
            .iter()
            .take(NAMED_FAILURES)
            .map(|(cause, count)| format!("{cause} {count}"))
            .collect();
        let others: usize = causes.iter().skip(NAMED_FAILURES).map(|(_, count)| count).sum();
        if others > 0 {
            named.push(format!("other {others}"));
        }
        text.push_str(&format!("  ·  {} failed ({})", nodes.len() - scored, named.join(", ")));
    }
    let mut second: Vec<String> = OPERATORS
        .iter()
        .map(|(name, _)| (name, nodes.iter().filter(|node| node.operator == *name).count()))
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    if beyond > 0 {
        second.push(format!("{} beyond the axis (triangles)", counted(beyond, "score")));
    }
    [text, second.join("  ·  ")]
}

/// The first characters of an id.
fn short(id: &str) -> String {
    id.chars().take(SHORT_ID).collect()
}

/// `1 program`, `2 programs`.
fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
