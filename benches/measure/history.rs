//! Synthetic history: nodes with everything that a search writes with them, as a search of that size would leave it.

use std::sync::Arc;

use anyhow::Result;
use clade::engine::Engine;
use clade::scheduler::sha256_hex;
use clade_catalog::{FlushScope, Rows, Store, Txn, Value};

use crate::fixture::TASK;

/// Nodes of one commit. A search commits them one by one; that many at once save the time of the benchmark.
const AT_ONCE: usize = 20;
const STATEMENT: &str = "01990000-0000-7000-8000-000000000001";
const FAMILIES: [&str; 6] = ["linear", "forest", "gradient_boosting", "neighbors", "svm", "neural"];

/// A pseudo-random number for a place; the same in every run.
fn random(place: usize, use_: u64) -> u64 {
    let mut state = (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ use_.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state ^= state >> 31;
    state = state.wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 29)
}

/// A program of about `bytes` bytes whose text differs from node to node as real programs do: words, numbers, names.
pub fn program(place: usize, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 80);
    let mut line = 0;
    while text.len() < bytes {
        let (a, b) = (random(place, line) % 1000, random(place, line + 1) % 1000);
        text.push_str(&format!("model_{a} = make_model(depth={b}, rate={}.{a})\n", place % 7));
        line += 2;
    }
    text
}

/// One node of a run's history.
pub struct Node {
    run_id: String,
    place: usize,
    parent: Option<usize>,
    operator: &'static str,
    score: Option<f64>,
    bytes: usize,
}

impl Node {
    /// Node number `place` of a run, from 0. One in ten fails and the next repairs it; the others improve an earlier node.
    pub fn new(run_id: &str, place: usize, bytes: usize) -> Self {
        let fails = |place: usize| place % 10 == 8;
        let (operator, parent) = match place {
            0..5 => ("draft", None),
            _ if fails(place - 1) => ("debug", Some(place - 1)),
            _ => {
                let parent = (random(place, 1) % place as u64) as usize;
                ("improve", Some(if fails(parent) { parent - 1 } else { parent }))
            }
        };
        Self {
            run_id: run_id.to_owned(),
            place,
            parent,
            operator,
            score: (!fails(place)).then(|| (random(place, 2) % 1_000_003) as f64 / 1_000_003.0),
            bytes,
        }
    }

    fn id(&self, place: usize, what: &str) -> String {
        sha256_hex(format!("{} {what} {place}", self.run_id).as_bytes())
    }

    fn time(&self) -> Value {
        Value::Timestamp(1_790_000_000_000_000 + self.place as i64 * 1000)
    }

    /// The row of its attempt; it is planned in an earlier commit than it is done.
    pub fn attempt(&self, rows: &mut Rows, status: &str) -> Result<()> {
        let place = self.place;
        let parent = self.parent.map(|parent| self.id(parent, "node"));
        rows.push([
            ("attempt_id", self.id(place, "attempt").into()),
            ("statement_id", STATEMENT.into()),
            ("run_id", self.run_id.as_str().into()),
            ("task_id", TASK.into()),
            ("ordinal", (place as i64).into()),
            ("sample", 0.into()),
            ("step", (place as i64 + 1).into()),
            ("generation", (place as i64 / 5).into()),
            ("island", 0.into()),
            ("operator", self.operator.into()),
            ("parent_id", parent.into()),
            ("seed", (place as i64).into()),
            ("policy", "openmle_evo".into()),
            ("snapshot_id", 1.into()),
            (
                "draw",
                "{\"operator\":\"improve\",\"parents\":[],\"priority\":1.0,\"candidates\":[],\"numbers\":[0.5,0.25]}"
                    .into(),
            ),
            ("status", status.into()),
            ("tries", 1.into()),
            ("late", false.into()),
            ("queued_at", self.time()),
        ])?;
        Ok(())
    }

    pub fn node(&self, rows: &mut Rows) -> Result<()> {
        let place = self.place;
        let fails = self.score.is_none();
        let status = if fails { "code_execution_error" } else { "success" };
        let parent = self.parent.map(|parent| self.id(parent, "node"));
        rows.push([
            ("node_id", self.id(place, "node").into()),
            ("run_id", self.run_id.as_str().into()),
            ("task_id", TASK.into()),
            ("attempt_id", self.id(place, "attempt").into()),
            ("statement_id", STATEMENT.into()),
            ("step", (place as i64 + 1).into()),
            ("generation", (place as i64 / 5).into()),
            ("island", 0.into()),
            ("operator", self.operator.into()),
            ("parent_id", parent.into()),
            ("code", program(place, self.bytes).into()),
            ("code_hash", self.id(place, "code").into()),
            ("code_fingerprint", self.id(place, "code").into()),
            ("plan", "Another depth and another rate.".into()),
            ("status", status.into()),
            ("is_buggy", fails.into()),
            ("score", self.score.into()),
            ("signed_score", self.score.into()),
            ("score_source", if fails { "none" } else { "evaluator" }.into()),
            (
                "delta_vs_parent",
                self.score
                    .filter(|_| self.parent.is_some())
                    .map(|score| score - 0.5)
                    .into(),
            ),
            ("error_class", fails.then_some("candidate").map(str::to_owned).into()),
            (
                "error_signature",
                fails.then(|| format!("ValueError:{}", random(place, 3) % 20)).into(),
            ),
            ("imports", vec!["pandas".to_owned(), "sklearn".to_owned()].into()),
            ("method_family", FAMILIES[(random(place, 4) % 6) as usize].into()),
            ("family_count_before", (place as i64 / 6).into()),
            ("admitted", self.score.is_some_and(|score| score >= 0.5).into()),
            ("job_id", self.id(place, "job").into()),
            ("model", "scripted".into()),
            ("seed", (place as i64).into()),
            ("tokens_prompt", (1000 + (random(place, 5) % 3000) as i64).into()),
            ("tokens_completion", (200 + (random(place, 6) % 800) as i64).into()),
            ("model_seconds", 1.5.into()),
            ("sandbox_seconds", 2.5.into()),
            ("queued_at", self.time()),
            ("started_at", self.time()),
            ("finished_at", self.time()),
        ])?;
        Ok(())
    }

