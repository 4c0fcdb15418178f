//! One step of the search: from a request to a program that was not seen before.

use super::chance::Chance;
use super::cost;
use super::cross;
use super::draw;
use super::foreign;
use super::genome::{Family, Genome, TabularGenome};
use super::mutate::{self, Part, Promise};
use super::plan;
use super::profile::{Outcome, TaskProfile};
use super::render;
use super::repair::{self, Fault};
use crate::model::error::ModelError;
use crate::model::request::{GenerateRequest, NodeContext};
use crate::operators::Operator;

/// Draws until a program differs from all that the request shows.
const TRIES: usize = 40;

/// A program and the plan behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    /// The plan in words.
    pub(crate) plan: String,
    /// The program.
    pub(crate) code: String,
}

/// Answers a request.
pub(crate) fn program(request: &GenerateRequest, profile: &TaskProfile) -> Result<Program, ModelError> {
    let mut chance = Chance::new(request.seed, request.sample);
    let seen: Vec<&str> = request.nodes.iter().filter_map(|node| node.code.as_deref()).collect();
    let needs = |needs| ModelError::IncompleteRequest {
        operator: request.operator.as_str(),
        needs,
    };
    let parent = request.nodes.first();
    let mut last = None;
    for _ in 0..TRIES {
        let (genome, done) = match request.operator {
            Operator::Draft => (draft(request, profile, &mut chance), String::new()),
            Operator::Improve => improve(parent.ok_or_else(|| needs("a parent"))?, request, profile, &mut chance),
            Operator::Debug => debug(parent.ok_or_else(|| needs("a parent"))?, request, profile, &mut chance),
            Operator::Crossover => {
                let (Some(first), Some(second)) = (parent, second_parent(request)) else {
                    return Err(needs("two parents"));
                };
                crossover(first, second, request, profile, &mut chance)
            }
        };
        let code = render::program(&genome, profile);
        let fresh = !seen.iter().any(|seen| seen.trim() == code.trim());
        let plan = match done.as_str() {
            "" => plan::describe(&genome, profile),
            done => format!("{done} {}", plan::describe(&genome, profile)),
        };
        last = Some(Program { plan, code });
        if fresh {
            break;
        }
    }
    last.ok_or_else(|| needs("a program to start from"))
}

/// The second parent of a crossover: the node of that role, else the second node.
fn second_parent(request: &GenerateRequest) -> Option<&NodeContext> {
    let by_role = request.nodes.iter().find(|node| node.role == "parent2");
    by_role.or_else(|| request.nodes.get(1))
}

/// The genome of a node's program, or the nearest to it; the flag tells whether the program is exactly the genome's, so that
/// nothing of it is lost.
fn genome_of(node: &NodeContext, profile: &TaskProfile) -> Option<(Genome, bool)> {
    let code = node.code.as_deref()?;
    let genome = Genome::read(code, profile).or_else(|| foreign::read(code, profile))?;
    let exact = render::program(&genome, profile).trim() == code.trim();
    Some((genome, exact))
}

/// A draft that leans towards families that the visible programs do not use.
fn draft(request: &GenerateRequest, profile: &TaskProfile, chance: &mut Chance) -> Genome {
    let visible: Vec<Genome> = request
        .nodes
        .iter()
        .filter_map(|node| genome_of(node, profile))
        .map(|(genome, _)| genome)
        .collect();
    let tried: Vec<Family> = visible
        .iter()
        .filter_map(|genome| match genome {
            Genome::Tabular(tabular) => Some(tabular.families().map(|(family, _)| family)),
            Genome::Ranking(_) => None,
        })
        .flatten()
        .collect();
    draw::genome_apart(&tried, profile, chance)
}

fn improve(
    parent: &NodeContext,
    request: &GenerateRequest,
    profile: &TaskProfile,
    chance: &mut Chance,
) -> (Genome, String) {
    let Some((genome, ours)) = genome_of(parent, profile) else {
        let fresh = draw::genome(profile, chance);
        return (
            fresh,
            "The parent shows no estimator that can be built on, so this starts anew.".to_owned(),
        );
    };
    if let Some(flipped) = other_class(&genome, parent, profile) {
        return (
            flipped,
            "The parent ranks the rows the wrong way round, so this predicts the other class.".to_owned(),
        );
    }
    let limit = cost::budget(profile).max(if was_slow(request) {
        0.0
    } else {
        cost::seconds(&genome, profile)
    });
    let start = if ours {
        ""
    } else {
        "Close to the parent's estimators, in plain pipelines. "
    };
    let promise = promise(&genome, request, profile);
    if let (true, Some((borrowed, words))) = (chance.happens(0.15), borrow(&genome, parent, request, profile, chance)) {
        return (repair::within(borrowed, profile, limit), format!("{start}{words}"));
    }
    for _ in 0..TRIES {
        let Some((mut changed, mut words)) = mutate::mutate(&genome, &promise, profile, chance) else {
            continue;
        };
        if chance.happens(0.3)
            && let Some((twice, more)) = mutate::mutate(&changed, &promise, profile, chance)
        {
            changed = twice;
            words = format!("{words}; also, {more}");
        }
        let changed = repair::within(changed, profile, limit);
        if changed != genome {
            return (changed, format!("{start}One step from the parent: {words}."));
        }
    }
    (
        draw::genome(profile, chance),
        format!("{start}The parent has no part left to change, so this starts anew."),
    )
}

/// Whether a visible program of this line ran into the time limit.
fn was_slow(request: &GenerateRequest) -> bool {
    request.nodes.iter().any(|node| Fault::of(node) == Fault::Time)
}

