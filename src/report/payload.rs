//! The texts that the page's script shows: programs, plans, logs, draws. Each line of a program is held once, the whole is
//! compressed, and what is in the page is base64, in which no text can pass for HTML.

use std::collections::HashMap;
use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::Serialize;

use super::error::ReportError;
use super::facts::{Draw, Log, Node, RunFacts};
use super::filters::{bytes, dollars, gain, percent};
use crate::figures::{duration, score, thousands};

/// What the script reads.
#[derive(Debug, Serialize)]
struct Payload<'a> {
    /// Lines of all programs.
    lines: Vec<&'a str>,
    /// Programs as numbers of lines.
    programs: Vec<Vec<u32>>,
    nodes: Vec<Details<'a>>,
}

/// A program with what is shown when it is opened.
#[derive(Debug, Serialize)]
struct Details<'a> {
    id: &'a str,
    step: i64,
    operator: &'a str,
    outcome: String,
    failed: bool,
    gain: Option<String>,
    /// 1 for a gain, -1 for a loss.
    sign: i8,
    facts: Vec<(&'static str, String)>,
    parents: Vec<Relative<'a>>,
    program: Option<usize>,
    /// Bytes of a program that is not shown whole.
    cut: Option<String>,
    plan: &'a str,
    logs: Vec<(String, &'a str)>,
    shown: Vec<Relative<'a>>,
    draw: Option<Lottery<'a>>,
}

/// A program that another has to do with.
#[derive(Debug, Serialize)]
struct Relative<'a> {
    role: &'a str,
    id: &'a str,
    /// Place among the programs of the page.
    node: Option<usize>,
}

/// How a program's parents were drawn.
#[derive(Debug, Serialize)]
struct Lottery<'a> {
    operators: Vec<(&'a str, String, bool)>,
    candidates: Vec<Candidate<'a>>,
    count: u64,
    effective: String,
}

/// A parent that could have been drawn.
#[derive(Debug, Serialize)]
struct Candidate<'a> {
    id: &'a str,
    node: Option<usize>,
    second: Option<usize>,
    probability: f64,
    percent: String,
    taken: bool,
}

/// The texts of a run, packed.
pub(super) fn pack(run: &RunFacts, places: &HashMap<&str, usize>) -> Result<String, ReportError> {
    let mut table = Lines::default();
    let draws: HashMap<&str, &Draw> = run
        .draws
        .iter()
        .filter_map(|draw| Some((draw.node_id.as_deref()?, draw)))
        .collect();
    let nodes = run
        .nodes
        .iter()
        .map(|node| details(run, node, places, draws.get(node.node_id.as_str()).copied(), &mut table))
        .collect();
    let payload = Payload {
        nodes,
        lines: table.lines,
        programs: table.programs,
    };
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    serde_json::to_writer(&mut encoder, &payload).map_err(std::io::Error::from)?;
    encoder.flush()?;
    Ok(STANDARD.encode(encoder.finish()?))
}

/// Lines and programs, each once.
#[derive(Default)]
struct Lines<'a> {
    lines: Vec<&'a str>,
    numbers: HashMap<&'a str, u32>,
    programs: Vec<Vec<u32>>,
    texts: HashMap<&'a str, usize>,
}

impl<'a> Lines<'a> {
    fn program(&mut self, text: &'a str) -> usize {
        if let Some(program) = self.texts.get(text) {
            return *program;
        }
        let program = text.lines().map(|line| self.line(line)).collect();
        self.programs.push(program);
        self.texts.insert(text, self.programs.len() - 1);
        self.programs.len() - 1
    }

    fn line(&mut self, line: &'a str) -> u32 {
        *self.numbers.entry(line).or_insert_with(|| {
            self.lines.push(line);
            u32::try_from(self.lines.len() - 1).unwrap_or(u32::MAX)
        })
    }
}