    pub fn edge(&self, rows: &mut Rows) -> Result<()> {
        if let Some(parent) = self.parent {
            rows.push([
                ("run_id", self.run_id.as_str().into()),
                ("task_id", TASK.into()),
                ("parent_id", self.id(parent, "node").into()),
                ("child_id", self.id(self.place, "node").into()),
                ("role", "parent".into()),
                ("operator", self.operator.into()),
                ("delta", self.score.map(|score| score - 0.5).into()),
            ])?;
        }
        Ok(())
    }

    fn generation(&self, rows: &mut Rows) -> Result<()> {
        let prompt = program(self.parent.unwrap_or_default(), self.bytes);
        let response = program(self.place, self.bytes);
        rows.push([
            ("generation_id", self.id(self.place, "generation").into()),
            ("attempt_id", self.id(self.place, "attempt").into()),
            ("run_id", self.run_id.as_str().into()),
            ("task_id", TASK.into()),
            ("operator", self.operator.into()),
            ("operator_version", "1".into()),
            ("model", "scripted".into()),
            ("request_hash", self.id(self.place, "request").into()),
            ("seed", (self.place as i64).into()),
            ("sample", 0.into()),
            ("parameters", "{\"temperature\":0.7}".into()),
            ("prompt_bytes", (prompt.len() as i64).into()),
            ("prompt_hash", self.id(self.place, "prompt").into()),
            ("prompt", prompt.into()),
            ("response_bytes", (response.len() as i64).into()),
            ("response_hash", self.id(self.place, "response").into()),
            ("response", response.into()),
            ("finish_reason", "stop".into()),
            ("cached", false.into()),
            ("started_at", self.time()),
            ("finished_at", self.time()),
        ])?;
        Ok(())
    }

    fn job(&self, rows: &mut Rows) -> Result<()> {
        let log = format!("fold 1: {}\nfold 2: {}\n", random(self.place, 7), random(self.place, 8));
        rows.push([
            ("job_id", self.id(self.place, "job").into()),
            ("attempt_id", self.id(self.place, "attempt").into()),
            ("run_id", self.run_id.as_str().into()),
            ("task_id", TASK.into()),
            ("split", "validation".into()),
            ("backend", "instant".into()),
            ("status", "success".into()),
            ("oom", false.into()),
            ("stdout_bytes", (log.len() as i64).into()),
            ("stdout_head", log.into()),
            ("stdout_tail", "".into()),
            ("stderr_head", "".into()),
            ("stderr_tail", "".into()),
            ("stderr_bytes", 0.into()),
            ("logs_truncated", false.into()),
            ("score", self.score.into()),
            ("code_hash", self.id(self.place, "code").into()),
            ("submission_hash", self.id(self.place, "submission").into()),
            ("submission_bytes", 20_000.into()),
            ("isolation", "{}".into()),
            ("warm", false.into()),
            ("queued_at", self.time()),
            ("started_at", self.time()),
            ("finished_at", self.time()),
        ])?;
        Ok(())
    }
}

/// The commit of finished nodes, with the planned attempts of those that follow.
pub fn commit(done: &[Node], planned: &[Node]) -> Result<Txn> {
    let mut txn = Txn::new();
    let mut attempts = Rows::new("evo.attempts")?;
    for node in done {
        node.attempt(&mut attempts, "done")?;
    }
    for node in planned {
        node.attempt(&mut attempts, "planned")?;
    }
    type Push = fn(&Node, &mut Rows) -> Result<()>;
    let tables: [(&str, Push); 4] = [
        ("evo.nodes", Node::node),
        ("evo.edges", Node::edge),
        ("evo.generations", Node::generation),
        ("sandbox.jobs", Node::job),
    ];
    for (table, push) in tables {
        let mut rows = Rows::new(table)?;
        for node in done {
            push(node, &mut rows)?;
        }
        if !rows.is_empty() {
            txn.append(table, rows);
        }
    }
    if !attempts.is_empty() {
        txn.append("evo.attempts", attempts);
    }
    Ok(txn)
}

/// Adds nodes to a run, and moves them to the cold tier as the background task would.
pub async fn fill(store: &Store, run_id: &str, nodes: usize, bytes: usize) -> Result<()> {
    let nodes_from = |first: usize| -> Vec<Node> {
        (first..(first + AT_ONCE).min(nodes))
            .map(|place| Node::new(run_id, place, bytes))
            .collect()
    };
    let mut next = nodes_from(0);
    store.commit(commit(&[], &next)?).await?;
    for first in (0..nodes).step_by(AT_ONCE) {
        let done = std::mem::replace(&mut next, nodes_from(first + AT_ONCE));
        store.commit(commit(&done, &next)?).await?;
        if first % 10_000 == 0 {
            store.flush(FlushScope::Due).await?;
        }
    }
    Ok(())
}

/// The run that a search of one step leaves, with more nodes: what selection sees in a run of that size.
pub async fn run_of(engine: &Arc<Engine>, run_id: &str, nodes: usize, bytes: usize) -> Result<()> {
    let evolve = format!("EVOLVE TASK '{TASK}' WITH (steps => 1, seed => 1, grade => false, id => '{run_id}')");
    crate::fixture::rows(engine, &evolve).await?;
    fill(engine.store(), run_id, nodes, bytes).await
}
