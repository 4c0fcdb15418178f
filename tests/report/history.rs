//! Recorded searches of any size, with everything that a report reads.

use std::path::PathBuf;

use clade_catalog::{Rows, Store, StoreOptions, Txn, Value};

use crate::cli::fixture::Place;

/// Microseconds of the first recorded moment.
const START: i64 = 1_764_400_000_000_000;

/// What is recorded.
#[derive(Debug, Clone)]
pub struct Search {
    pub run_id: &'static str,
    pub task_id: String,
    pub title: String,
    pub policy: String,
    pub seed: u64,
    pub nodes: usize,
    /// Lines of a program.
    pub lines: usize,
    /// Whether programs share no line with their parents.
    pub rewrites: bool,
    /// What is put into every text that a program, a log or a name can hold.
    pub hostile: &'static str,
    pub status: &'static str,
    pub is_graded: bool,
    /// Whether a memory model was asked, for every program with a parent: 350 tokens and 0.25 cents each time.
    pub has_memory: bool,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            run_id: "01report",
            task_id: "abalone".to_owned(),
            title: "Age of abalone".to_owned(),
            policy: "openmle_evo".to_owned(),
            seed: 1,
            nodes: 40,
            lines: 30,
            rewrites: false,
            hostile: "",
            status: "finished",
            is_graded: true,
            has_memory: false,
        }
    }
}

/// A program that was made, as the tests expect to find it in the page.
#[derive(Debug, Clone)]
pub struct Made {
    pub id: String,
    pub step: usize,
    pub operator: &'static str,
    pub parents: Vec<usize>,
    pub lines: Vec<String>,
    /// Lower is better.
    pub score: Option<f64>,
}

/// A generator of numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % below.max(1)
    }
}

impl Search {
    /// The programs of the search: five drafts, then improvements of good parents, crossovers, failures and their repairs.
    pub fn made(&self) -> Vec<Made> {
        let mut numbers = Numbers(self.seed);
        let mut made: Vec<Made> = Vec::with_capacity(self.nodes);
        for place in 0..self.nodes {
            let good: Vec<usize> = (0..place).filter(|at| made[*at].score.is_some()).collect();
            let failed_before = place > 0 && made[place - 1].score.is_none() && made[place - 1].operator != "debug";
            let (operator, parents) = if failed_before {
                ("debug", vec![place - 1])
            } else if place < 5 || good.len() < 2 {
                ("draft", vec![])
            } else if place % 4 == 0 {
                (
                    "crossover",
                    vec![good[good.len() - 1], good[numbers.next(good.len() - 1)]],
                )
            } else {
                ("improve", vec![good[good.len() - 1 - numbers.next(good.len().min(8))]])
            };
            let fails = place > 5 && numbers.next(6) == 0;
            let score = (!fails).then(|| match parents.first() {
                None => 2.6 + numbers.next(1000) as f64 / 4_000.0,
                Some(parent) => {
                    let base = made[*parent].score.unwrap_or(2.7);
                    base + (numbers.next(1000) as f64 - 560.0) / 40_000.0
                }
            });
            let mut lines = match parents.first() {
                Some(parent) if !self.rewrites => made[*parent].lines.clone(),
                _ => (0..self.lines)
                    .map(|line| self.line(place, line, &mut numbers))
                    .collect(),
            };
            for _ in 0..3 {
                let at = numbers.next(lines.len());
                lines[at] = self.line(place, at, &mut numbers);
            }
            made.push(Made {
                id: format!("n{}{place:05}", self.run_id),
                step: place + 1,
                operator,
                parents,
                lines,
                score,
            });
        }
        made
    }

    fn line(&self, place: usize, line: usize, numbers: &mut Numbers) -> String {
        let hostile = if line.is_multiple_of(7) { self.hostile } else { "" };
        format!(
            "model_{line} = make_model(depth={}, rate=0.{}, name=\"p{place}\")  # {hostile}",
            numbers.next(90),
            numbers.next(9_999)
        )
    }

