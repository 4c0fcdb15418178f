//! The draw: from the rows of a policy to one operator and its parents. A pure function of the rows and a generator.
//!
//! The rows of the highest priority take part. The operator is drawn by `operator_weight` (when it is not given, by the
//! sum of its rows' weights), then as many distinct parents as it takes, by weight and without replacement. When all
//! weights of a lottery are zero, its entries are equally likely. Where rows name an island, the second parent is one of the
//! first one's island. A crossover that cannot find two parents is left out, as if its rows were not there.
//!
//! Rows are put in order first: by operator, step of the parent, id of the parent. So the order of the result does not
//! matter, and two runs with the same seed draw the same although their ids differ.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use rand_chacha::rand_core::RngCore;
use serde::{Deserialize, Serialize};

use crate::operators::Operator;

use super::error::PolicyError;
use super::rows::PolicyRow;

/// Parents that a stored draw lists besides those that were taken: the likeliest ones.
const RECORDED_PARENTS: usize = 8;

/// An operator in the lottery.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperatorChance {
    /// Operator.
    pub operator: String,
    /// Weight as the policy gave it.
    pub weight: f64,
    /// Probability of being drawn.
    pub probability: f64,
}

/// A parent (or pair) in the lottery of an operator; the ids are those of the policy's rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chance<'a> {
    /// Parent.
    pub parent_id: &'a str,
    /// Second parent, when the policy named the pair.
    pub parent2_id: Option<&'a str>,
    /// Island that it is drawn for, when the policy names one.
    pub island: Option<i64>,
    /// Weight as the policy gave it.
    pub weight: f64,
    /// Probability of being drawn first.
    pub probability: f64,
}

/// A [`Chance`] as it is stored with an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParentChance {
    /// Parent.
    pub parent_id: String,
    /// Second parent, when the policy named the pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent2_id: Option<String>,
    /// Island that it is drawn for, when the policy named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub island: Option<i64>,
    /// Weight as the policy gave it.
    pub weight: f64,
    /// Probability of being drawn first.
    pub probability: f64,
}

impl From<Chance<'_>> for ParentChance {
    fn from(chance: Chance<'_>) -> Self {
        Self {
            parent_id: chance.parent_id.to_owned(),
            parent2_id: chance.parent2_id.map(str::to_owned),
            island: chance.island,
            weight: chance.weight,
            probability: chance.probability,
        }
    }
}

/// What was drawn, with every probability.
#[derive(Debug, Clone, PartialEq)]
pub struct Draw<'a> {
    /// Operator.
    pub operator: Operator,
    /// Parents, as many as the operator takes.
    pub parents: Vec<String>,
    /// Island that they were drawn for, when the policy names one.
    pub island: Option<i64>,
    /// Priority of the rows that took part.
    pub priority: f64,
    /// The operators of that priority.
    pub operators: Vec<OperatorChance>,
    /// The parents of the operator that was drawn, by step and id.
    pub candidates: Vec<Chance<'a>>,
    /// Random numbers that were used, each in [0, 1): for the operator, then for each parent.
    pub numbers: Vec<f64>,
}

/// A draw as it is stored with an attempt: bounded, whatever the size of the pool. Replaying the policy on the attempt's
/// snapshot gives the rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DrawRecord {
    /// Operator.
    pub operator: String,
    /// Parents.
    pub parents: Vec<String>,
    /// Priority of the rows that took part.
    pub priority: f64,
    /// The operators of that priority.
    pub operators: Vec<OperatorChance>,
    /// The parents that were taken and the likeliest others.
    pub candidates: Vec<ParentChance>,
    /// Number of candidates in the lottery.
    pub candidate_count: usize,
    /// Exponential of the entropy of the candidates' probabilities: how many parents the choice was really among.
    pub effective_candidates: f64,
    /// Random numbers that were used.
    pub numbers: Vec<f64>,
}

