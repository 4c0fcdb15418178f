//! Compares policies on a finished run: at every recorded step, on the snapshot the step saw, what each would have chosen, and what
//! came of the parents.

use crate::operators::Operator;

use super::draw::Lottery;
use super::error::PolicyError;
use super::payoff::Payoffs;
use super::trace::{PolicyHistory, RecordedStep};

/// An operator with its parents.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Operator.
    pub operator: Operator,
    /// Parents.
    pub parents: Vec<String>,
}

/// What one policy makes of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyView {
    /// Policy.
    pub policy: String,
    /// Probability that it takes what the run took; 0 when it does not offer that.
    pub probability: f64,
    /// Probability of the run's first parent among those the policy offers for the operator; `None` for a draft.
    pub parent_probability: Option<f64>,
    /// Its likeliest operator with the likeliest parents; `None` when it offers nothing.
    pub top: Option<Choice>,
    /// Probability of that choice.
    pub top_probability: f64,
    /// What came of the parents of that choice.
    pub top_payoff: Option<f64>,
    /// What it draws with the random numbers of the step.
    pub drawn: Option<Choice>,
}

/// A step of a run with what every policy makes of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedStep {
    /// Step.
    pub step: i64,
    /// Attempt of the step.
    pub attempt_id: String,
    /// Snapshot of the step.
    pub snapshot_id: i64,
    /// What the run took.
    pub taken: Choice,
    /// What came of it.
    pub payoff: Option<f64>,
    /// What the policies make of it, in the order they were named.
    pub views: Vec<PolicyView>,
}

impl ComparedStep {
    /// Whether a policy draws what the run took.
    pub fn agrees(&self, view: &PolicyView) -> bool {
        view.drawn.as_ref() == Some(&self.taken)
    }

    /// Share of the compared policies, itself included, that have the same top choice as a policy.
    pub fn agreement(&self, view: &PolicyView) -> f64 {
        let same = self.views.iter().filter(|other| other.top == view.top).count();
        same as f64 / self.views.len() as f64
    }
}

/// Replay policies on one step. Only the record is read: nothing is generated and nothing runs.
pub async fn compare_step(
    history: &dyn PolicyHistory,
    policies: &[String],
    run_id: &str,
    payoffs: &Payoffs,
    recorded: RecordedStep,
) -> Result<ComparedStep, PolicyError> {
    let mut views = Vec::with_capacity(policies.len());
    for policy in policies {
        let rows = history.rows(policy, run_id, recorded.snapshot_id).await?;
        let lottery = Lottery::new(&rows)?;
        views.push(view(policy, lottery.as_ref(), &recorded, payoffs));
    }
    Ok(ComparedStep {
        step: recorded.step,
        payoff: payoffs.of_attempt(&recorded.attempt_id),
        attempt_id: recorded.attempt_id,
        snapshot_id: recorded.snapshot_id,
        taken: Choice {
            operator: recorded.operator,
            parents: recorded.parents,
        },
        views,
    })
}

fn view(policy: &str, lottery: Option<&Lottery<'_>>, recorded: &RecordedStep, payoffs: &Payoffs) -> PolicyView {
    let probability = |operator: Operator, parents: &[String]| {
        let parents: Vec<&str> = parents.iter().map(String::as_str).collect();
        lottery.map_or(0.0, |lottery| lottery.probability_of(operator, &parents))
    };
    let top = lottery.and_then(Lottery::likeliest);
    let drawn = lottery.and_then(|lottery| lottery.draw(&mut recorded.rng.clone()));
    PolicyView {
        policy: policy.to_owned(),
        probability: probability(recorded.operator, &recorded.parents),
        parent_probability: recorded
            .parents
            .first()
            .map(|parent| lottery.map_or(0.0, |lottery| lottery.parent_probability(recorded.operator, parent))),
        top_probability: top
            .as_ref()
            .map_or(0.0, |(operator, parents)| probability(*operator, parents)),
        top_payoff: top.as_ref().and_then(|(_, parents)| payoffs.of_parents(parents)),
        top: top.map(|(operator, parents)| Choice { operator, parents }),
        drawn: drawn.map(|drawn| Choice {
            operator: drawn.operator,
            parents: drawn.parents,
        }),
    }
}