fn details<'a>(
    run: &'a RunFacts,
    node: &'a Node,
    places: &HashMap<&str, usize>,
    draw: Option<&'a Draw>,
    table: &mut Lines<'a>,
) -> Details<'a> {
    let relative = |role: &'a str, id: &'a str| Relative {
        role,
        id,
        node: places.get(id).copied(),
    };
    let parents = [("parent", &node.parent_id), ("second parent", &node.parent2_id)];
    let code = node.code.as_deref();
    let shown = run.shown.get(&node.node_id);
    Details {
        id: &node.node_id,
        step: node.step,
        operator: &node.operator,
        outcome: node.outcome(),
        failed: node.valid_score().is_none(),
        gain: node.gain.map(gain),
        sign: node.gain.map_or(0, |gain| i8::from(gain > 0.0) - i8::from(gain < 0.0)),
        facts: facts(node),
        parents: parents
            .into_iter()
            .filter_map(|(role, id)| Some(relative(role, id.as_deref()?)))
            .collect(),
        program: code.map(|code| table.program(code)),
        cut: code
            .filter(|code| (code.len() as i64) < node.code_bytes)
            .map(|_| bytes(node.code_bytes)),
        plan: node.plan.as_deref().unwrap_or_default().trim(),
        logs: logs(node),
        shown: shown
            .into_iter()
            .flatten()
            .map(|(id, role)| relative(role, id))
            .collect(),
        draw: draw.map(|draw| lottery(draw, places)),
    }
}

/// Facts in the order in which they are read; what is not known is left out.
fn facts(node: &Node) -> Vec<(&'static str, String)> {
    let tokens = node.tokens_prompt.zip(node.tokens_completion);
    let facts = [
        ("Node", Some(node.node_id.clone())),
        ("Family", Some(node.family.clone())),
        ("State", Some(node.status.clone())),
        (
            "Fault",
            node.error_class.as_ref().map(|class| match &node.error_signature {
                Some(signature) => format!("{class}: {signature}"),
                None => class.clone(),
            }),
        ),
        ("Limit", node.detail.clone()),
        (
            "Score",
            node.valid_score()
                .map(|value| score_with_source(value, &node.score_source)),
        ),
        ("Sandbox", node.sandbox_seconds.map(duration)),
        ("Memory", node.peak_memory_bytes.map(bytes)),
        ("Model", Some(node.model.clone())),
        ("Writing", node.model_seconds.map(duration)),
        (
            "Tokens",
            tokens.map(|(prompt, completion)| format!("{} read, {} written", thousands(prompt), thousands(completion))),
        ),
        ("Cost", node.cost_usd.map(dollars)),
        ("Seed", Some(node.seed.to_string())),
        ("Island", (node.island > 0).then(|| node.island.to_string())),
        ("Duplicate of", node.duplicate_of.clone()),
    ];
    facts
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

/// A score, with its source where that is not the evaluator.
fn score_with_source(value: f64, source: &str) -> String {
    match source {
        "evaluator" => score(value),
        source => format!("{} ({})", score(value), source.replace('_', " ")),
    }
}

fn logs(node: &Node) -> Vec<(String, &str)> {
    let log = |name: &str, log: &Log| {
        if (log.text.len() as i64) < log.bytes {
            format!("{name}, the end of {}", bytes(log.bytes))
        } else {
            name.to_owned()
        }
    };
    let error = node.error.as_deref().unwrap_or_default();
    [
        ("Error".to_owned(), error),
        (log("Standard error", &node.stderr), node.stderr.text.as_str()),
        (log("Standard output", &node.stdout), node.stdout.text.as_str()),
    ]
    .into_iter()
    .filter(|(_, text)| !text.trim().is_empty())
    .collect()
}

fn lottery<'a>(draw: &'a Draw, places: &HashMap<&str, usize>) -> Lottery<'a> {
    let record = &draw.record;
    Lottery {
        operators: record
            .operators
            .iter()
            .map(|chance| {
                let taken = chance.operator == draw.operator;
                (chance.operator.as_str(), percent(chance.probability), taken)
            })
            .collect(),
        candidates: record
            .candidates
            .iter()
            .map(|chance| Candidate {
                id: &chance.parent_id,
                node: places.get(chance.parent_id.as_str()).copied(),
                second: chance.parent2_id.as_deref().and_then(|id| places.get(id).copied()),
                probability: chance.probability,
                percent: percent(chance.probability),
                taken: draw.parents.contains(&chance.parent_id),
            })
            .collect(),
        count: record.candidate_count,
        effective: format!("{:.1}", record.effective_candidates),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_programs_are_held_once() {
        let mut table = Lines::default();
        let first = table.program("import a\nprint(a)\n");
        let second = table.program("import b\nprint(a)\n");
        assert_eq!(table.program("import a\nprint(a)\n"), first);
        assert_eq!(table.lines, ["import a", "print(a)", "import b"]);
        assert_eq!(
            [&table.programs[first], &table.programs[second]],
            [&vec![0, 1], &vec![2, 1]]
        );
    }
}
