//! What the template of a run reads.

use std::collections::{HashMap, HashSet};

use minijinja::Value;
use serde::Serialize;

use super::draws::{Trace, trace};
use super::error::ReportError;
use super::facts::{Resource, RunFacts};
use super::filters::dollars;
use super::lineage::{Lineage, picture};
use super::payload::pack;
use super::scores::{By, ScoreChart, best_so_far, chart};
use crate::figures::{duration, thousands};

/// A run.
#[derive(Serialize)]
pub(super) struct RunView {
    /// Number on the page, from 1.
    pub number: usize,
    pub head: Value,
    /// How much better than the first draft the best program is, and as a share of its score.
    pub gain: Option<Gain>,
    pub budget: Vec<BudgetView>,
    /// The budget in a line.
    pub limits: Vec<String>,
    pub is_thinned: bool,
    pub charts: Vec<ScoreChart>,
    pub lineage: Option<Lineage>,
    pub operators: Vec<Value>,
    pub families: Vec<Value>,
    pub failures: Vec<Value>,
    pub roles: Vec<Value>,
    pub teachers: Vec<Value>,
    pub trace: Trace,
    pub programs: Vec<ProgramRow>,
    /// Places of programs by step, for links.
    pub node_of_step: HashMap<i64, usize>,
    /// Names of the operators, those that are always there first.
    pub legend: Vec<String>,
    /// The texts for the script.
    pub payload: Value,
}

/// A gain over the first draft.
#[derive(Serialize)]
pub(super) struct Gain {
    pub value: f64,
    pub percent: Option<f64>,
}

/// A resource of the budget.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct BudgetView {
    pub name: &'static str,
    pub spent: String,
    pub limit: Option<String>,
    /// Share of the limit from 0 to 100; none without a limit.
    pub percent: Option<f64>,
}

/// A row of the list of programs.
#[derive(Serialize)]
pub(super) struct ProgramRow {
    pub step: i64,
    pub operator: String,
    pub family: String,
    pub status: String,
    pub failed: bool,
    pub score: Option<f64>,
    pub gain: Option<f64>,
    pub is_incumbent: bool,
    pub is_best: bool,
    pub parents: Vec<i64>,
    pub sandbox_seconds: Option<f64>,
    pub tokens: Option<i64>,
    pub cost_usd: Option<f64>,
}

impl RunView {
    /// The view of a run.
    pub fn new(number: usize, run: &RunFacts) -> Result<Self, ReportError> {
        let ids = run.nodes.iter().enumerate();
        let places: HashMap<&str, usize> = ids.map(|(place, node)| (node.node_id.as_str(), place)).collect();
        let payload = pack(run, &places)?;
        let lineage = picture(run);
        let best = lineage.as_ref().and_then(|lineage| lineage.best);
        let charts = [By::Step, By::SandboxTime].map(|by| chart(run, by));
        let programs = run.nodes.iter().enumerate().map(|(place, node)| ProgramRow {
            step: node.step,
            operator: node.operator.clone(),
            family: node.family.clone(),
            status: node.status.clone(),
            failed: node.valid_score().is_none(),
            score: node.valid_score(),
            gain: node.gain,
            is_incumbent: node.is_incumbent,
            is_best: best == Some(place),
            parents: [&node.parent_id, &node.parent2_id]
                .into_iter()
                .flatten()
                .filter_map(|id| places.get(id.as_str()))
                .map(|parent| run.nodes[*parent].step)
                .collect(),
            sandbox_seconds: node.sandbox_seconds,
            tokens: node.tokens_prompt.zip(node.tokens_completion).map(|(a, b)| a + b),
            cost_usd: node.cost_usd,
        });
        Ok(Self {
            number,
            head: run.head.clone(),
            gain: gain(run),
            budget: run.budget.iter().filter_map(budget).collect(),
            limits: run.budget.iter().filter_map(limit).collect(),
            is_thinned: run.is_thinned(),
            charts: charts.into_iter().flatten().collect(),
            lineage,
            operators: run.operators.clone(),
            families: run.families.clone(),
            failures: run.failures.clone(),
            roles: run.roles.clone(),
            teachers: run.teachers.clone(),
            trace: trace(run, &places),
            programs: programs.collect(),
            node_of_step: run
                .nodes
                .iter()
                .enumerate()
                .map(|(place, node)| (node.step, place))
                .collect(),
            legend: legend(run),
            payload: Value::from_safe_string(payload),
        })
    }
}