impl Draw<'_> {
    /// The draw as it is stored.
    pub fn record(&self) -> DrawRecord {
        let entropy: f64 = self
            .candidates
            .iter()
            .map(|c| c.probability)
            .filter(|p| *p > 0.0)
            .map(|p| -p * p.ln())
            .sum();
        DrawRecord {
            operator: self.operator.to_string(),
            parents: self.parents.clone(),
            priority: self.priority,
            operators: self.operators.clone(),
            candidates: self.recorded(),
            candidate_count: self.candidates.len(),
            effective_candidates: if self.candidates.is_empty() { 0.0 } else { entropy.exp() },
            numbers: self.numbers.clone(),
        }
    }

    /// The likeliest candidates and those that were taken; the likelier first, then the earlier.
    fn recorded(&self) -> Vec<ParentChance> {
        let candidates = &self.candidates;
        let likelier = |a: &usize, b: &usize| {
            let (a_share, b_share) = (candidates[*a].probability, candidates[*b].probability);
            b_share.total_cmp(&a_share).then(a.cmp(b))
        };
        let mut places: Vec<usize> = (0..candidates.len()).collect();
        if places.len() > RECORDED_PARENTS {
            let (_, _, others) = places.select_nth_unstable_by(RECORDED_PARENTS - 1, likelier);
            let is_taken = |place: &usize| self.parents.iter().any(|id| id == candidates[*place].parent_id);
            let taken: Vec<usize> = others.iter().copied().filter(is_taken).collect();
            places.truncate(RECORDED_PARENTS);
            places.extend(taken);
        }
        places.sort_unstable_by(likelier);
        places.into_iter().map(|place| candidates[place].into()).collect()
    }
}

/// Draw one operator and its parents. `None` when no row can be expanded.
pub fn draw<'a>(rows: &'a [PolicyRow], rng: &mut impl RngCore) -> Result<Option<Draw<'a>>, PolicyError> {
    Ok(Lottery::new(rows)?.and_then(|lottery| lottery.draw(rng)))
}

/// All chances of a policy's result, before anything is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Lottery<'a> {
    priority: f64,
    operators: Vec<(Operator, OperatorChance)>,
    parents: BTreeMap<Operator, Vec<Chance<'a>>>,
}

impl<'a> Lottery<'a> {
    /// The chances of the rows of the highest priority. `None` when no row can be expanded.
    pub fn new(rows: &'a [PolicyRow]) -> Result<Option<Self>, PolicyError> {
        let usable = usable_rows(rows);
        let Some(priority) = usable.iter().map(|row| row.priority).max_by(f64::total_cmp) else {
            return Ok(None);
        };
        let rows = ordered(usable.into_iter().filter(|row| row.priority == priority));
        let weights = operator_weights(&rows)?;
        let shares = probabilities(&weights.values().copied().collect::<Vec<_>>());
        let operators = weights
            .into_iter()
            .zip(shares)
            .map(|((operator, weight), probability)| {
                (
                    operator,
                    OperatorChance {
                        operator: operator.to_string(),
                        weight,
                        probability,
                    },
                )
            })
            .collect();
        let parents = rows
            .chunk_by(|a, b| a.operator == b.operator)
            .map(|pool| (pool[0].operator, chances(pool)))
            .filter(|(_, chances)| !chances.is_empty())
            .collect();
        Ok(Some(Self {
            priority,
            operators,
            parents,
        }))
    }

