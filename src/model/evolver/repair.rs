//! Repairs: cheaper, smaller or plainer genomes, by what went wrong.

use super::chance::Chance;
use super::cost;
use super::draw;
use super::genome::{
    Analyzer, Blend, Categorical, Genome, Numeric, RankingGenome, Scalar, ScorerKind, TabularGenome, Target, plain_int,
};
use super::profile::TaskProfile;
use crate::model::request::NodeContext;

/// What went wrong, as far as it asks for different repairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It ran too long.
    Time,
    /// It took too much memory.
    Memory,
    /// Missing or infinite values reached a step that cannot take them.
    Gaps,
    /// A package or name is not there.
    Import,
    /// A column, key or file is not there.
    Name,
    /// Shapes, types or values do not fit.
    Shape,
    /// The submission was refused.
    Submission,
    /// Anything else.
    Unknown,
}

impl Fault {
    /// Reads the fault off a failed node.
    pub(crate) fn of(node: &NodeContext) -> Self {
        let class = format!(
            "{} {} {}",
            node.status,
            node.error_class.as_deref().unwrap_or_default(),
            node.error_signature.as_deref().unwrap_or_default()
        )
        .to_lowercase();
        let message = node.error.as_deref().unwrap_or_default();
        let tail_start = message.char_indices().rev().nth(1500).map_or(0, |(at, _)| at);
        let tail = message[tail_start..].to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| class.contains(word));
        let says = |words: &[&str]| words.iter().any(|word| tail.contains(word));
        if has(&["timeout", "time limit"]) {
            Self::Time
        } else if has(&["oom", "memory", "killed"]) || says(&["memoryerror", "unable to allocate"]) {
            Self::Memory
        } else if says(&[
            "contains nan",
            "contains infinity",
            "input x contains",
            "input y contains",
            "is nan",
        ]) {
            Self::Gaps
        } else if has(&["import"]) || says(&["modulenotfounderror", "importerror", "no module named"]) {
            Self::Import
        } else if has(&["column", "key", "file"]) || says(&["keyerror", "filenotfounderror", "not in index"]) {
            Self::Name
        } else if has(&["shape", "dtype", "value"]) || says(&["valueerror", "typeerror", "indexerror"]) {
            Self::Shape
        } else if has(&["submission", "scoring", "metric", "format"]) {
            Self::Submission
        } else {
            Self::Unknown
        }
    }

    /// In words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Time => "ran into the time limit",
            Self::Memory => "took too much memory",
            Self::Gaps => "passed missing or infinite values to a step that cannot take them",
            Self::Import => "uses a package or name that is not there",
            Self::Name => "asks for a column, key or file that is not there",
            Self::Shape => "mixes shapes, types or values that do not fit together",
            Self::Submission => "left no submission that could be scored",
            Self::Unknown => "failed",
        }
    }
}

/// A repaired genome and what was done, for a failed program whose genome is `genome`. `repeats` counts how often the same
/// error was seen before; after two tries the program is started anew from the plainest one.
pub(crate) fn repair(
    genome: &Genome,
    fault: Fault,
    repeats: usize,
    profile: &TaskProfile,
    chance: &mut Chance,
) -> (Genome, String) {
    if repeats >= 2 {
        return (
            draw::plainest(profile),
            "starts anew from the plainest program for this task".to_owned(),
        );
    }
    let (repaired, done) = match (genome, fault) {
        (Genome::Tabular(tabular), Fault::Memory) => {
            (smaller(tabular.clone()), "keeps fewer features and smaller models")
        }
        (Genome::Tabular(tabular), Fault::Gaps) => (
            gapless(tabular.clone()),
            "fills gaps and leaves the target on its own scale",
        ),
        (Genome::Tabular(tabular), Fault::Shape | Fault::Submission | Fault::Unknown) => {
            return simpler(tabular, profile, chance);
        }
        (_, Fault::Time | Fault::Memory) => {
            let now = cost::seconds(genome, profile).min(cost::budget(profile));
            let quicker = within(genome.clone(), profile, cost::START + 0.35 * (now - cost::START));
            let kept = quicker.names().iter().all(|name| genome.names().contains(name));
            (
                quicker,
                if kept {
                    "does the same with less work"
                } else {
                    "turns to a quicker model"
                },
            )
        }
        (_, Fault::Import | Fault::Name) => (
            within(genome.clone(), profile, cost::budget(profile)),
            "is written again from the columns and files that are there, with packages that are installed",
        ),
        _ => (
            draw::plainest(profile),
            "starts anew from the plainest program for this task",
        ),
    };
    (
        repaired.normalised(profile).unwrap_or_else(|| draw::plainest(profile)),
        done.to_owned(),
    )
}

