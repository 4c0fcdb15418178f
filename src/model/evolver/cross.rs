//! Crossover: two genomes become one.

use super::chance::Chance;
use super::genome::{Blend, Family, Genome, MOST_MEMBERS, Member, RankingGenome, TabularGenome};
use super::profile::TaskProfile;

/// A genome with parts of both, the first one being the better where that is known, and what was done in words. `None`
/// when the two have nothing to give each other.
pub(crate) fn cross(
    better: &Genome,
    other: &Genome,
    profile: &TaskProfile,
    chance: &mut Chance,
) -> Option<(Genome, String)> {
    let (crossed, words) = match (better, other) {
        (Genome::Ranking(better), Genome::Ranking(other)) => {
            let (crossed, words) = sum(better, other);
            (Genome::Ranking(crossed), words)
        }
        (Genome::Tabular(better), Genome::Tabular(other)) => {
            let blend = chance.happens(0.65);
            let (crossed, words) = if blend {
                union(better, other, chance)
            } else {
                features_and_model(better, other, chance)?
            };
            (Genome::Tabular(crossed), words)
        }
        _ => return None,
    };
    let crossed = crossed.normalised(profile)?;
    (crossed != *better && crossed != *other).then_some((crossed, words))
}

/// The members of both, half of the weight each; what they share comes from the better one.
fn union(better: &TabularGenome, other: &TabularGenome, chance: &mut Chance) -> (TabularGenome, String) {
    let mut crossed = better.clone();
    let share = |genome: &TabularGenome| {
        genome
            .members
            .0
            .iter()
            .map(|(_, member)| member.weight)
            .sum::<f64>()
            .max(1e-9)
    };
    let (own, others) = (share(better), share(other));
    for (_, member) in &mut crossed.members.0 {
        member.weight /= own;
    }
    let mut joined = Vec::new();
    for (name, member) in &other.members.0 {
        let Some(family) = Family::from_name(name) else {
            continue;
        };
        let twin = |present: &Member| {
            Member {
                weight: 0.0,
                ..present.clone()
            } == Member {
                weight: 0.0,
                ..member.clone()
            }
        };
        if crossed
            .members
            .0
            .iter()
            .any(|(present, it)| Family::from_name(present) == Some(family) && twin(it))
        {
            continue;
        }
        joined.push(family.words());
        crossed.members.0.push((
            name.clone(),
            Member {
                weight: member.weight / others,
                ..member.clone()
            },
        ));
    }
    while crossed.members.0.len() > MOST_MEMBERS {
        let lightest = (0..crossed.members.0.len())
            .min_by(|a, b| {
                crossed.members.0[*a]
                    .1
                    .weight
                    .total_cmp(&crossed.members.0[*b].1.weight)
            })
            .unwrap_or(0);
        crossed.members.0.remove(lightest);
    }
    crossed.blend = if chance.happens(0.5) {
        Blend::Fitted
    } else {
        Blend::Fixed
    };
    let words = format!(
        "adds {} of the second parent to the members of the first",
        super::plan::enumerate(&joined)
    );
    (crossed, words)
}

/// The features of a member of one with the estimator of a member of the other.
fn features_and_model(
    better: &TabularGenome,
    other: &TabularGenome,
    chance: &mut Chance,
) -> Option<(TabularGenome, String)> {
    let swap = chance.happens(0.5);
    let (features, models) = if swap { (other, better) } else { (better, other) };
    let mut crossed = models.clone();
    let (_, donor) = chance.pick(&features.members.0)?;
    let at = chance.below(crossed.members.0.len());
    let (name, member) = crossed.members.0.get_mut(at)?;
    member.numeric = donor.numeric;
    member.low_cardinality = donor.low_cardinality;
    member.high_cardinality = donor.high_cardinality;
    member.text.clone_from(&donor.text);
    member.reduce = donor.reduce;
    let words = format!("gives {name} the features of the other parent, with that parent's view of target and rows");
    crossed.target = features.target;
    crossed.drop_duplicates = features.drop_duplicates;
    crossed.half_life = features.half_life;
    crossed.images = features.images;
    crossed.series = features.series;
    crossed.forecast = features.forecast;
    Some((crossed, words))
}

/// The scorers of both; a scorer of both keeps the parameters it has in the better one.
fn sum(better: &RankingGenome, other: &RankingGenome) -> (RankingGenome, String) {
    let mut crossed = better.clone();
    let mut joined = Vec::new();
    for (name, scorer) in &other.scorers.0 {
        match crossed.scorers.get_mut(name) {
            Some(present) => present.weight = super::genome::plain(0.5 * (present.weight + scorer.weight)),
            None => {
                joined.push(name.as_str());
                crossed.scorers.0.push((name.clone(), scorer.clone()));
            }
        }
    }
    let words = if joined.is_empty() {
        "takes the mean of the weights of both parents".to_owned()
    } else {
        format!(
            "adds {} of the second parent to the sum of the first",
            super::plan::enumerate(&joined)
        )
    };
    (crossed, words)
}