    /// Draw the operator, then its parents.
    pub fn draw(&self, rng: &mut impl RngCore) -> Option<Draw<'a>> {
        let mut numbers = Vec::new();
        let Choice {
            operator,
            parents,
            island,
        } = self.choose(|shares| {
            let number = uniform(rng);
            numbers.push(number);
            pick(shares, number)
        })?;
        Some(Draw {
            operator,
            parents,
            island,
            priority: self.priority,
            operators: self.operators.iter().map(|(_, chance)| chance.clone()).collect(),
            candidates: self.parents.get(&operator).cloned().unwrap_or_default(),
            numbers,
        })
    }

    /// The likeliest operator, then its likeliest parents; the earliest of equals.
    pub fn likeliest(&self) -> Option<(Operator, Vec<String>)> {
        let choice = self.choose(|shares| (0..shares.len()).rev().max_by(|a, b| shares[*a].total_cmp(&shares[*b])))?;
        Some((choice.operator, choice.parents))
    }

    /// Choose the operator, then each of its parents, by the place that `pick` gives for their probabilities.
    fn choose(&self, mut pick: impl FnMut(&[f64]) -> Option<usize>) -> Option<Choice> {
        let shares: Vec<f64> = self.operators.iter().map(|(_, chance)| chance.probability).collect();
        let (operator, _) = self.operators.get(pick(&shares)?)?;
        let candidates = self.parents.get(operator).map_or(&[][..], Vec::as_slice);
        let mut choice = Choice {
            operator: *operator,
            parents: Vec::with_capacity(operator.arity()),
            island: None,
        };
        let mut pool = Cow::Borrowed(candidates);
        while choice.parents.len() < operator.arity() {
            let shares: Vec<f64> = pool.iter().map(|chance| chance.probability).collect();
            let chance = *pool.get(pick(&shares)?)?;
            choice.island = chance.island;
            choice.parents.push(chance.parent_id.to_owned());
            choice.parents.extend(chance.parent2_id.map(str::to_owned));
            pool = Cow::Owned(partners(candidates, &chance));
        }
        Some(choice)
    }

    /// Probability that a parent is drawn first, given its operator; 0 when it is not in the lottery.
    pub fn parent_probability(&self, operator: Operator, parent: &str) -> f64 {
        let candidates = self.parents.get(&operator).map_or(&[][..], Vec::as_slice);
        let of_parent = candidates.iter().filter(|chance| chance.parent_id == parent);
        // A sum of nothing would be minus zero.
        of_parent.fold(0.0, |sum, chance| sum + chance.probability)
    }

    /// Number of candidates of an operator.
    pub fn candidates(&self, operator: Operator) -> usize {
        self.parents.get(&operator).map_or(0, Vec::len)
    }

    /// Probability of drawing this operator with these parents in this order; 0 when they are not in the lottery.
    pub fn probability_of(&self, operator: Operator, parents: &[&str]) -> f64 {
        let of_operator = self.operators.iter().find(|(other, _)| *other == operator);
        let of_operator = of_operator.map_or(0.0, |(_, chance)| chance.probability);
        let candidates = self.parents.get(&operator).map_or(&[][..], Vec::as_slice);
        let of_parents = match parents {
            [] => 1.0,
            [only] => shares(candidates, only, None),
            [first, second, ..] => {
                let pair = shares(candidates, first, Some(second));
                let open = candidates.iter().filter(|chance| names(chance, first, None));
                open.fold(pair, |sum, chance| {
                    sum + chance.probability * shares(&partners(candidates, chance), second, None)
                })
            }
        };
        of_operator * of_parents
    }
}

/// What was chosen.
#[derive(Debug)]
struct Choice {
    operator: Operator,
    parents: Vec<String>,
    island: Option<i64>,
}

/// Whether a chance is that of a parent, or of a pair that the policy named.
fn names(chance: &Chance<'_>, parent: &str, second: Option<&str>) -> bool {
    chance.parent_id == parent && chance.parent2_id == second
}

/// Probability of a parent, or of a pair that the policy named, on all islands.
fn shares(candidates: &[Chance<'_>], parent: &str, second: Option<&str>) -> f64 {
    let same = candidates.iter().filter(|chance| names(chance, parent, second));
    // A sum of nothing would be minus zero.
    same.fold(0.0, |sum, chance| sum + chance.probability)
}

/// The lottery for the second parent: the rows of the first one's island that leave it open, without the first parent.
fn partners<'a>(candidates: &[Chance<'a>], first: &Chance<'_>) -> Vec<Chance<'a>> {
    let open = candidates.iter().filter(|chance| {
        chance.parent2_id.is_none() && chance.island == first.island && chance.parent_id != first.parent_id
    });
    let mut pool: Vec<Chance<'a>> = open.copied().collect();
    let shares = probabilities(&pool.iter().map(|chance| chance.weight).collect::<Vec<_>>());
    for (chance, probability) in pool.iter_mut().zip(shares) {
        chance.probability = probability;
    }
    pool
}

/// Order of a row among those of its operator; rows of the same parents have the same key.
type Key<'a> = (Option<i64>, Option<&'a str>, Option<i64>, Option<&'a str>, Option<i64>);

fn key(row: &PolicyRow) -> Key<'_> {
    (
        row.parent_step,
        row.parent_id.as_deref(),
        row.parent2_step,
        row.parent2_id.as_deref(),
        row.island,
    )
}

/// The rows in their order. The first parts of the order lie beside each other while they are sorted: of a large pool every look at a
/// row itself would be a miss of the cache.
fn ordered<'a>(rows: impl Iterator<Item = &'a PolicyRow>) -> Vec<&'a PolicyRow> {
    let mut rows: Vec<(Operator, Option<i64>, &PolicyRow)> =
        rows.map(|row| (row.operator, row.parent_step, row)).collect();
    rows.sort_unstable_by(|(a_operator, a_step, a), (b_operator, b_step, b)| {
        (a_operator, a_step)
            .cmp(&(b_operator, b_step))
            .then_with(|| key(a).cmp(&key(b)))
            // Equal keys are ordered by weight, so that the rounding of sums does not depend on the order of the result.
            .then_with(|| a.weight.total_cmp(&b.weight))
    });
    rows.into_iter().map(|(_, _, row)| row).collect()
}