    /// Records the search in a store of a place.
    pub fn record(&self, place: &Place) {
        let folder = place.path().join("clade-store");
        if !folder.exists() {
            place.run(["init"]).ok();
        }
        let store = Store::open(&folder, StoreOptions::default()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let made = self.made();
        runtime.block_on(async {
            store.commit(self.head(&made)).await.unwrap();
            for chunk in made.chunks(500) {
                store.commit(self.programs(&made, chunk)).await.unwrap();
            }
        });
        drop(store);
        let control = rusqlite::Connection::open(folder.join("clade.sqlite")).unwrap();
        for (resource, limit, spent) in [
            ("steps", Some(self.nodes as f64), self.nodes as f64),
            ("sandbox_seconds", Some(7_200.0), 1_800.0),
            ("tokens", None, 12_345.0),
        ] {
            control
                .execute(
                    "INSERT INTO budgets (scope, resource, \"limit\", spent, reserved) VALUES (?1, ?2, ?3, ?4, 0)",
                    rusqlite::params![self.run_id, resource, limit, spent],
                )
                .unwrap();
        }
    }

    /// Writes the page about all recorded runs and gives its path.
    pub fn report(place: &Place, runs: &[&str]) -> PathBuf {
        let arguments = ["report", "--out", "page.html"].into_iter().chain(runs.iter().copied());
        place.run(arguments).ok();
        place.path().join("page.html")
    }

    fn head(&self, made: &[Made]) -> Txn {
        let best = made
            .iter()
            .filter(|node| node.score.is_some())
            .min_by(|a, b| a.score.partial_cmp(&b.score).unwrap());
        let mut txn = Txn::new();
        let mut tasks = Rows::new("gym.tasks").unwrap();
        tasks
            .push([
                ("task_id", self.task_id.as_str().into()),
                ("title", format!("{}{}", self.title, self.hostile).into()),
                ("description", "Predict the age.".into()),
                ("modality", "tabular".into()),
                ("task_type", "regression".into()),
                ("metric", "mae".into()),
                ("higher_is_better", false.into()),
                ("package_hash", "p1".into()),
                ("package_path", "tasks/abalone/p1".into()),
                ("source", "/data/abalone".into()),
                ("validation", "split".into()),
                ("imported_at", at(0)),
            ])
            .unwrap();
        txn.append("gym.tasks", tasks);
        let mut runs = Rows::new("evo.runs").unwrap();
        runs.push([
            ("run_id", self.run_id.into()),
            ("task_id", self.task_id.as_str().into()),
            ("statement_id", self.run_id.into()),
            ("status", self.status.into()),
            ("policy", format!("{}{}", self.policy, self.hostile).into()),
            ("policy_sql", format!("SELECT 1 -- {}", self.hostile).into()),
            ("model", format!("evolver{}", self.hostile).into()),
            ("sandbox", "native".into()),
            ("mode", "async".into()),
            ("seed", 7.into()),
            ("workers", 2.into()),
            ("steps_limit", (self.nodes as i64).into()),
            ("steps_done", (self.nodes as i64).into()),
            ("options", "{}".into()),
            ("best_node_id", best.map(|best| best.id.clone()).into()),
            (
                "error",
                (!self.hostile.is_empty()).then(|| self.hostile.to_owned()).into(),
            ),
            ("stop_reason", "steps".into()),
            ("engine_version", "0.1.0".into()),
            ("created_at", at(0)),
            ("started_at", at(1)),
            ("finished_at", at(3_725)),
        ])
        .unwrap();
        txn.append("evo.runs", runs);
        if let (true, Some(best)) = (self.is_graded, best) {
            let mut grades = Rows::new("bench.grades").unwrap();
            grades
                .push([
                    ("submission_id", format!("s{}", self.run_id).into()),
                    ("run_id", self.run_id.into()),
                    ("node_id", best.id.as_str().into()),
                    ("task_id", self.task_id.as_str().into()),
                    ("status", "success".into()),
                    ("valid", true.into()),
                    ("score", 2.125.into()),
                    ("medal", "silver".into()),
                    ("rank", 2.into()),
                    ("teams", 11.into()),
                    ("graded_at", at(3_726)),
                ])
                .unwrap();
            txn.append("bench.grades", grades);
        }
        txn
    }

    fn programs(&self, made: &[Made], chunk: &[Made]) -> Txn {
        let table = |name| Rows::new(name).unwrap();
        let (mut nodes, mut jobs) = (table("evo.nodes"), table("sandbox.jobs"));
        let (mut attempts, mut shown, mut edges) =
            (table("evo.attempts"), table("evo.prompts_used"), table("evo.edges"));
        let (mut requests, mut summaries) = (table("evo.generations"), table("evo.summaries"));
        for node in chunk {
            let attempt = format!("a{}", node.id);
            let step = node.step as i64;
            let failed = node.score.is_none();
            let parent = |at: usize| node.parents.get(at).map(|parent| made[*parent].id.clone());
            let delta = node.score.and_then(|score| {
                let parents = node.parents.iter().filter_map(|parent| made[*parent].score);
                parents.reduce(f64::min).map(|best| best - score)
            });
            let error = failed.then(|| format!("ValueError: input contains NaN at step {step} {}", self.hostile));
            nodes
                .push([
                    ("node_id", node.id.as_str().into()),
                    ("run_id", self.run_id.into()),
                    ("task_id", self.task_id.as_str().into()),
                    ("attempt_id", attempt.clone().into()),
                    ("statement_id", self.run_id.into()),
                    ("step", step.into()),
                    ("island", 0.into()),
                    ("operator", node.operator.into()),
                    ("parent_id", parent(0).into()),
                    ("parent2_id", parent(1).into()),
                    ("code", format!("{}\n", node.lines.join("\n")).into()),
                    ("code_hash", format!("h{}", node.id).into()),
                    ("plan", format!("Fit a model. {}", self.hostile).into()),
                    ("status", if failed { "code_execution_error" } else { "success" }.into()),
                    ("is_buggy", failed.into()),
                    ("score", node.score.into()),
                    ("signed_score", node.score.map(|score| -score).into()),
                    ("score_source", if failed { "none" } else { "evaluator" }.into()),
                    ("delta_vs_parent", delta.into()),
                    ("error_class", failed.then(|| "candidate".to_owned()).into()),
                    (
                        "error_signature",
                        failed.then(|| format!("ValueError: fit{}", self.hostile)).into(),
                    ),
                    ("error", error.clone().into()),
                    (
                        "method_family",
                        format!("{}{}", ["linear", "forest", "boosting"][node.step % 3], self.hostile).into(),
                    ),
                    ("family_count_before", 0.into()),
                    ("admitted", true.into()),
                    ("job_id", format!("j{}", node.id).into()),
                    ("model", "evolver".into()),
                    ("seed", step.into()),
                    ("tokens_prompt", 1_000.into()),
                    ("tokens_completion", 200.into()),
                    ("cost_usd", 0.01.into()),
                    ("model_seconds", 0.5.into()),
                    ("sandbox_seconds", (4.0 + (node.step % 9) as f64).into()),
                    ("queued_at", at(step)),
                    ("started_at", at(step)),
                    ("finished_at", at(step + 2)),
                ])
                .unwrap();
            let stderr = error.map_or(String::new(), |error| {
                format!("Traceback (most recent call last):\n{error}\n")
            });
            let stdout = format!("score {:?} {}\n", node.score, self.hostile);
            jobs.push([
                ("job_id", format!("j{}", node.id).into()),
                ("attempt_id", attempt.clone().into()),
                ("run_id", self.run_id.into()),
                ("task_id", self.task_id.as_str().into()),
                ("split", "validation".into()),
                ("backend", "native".into()),
                ("status", if failed { "code_execution_error" } else { "success" }.into()),
                ("oom", false.into()),
                ("peak_memory_bytes", 120_000_000.into()),
                ("stdout_head", stdout.clone().into()),
                ("stdout_tail", "".into()),
                ("stdout_bytes", (stdout.len() as i64).into()),
                ("stderr_head", stderr.clone().into()),
                ("stderr_tail", "".into()),
                ("stderr_bytes", (stderr.len() as i64).into()),
                ("logs_truncated", false.into()),
                ("code_hash", format!("h{}", node.id).into()),
                ("isolation", "{}".into()),
                ("warm", false.into()),
                ("queued_at", at(step)),
                ("finished_at", at(step + 2)),
            ])
            .unwrap();
            let candidates: Vec<_> = node
                .parents
                .iter()
                .map(|parent| serde_json::json!({"parent_id": made[*parent].id, "weight": 0.25, "probability": 0.25}))
                .collect();
            let draw = serde_json::json!({
                "operator": node.operator,
                "parents": node.parents.iter().map(|parent| &made[*parent].id).collect::<Vec<_>>(),
                "priority": 1.0,
                "operators": [{"operator": node.operator, "weight": 0.5, "probability": 0.5}],
                "candidates": candidates,
                "candidate_count": if node.parents.is_empty() { 0 } else { node.step - 1 },
                "effective_candidates": if node.parents.is_empty() { 0.0 } else { (node.step as f64).sqrt() },
                "numbers": [0.5, 0.25],
            });
            attempts
                .push([
                    ("attempt_id", attempt.clone().into()),
                    ("statement_id", self.run_id.into()),
                    ("run_id", self.run_id.into()),
                    ("task_id", self.task_id.as_str().into()),
                    ("ordinal", step.into()),
                    ("sample", 0.into()),
                    ("step", step.into()),
                    ("island", 0.into()),
                    ("operator", node.operator.into()),
                    ("parent_id", parent(0).into()),
                    ("parent2_id", parent(1).into()),
                    ("seed", step.into()),
                    ("policy", self.policy.as_str().into()),
                    ("snapshot_id", 1.into()),
                    ("draw", draw.to_string().into()),
                    ("status", "done".into()),
                    ("node_id", node.id.as_str().into()),
                    ("tries", 1.into()),
                    ("late", false.into()),
                    ("queued_at", at(step)),
                ])
                .unwrap();
            requests
                .push([
                    ("generation_id", format!("g{}", node.id).into()),
                    ("attempt_id", attempt.clone().into()),
                    ("run_id", self.run_id.into()),
                    ("task_id", self.task_id.as_str().into()),
                    ("operator", node.operator.into()),
                    ("operator_version", "v1".into()),
                    ("model", "evolver".into()),
                    ("request_hash", format!("q{}", node.id).into()),
                    ("seed", step.into()),
                    ("sample", 0.into()),
                    ("parameters", "{}".into()),
                    ("prompt", "Improve it.".into()),
                    ("prompt_bytes", 11.into()),
                    ("prompt_hash", "p".into()),
                    ("response", "Here it is.".into()),
                    ("cached", false.into()),
                    ("tokens_prompt", 1_000.into()),
                    ("tokens_completion", 200.into()),
                    ("cost_usd", 0.01.into()),
                    ("started_at", at(step)),
                    ("finished_at", at(step + 1)),
                ])
                .unwrap();
            if self.has_memory && !node.parents.is_empty() {
                summaries
                    .push([
                        ("node_id", node.id.as_str().into()),
                        ("model", "notes".into()),
                        ("method_overview", "A model.".into()),
                        ("parent_comparison_experience", "It is better.".into()),
                        ("source", "model".into()),
                        ("run_id", self.run_id.into()),
                        ("attempt_id", attempt.clone().into()),
                        ("tokens_prompt", 300.into()),
                        ("tokens_completion", 50.into()),
                        ("cost_usd", 0.0025.into()),
                        ("model_seconds", 0.25.into()),
                        ("created_at", at(step)),
                    ])
                    .unwrap();
            }
            for (position, parent) in node.parents.iter().enumerate() {
                let role = ["parent", "parent2"][position];
                shown
                    .push([
                        ("generation_id", format!("g{}", node.id).into()),
                        ("attempt_id", attempt.clone().into()),
                        ("run_id", self.run_id.into()),
                        ("node_id", made[*parent].id.as_str().into()),
                        ("role", role.into()),
                        ("position", (position as i64).into()),
                    ])
                    .unwrap();
                edges
                    .push([
                        ("run_id", self.run_id.into()),
                        ("task_id", self.task_id.as_str().into()),
                        ("parent_id", made[*parent].id.as_str().into()),
                        ("child_id", node.id.as_str().into()),
                        ("role", role.into()),
                        ("operator", node.operator.into()),
                        ("delta", delta.into()),
                    ])
                    .unwrap();
            }
        }
        let mut txn = Txn::new();
        for (name, rows) in [
            ("evo.nodes", nodes),
            ("sandbox.jobs", jobs),
            ("evo.attempts", attempts),
            ("evo.prompts_used", shown),
            ("evo.edges", edges),
            ("evo.generations", requests),
            ("evo.summaries", summaries),
        ] {
            txn.append(name, rows);
        }
        txn
    }
}

fn at(seconds: i64) -> Value {
    Value::Timestamp(START + seconds * 1_000_000)
}