/// The genome with the other class, when the parent's score says that it predicts the wrong one.
fn other_class(genome: &Genome, parent: &NodeContext, profile: &TaskProfile) -> Option<Genome> {
    const CLEARLY_WRONG: f64 = 0.42;
    let ranks = profile.metric == super::metric::Metric::Auc && matches!(profile.outcome, Outcome::Probability { .. });
    match genome {
        Genome::Tabular(tabular) if ranks && parent.score.is_some_and(|score| score < CLEARLY_WRONG) => {
            Some(Genome::Tabular(TabularGenome {
                other_class: !tabular.other_class,
                ..tabular.clone()
            }))
        }
        _ => None,
    }
}

/// How much each part promises: parts whose change moved the score of a visible relative promise more, parts that did
/// nothing promise less.
fn promise(genome: &Genome, request: &GenerateRequest, profile: &TaskProfile) -> Promise {
    const STILL: f64 = 1e-4;
    let mut promise = Promise::new();
    let Some(own) = request.nodes.first().and_then(|node| node.score) else {
        return promise;
    };
    for node in request.nodes.iter().skip(1) {
        let (Some(score), Some((other, true))) = (node.score, genome_of(node, profile)) else {
            continue;
        };
        let parts = mutate::differences(genome, &other);
        if parts.is_empty() || parts.len() > 2 {
            continue;
        }
        let moved = (score - own).abs() > STILL * own.abs().max(1e-9);
        for part in parts {
            let weight = promise.entry(part).or_insert(1.0);
            *weight = (*weight * if moved { 1.3 } else { 0.5 }).clamp(0.2, 3.0);
        }
    }
    promise
}

/// A part of a visible relative that scored better than the parent.
fn borrow(
    genome: &Genome,
    parent: &NodeContext,
    request: &GenerateRequest,
    profile: &TaskProfile,
    chance: &mut Chance,
) -> Option<(Genome, String)> {
    let own = parent.score?;
    let better: Vec<Genome> = request
        .nodes
        .iter()
        .skip(1)
        .filter(|node| {
            node.score.is_some_and(|score| {
                if profile.higher_is_better {
                    score > own
                } else {
                    score < own
                }
            })
        })
        .filter_map(|node| genome_of(node, profile))
        .map(|(genome, _)| genome)
        .collect();
    let (Genome::Tabular(mine), Genome::Tabular(theirs)) = (genome, chance.pick(&better)?) else {
        return None;
    };
    let parts: Vec<Part> = mutate::differences(genome, &Genome::Tabular(theirs.clone()));
    let part = *chance.pick(&parts)?;
    let mixed = Genome::Tabular(mutate::borrow(mine, theirs, part)).normalised(profile)?;
    (mixed != *genome).then(|| {
        (
            mixed,
            "One part is taken from a relative of the parent that scored better.".to_owned(),
        )
    })
}

fn debug(
    parent: &NodeContext,
    request: &GenerateRequest,
    profile: &TaskProfile,
    chance: &mut Chance,
) -> (Genome, String) {
    let fault = Fault::of(parent);
    let repeats = request
        .nodes
        .iter()
        .skip(1)
        .filter(|node| node.error_signature.is_some() && node.error_signature == parent.error_signature)
        .count();
    let Some((genome, ours)) = genome_of(parent, profile) else {
        let fresh = draw::plainest(profile);
        let words = format!(
            "The parent {}; nothing of it can be kept, so this starts from the plainest program.",
            fault.words()
        );
        return (varied(fresh, profile, chance), words);
    };
    let (repaired, done) = if ours || matches!(fault, Fault::Time | Fault::Memory) {
        repair::repair(&genome, fault, repeats, profile, chance)
    } else {
        let plain = repair::within(genome.clone(), profile, cost::budget(profile));
        (
            plain,
            "keeps its estimators and writes the rest anew in plain pipelines".to_owned(),
        )
    };
    let plainest = draw::plainest(profile);
    let repaired = if repaired == plainest || (ours && repaired == genome) {
        varied(plainest, profile, chance)
    } else {
        repaired
    };
    (repaired, format!("The parent {}. This {done}.", fault.words()))
}

/// The genome with one change half of the time, so that repeated repairs do not end in the same program.
fn varied(genome: Genome, profile: &TaskProfile, chance: &mut Chance) -> Genome {
    if chance.happens(0.5) {
        return genome;
    }
    let changed = mutate::mutate(&genome, &Promise::new(), profile, chance).map(|(changed, _)| changed);
    changed.map_or(genome, |changed| {
        repair::within(changed, profile, cost::budget(profile))
    })
}

fn crossover(
    first: &NodeContext,
    second: &NodeContext,
    request: &GenerateRequest,
    profile: &TaskProfile,
    chance: &mut Chance,
) -> (Genome, String) {
    let (one, two) = match (genome_of(first, profile), genome_of(second, profile)) {
        (Some((one, _)), Some((two, _))) => (one, two),
        (Some(_), None) => return improve(first, request, profile, chance),
        (None, _) => return improve(second, request, profile, chance),
    };
    let second_is_better = match (first.score, second.score) {
        (Some(a), Some(b)) => {
            if profile.higher_is_better {
                b > a
            } else {
                b < a
            }
        }
        (None, Some(_)) => true,
        _ => false,
    };
    let (better, other) = if second_is_better { (&two, &one) } else { (&one, &two) };
    let limit = cost::budget(profile);
    for _ in 0..TRIES {
        if let Some((crossed, words)) = cross::cross(better, other, profile, chance) {
            return (repair::within(crossed, profile, limit), format!("This {words}."));
        }
    }
    let (changed, words) = improve(if second_is_better { second } else { first }, request, profile, chance);
    (changed, format!("The parents have nothing to give each other. {words}"))
}