fn smaller(mut genome: TabularGenome) -> Genome {
    for (_, member) in &mut genome.members.0 {
        if matches!(member.numeric, Some(Numeric::Quadratic | Numeric::Spline)) {
            member.numeric = Some(Numeric::Standard);
        }
        if member.high_cardinality == Some(Categorical::OneHot) {
            member.high_cardinality = Some(Categorical::Target);
        }
        if let Some(text) = &mut member.text {
            text.analyzer = Analyzer::Word;
            text.words = 1;
            text.min_df = text.min_df.max(3);
            text.max_features = Some(20_000);
            text.svd = text.svd.map(|size| size.min(50));
        }
        for (name, value) in &mut member.params.0 {
            if let (true, Scalar::Int(trees)) = (name == "n_estimators" || name == "max_leaf_nodes", &*value) {
                *value = Scalar::Int(plain_int(*trees as f64 / 2.0).max(2));
            }
        }
    }
    if let Some(images) = &mut genome.images {
        images.shifts = false;
        images.color = false;
        images.size = images.size.min(16);
    }
    genome.members.0.truncate(2);
    Genome::Tabular(genome)
}

fn gapless(mut genome: TabularGenome) -> Genome {
    genome.target = Target::Identity;
    for (_, member) in &mut genome.members.0 {
        member.numeric = Some(Numeric::Quantile);
        member.reduce = None;
    }
    Genome::Tabular(genome)
}

/// Takes one thing away that is not plain: the first that there is.
fn simpler(genome: &TabularGenome, profile: &TaskProfile, chance: &mut Chance) -> (Genome, String) {
    let mut simple = genome.clone();
    let reduced = simple.members.0.iter().any(|(_, member)| member.reduce.is_some());
    let shaped =
        |numeric: &Option<Numeric>| matches!(numeric, Some(Numeric::Power | Numeric::Spline | Numeric::Quadratic));
    let odd = simple.members.0.iter().any(|(_, member)| shaped(&member.numeric));
    let done = if reduced {
        for (_, member) in &mut simple.members.0 {
            member.reduce = None;
        }
        "keeps all features"
    } else if odd {
        for (_, member) in &mut simple.members.0 {
            if shaped(&member.numeric) {
                member.numeric = Some(Numeric::Standard);
            }
        }
        "uses plainly scaled numbers"
    } else if !simple.target.is_identity() {
        simple.target = Target::Identity;
        "leaves the target on its own scale"
    } else if simple.members.0.len() > 1 {
        let out = chance.below(simple.members.0.len());
        let (name, _) = simple.members.0.remove(out);
        return finish(simple, format!("leaves the member {name} out"), profile);
    } else if simple.half_life.is_some() || simple.balanced || simple.bags > 1 {
        (simple.half_life, simple.balanced, simple.bags) = (None, false, 1);
        "weighs all rows the same and fits once"
    } else {
        return (
            draw::plainest(profile),
            "starts anew from the plainest program for this task".to_owned(),
        );
    };
    finish(simple, done.to_owned(), profile)
}

fn finish(genome: TabularGenome, done: String, profile: &TaskProfile) -> (Genome, String) {
    let genome = Genome::Tabular(genome).normalised(profile);
    (genome.unwrap_or_else(|| draw::plainest(profile)), done)
}