/// Leave out the crossovers that leave their second parent open where their priority and island offer no other parent.
fn usable_rows(rows: &[PolicyRow]) -> Vec<&PolicyRow> {
    let is_open = |row: &&PolicyRow| row.operator == Operator::Crossover && row.parent2_id.is_none();
    // By priority and island, of which there are few: the first open parent, and whether there is another one.
    let mut parents: Vec<(&PolicyRow, bool)> = Vec::new();
    let meet = |a: &PolicyRow, b: &PolicyRow| a.priority == b.priority && a.island == b.island;
    for row in rows.iter().filter(is_open) {
        match parents.iter_mut().find(|(first, _)| meet(first, row)) {
            Some((first, has_other)) => *has_other = *has_other || row.parent_id != first.parent_id,
            None => parents.push((row, false)),
        }
    }
    let has_partner = |row: &&PolicyRow| parents.iter().any(|(first, has_other)| *has_other && meet(first, row));
    rows.iter().filter(|row| !is_open(row) || has_partner(row)).collect()
}

/// The weight of every operator: as given, else the sum of its rows' weights.
fn operator_weights(rows: &[&PolicyRow]) -> Result<BTreeMap<Operator, f64>, PolicyError> {
    let mut weights: BTreeMap<Operator, (Option<f64>, f64)> = BTreeMap::new();
    for row in rows {
        let (given, sum) = weights.entry(row.operator).or_insert((row.operator_weight, 0.0));
        if *given != row.operator_weight {
            return Err(PolicyError::OperatorWeight {
                operator: row.operator.to_string(),
            });
        }
        *sum = (*sum + row.weight).min(f64::MAX);
    }
    Ok(weights
        .into_iter()
        .map(|(operator, (given, sum))| (operator, given.unwrap_or(sum)))
        .collect())
}

/// Probabilities of weights; equal ones when all weights are zero.
fn probabilities(weights: &[f64]) -> Vec<f64> {
    let largest = weights.iter().copied().max_by(f64::total_cmp).unwrap_or(0.0);
    if largest <= 0.0 {
        return vec![1.0 / weights.len() as f64; weights.len()];
    }
    // Scaled first: the sum of large weights stays finite.
    let total: f64 = weights.iter().map(|weight| weight / largest).sum();
    weights.iter().map(|weight| weight / largest / total).collect()
}

/// The parents that an operator's rows name, in their order, with their probabilities. Rows that name the same parents,
/// which are neighbours, count once, with their summed weight.
fn chances<'a>(rows: &[&'a PolicyRow]) -> Vec<Chance<'a>> {
    let mut chances: Vec<Chance<'a>> = Vec::with_capacity(rows.len());
    for same in rows.chunk_by(|a, b| key(a) == key(b)) {
        if let Some(parent_id) = same[0].parent_id.as_deref() {
            chances.push(Chance {
                parent_id,
                parent2_id: same[0].parent2_id.as_deref(),
                island: same[0].island,
                weight: same.iter().fold(0.0, |sum, row| sum + row.weight).min(f64::MAX),
                probability: 0.0,
            });
        }
    }
    let shares = probabilities(&chances.iter().map(|chance| chance.weight).collect::<Vec<_>>());
    for (chance, probability) in chances.iter_mut().zip(shares) {
        chance.probability = probability;
    }
    chances
}

/// A number in [0, 1) with 53 random bits; written out, so that no library's update changes a recorded search.
fn uniform(rng: &mut impl RngCore) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

/// The entry whose share of [0, 1) holds `number`; never one without a share.
fn pick(probabilities: &[f64], number: f64) -> Option<usize> {
    let mut reached = 0.0;
    for (index, probability) in probabilities.iter().enumerate() {
        reached += probability;
        if number.total_cmp(&reached) == Ordering::Less && *probability > 0.0 {
            return Some(index);
        }
    }
    // Rounding may leave the end of the interval uncovered; it belongs to the last entry with a share.
    probabilities.iter().rposition(|probability| *probability > 0.0)
}