/// The gain of the best program over the first draft that has a score.
fn gain(run: &RunFacts) -> Option<Gain> {
    let first = run
        .head
        .get_attr("first_score")
        .ok()
        .and_then(|score| f64::try_from(score).ok())?;
    let (_, best) = best_so_far(run).last().copied()?;
    let value = if run.higher_is_better {
        best - first
    } else {
        first - best
    };
    Some(Gain {
        value,
        percent: (first != 0.0).then(|| value / first.abs()),
    })
}

/// Names of a resource: in a table, and of its unit in a line.
fn names(resource: &str) -> Option<(&'static str, &'static str)> {
    Some(match resource {
        "steps" => ("Steps", "steps"),
        "jobs" => ("Sandbox jobs", "jobs"),
        "sandbox_seconds" => ("Sandbox time", "in the sandbox"),
        "active_seconds" => ("Model and sandbox time", "in model and sandbox"),
        "wall_seconds" => ("Wall time", "wall time"),
        "tokens" => ("Tokens", "tokens"),
        "cost_usd" => ("Cost", ""),
        _ => return None,
    })
}

/// An amount of a resource.
fn amount(resource: &str, value: f64) -> String {
    match resource {
        "cost_usd" => dollars(value),
        name if name.ends_with("_seconds") => duration(value),
        _ => thousands(value.round() as i64),
    }
}

fn budget(resource: &Resource) -> Option<BudgetView> {
    let (name, _) = names(&resource.name)?;
    let mut spent = amount(&resource.name, resource.spent);
    if resource.reserved > 0.0 {
        spent.push_str(&format!(", {} reserved", amount(&resource.name, resource.reserved)));
    }
    Some(BudgetView {
        name,
        spent,
        limit: resource.limit.map(|limit| amount(&resource.name, limit)),
        percent: resource
            .limit
            .filter(|limit| *limit > 0.0)
            .map(|limit| (resource.spent / limit * 100.0).clamp(0.0, 100.0)),
    })
}

/// A limited resource in a few words.
fn limit(resource: &Resource) -> Option<String> {
    let (_, unit) = names(&resource.name)?;
    let limit = amount(&resource.name, resource.limit?);
    Some(format!("{limit} {unit}").trim_end().to_owned())
}

/// Operators in the order of their first programs.
fn legend(run: &RunFacts) -> Vec<String> {
    let mut seen = HashSet::new();
    let operators = run.nodes.iter().map(|node| &node.operator);
    operators.filter(|operator| seen.insert(*operator)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_says_what_is_spent_of_what() {
        let resource = |name: &str, limit, spent, reserved| Resource {
            name: name.to_owned(),
            limit,
            spent,
            reserved,
        };
        let time = resource("sandbox_seconds", Some(3_600.0), 900.0, 60.0);
        assert_eq!(
            budget(&time),
            Some(BudgetView {
                name: "Sandbox time",
                spent: "15 min 0 s, 1 min 0 s reserved".to_owned(),
                limit: Some("1 h 0 min".to_owned()),
                percent: Some(25.0),
            })
        );
        assert_eq!(limit(&time), Some("1 h 0 min in the sandbox".to_owned()));
        let free = budget(&resource("tokens", None, 1_234.0, 0.0));
        assert_eq!(
            free.map(|free| (free.spent, free.percent)),
            Some(("1,234".to_owned(), None))
        );
        assert_eq!(budget(&resource("moonlight", None, 1.0, 0.0)), None);
    }
}