/// The genome with as much work taken out as needed to run within `seconds` by the estimate.
pub(crate) fn within(genome: Genome, profile: &TaskProfile, seconds: f64) -> Genome {
    const TRIES: usize = 24;
    let mut genome = genome;
    for _ in 0..TRIES {
        if cost::seconds(&genome, profile) <= seconds {
            break;
        }
        let cheaper = match genome.clone() {
            Genome::Tabular(tabular) => less_work(tabular, profile).map(Genome::Tabular),
            Genome::Ranking(ranking) => less_scoring(ranking).map(Genome::Ranking),
        };
        match cheaper.and_then(|cheaper| cheaper.normalised(profile)) {
            Some(cheaper) if cheaper != genome => genome = cheaper,
            _ => break,
        }
    }
    genome
}

fn less_work(mut genome: TabularGenome, profile: &TaskProfile) -> Option<TabularGenome> {
    if genome.bags > 1 {
        genome.bags = 1;
        return Some(genome);
    }
    if genome.folds > 3 {
        genome.folds = 3;
        return Some(genome);
    }
    if let Some(images) = &mut genome.images
        && images.shifts
    {
        images.shifts = false;
        return Some(genome);
    }
    let costs: Vec<f64> = genome
        .members
        .0
        .iter()
        .map(|(name, member)| {
            let mut alone = genome.clone();
            alone.members.0 = vec![(name.clone(), member.clone())];
            cost::seconds(&Genome::Tabular(alone), profile)
        })
        .collect();
    let heaviest = (0..costs.len()).max_by(|a, b| costs[*a].total_cmp(&costs[*b]))?;
    let several = genome.members.0.len() > 1;
    let (name, member) = genome.members.0.get_mut(heaviest)?;
    let family = super::genome::Family::from_name(name)?;
    let mut changed = false;
    for (param, value) in &mut member.params.0 {
        let (least, factor) = match param.as_str() {
            "n_estimators" | "max_iter" => (20, 0.6),
            "max_leaf_nodes" => (7, 0.7),
            "max_depth" => (3, 0.8),
            _ => continue,
        };
        if let Scalar::Int(number) = *value
            && number > least
        {
            *value = Scalar::Int(plain_int(number as f64 * factor).max(least));
            changed = true;
        }
    }
    if matches!(member.numeric, Some(Numeric::Quadratic | Numeric::Spline)) && !changed {
        member.numeric = Some(Numeric::Standard);
        changed = true;
    }
    if let (Some(text), false) = (&mut member.text, changed) {
        if text.analyzer != Analyzer::Word {
            text.analyzer = Analyzer::Word;
            changed = true;
        } else if text.words > 1 {
            text.words = 1;
            changed = true;
        }
    }
    if changed {
        return Some(genome);
    }
    if genome.folds > 1 {
        genome.folds = 1;
        return Some(genome);
    }
    if several {
        genome.members.0.remove(heaviest);
        genome.blend = Blend::Fixed;
        return Some(genome);
    }
    let plainest = draw::plainest(profile);
    match plainest {
        Genome::Tabular(plain) if !plain.members.0.iter().any(|(other, _)| other == family.name()) => Some(plain),
        _ => None,
    }
}

fn less_scoring(mut genome: RankingGenome) -> Option<RankingGenome> {
    for (name, scorer) in &mut genome.scorers.0 {
        for (param, value) in &mut scorer.params.0 {
            let least = match (ScorerKind::from_name(name), param.as_str()) {
                (Some(ScorerKind::Ease), "items") => 300,
                (Some(ScorerKind::Svd), "rank") => 8,
                (Some(ScorerKind::NextItem), "window") => 1,
                _ => continue,
            };
            if let Scalar::Int(number) = *value
                && number > least
            {
                *value = Scalar::Int(plain_int(number as f64 * 0.6).max(least));
                return Some(genome);
            }
        }
    }
    (genome.scorers.0.len() > 1).then(|| {
        genome.scorers.0.pop();
        genome
    })
}
