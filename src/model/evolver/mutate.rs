//! Mutations: one or two parts of a genome changed, chosen by what they promise.

use std::collections::BTreeMap;

use super::chance::Chance;
use super::draw;
use super::genome::{
    Analyzer, Blend, Family, Genome, Level, MOST_MEMBERS, Member, Ordered, RankingGenome, Scalar, ScorerKind,
    TabularGenome, Target, plain,
};
use super::metric::Metric;
use super::profile::{Outcome, TaskProfile};

/// A part of a genome that a mutation changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// Which members or scorers there are.
    Members,
    /// Shares of the members.
    Weights,
    /// Hyperparameters.
    Params,
    /// Numeric columns.
    Numeric,
    /// Categories.
    Categories,
    /// Text.
    Text,
    /// Reduction of all features.
    Reduce,
    /// Transform of the target.
    Target,
    /// Rows and their weights.
    Rows,
    /// What is done to blended probabilities.
    Decision,
    /// Number of seeds.
    Bags,
    /// Pictures.
    Images,
    /// Series.
    Series,
    /// Forecast.
    Forecast,
}

/// How much a change of each part promises, beyond what is usual.
pub(crate) type Promise = BTreeMap<Part, f64>;

/// A changed genome with the change in words, or `None` when the draw changed nothing.
pub(crate) fn mutate(
    genome: &Genome,
    promise: &Promise,
    profile: &TaskProfile,
    chance: &mut Chance,
) -> Option<(Genome, String)> {
    let (changed, words) = match genome {
        Genome::Ranking(ranking) => {
            let timed = matches!(&profile.outcome, Outcome::Ranking(ranking) if ranking.time.is_some());
            let (changed, words) = ranking_change(ranking, timed, chance)?;
            (Genome::Ranking(changed), words)
        }
        Genome::Tabular(tabular) => {
            let part = chance.weighted(&parts(tabular, promise, profile))?;
            let mut changed = tabular.clone();
            let words = change(&mut changed, part, profile, chance)?;
            (Genome::Tabular(changed), words)
        }
    };
    let changed = changed.normalised(profile)?;
    (changed != *genome).then_some((changed, words))
}

/// The parts that can change, with their weights.
fn parts(genome: &TabularGenome, promise: &Promise, profile: &TaskProfile) -> Vec<(Part, f64)> {
    let members = genome.members.0.len();
    let any = |has: fn(&Member) -> bool| genome.members.0.iter().any(|(_, member)| has(member));
    let usual = |part: Part, weight: f64| (part, weight * promise.get(&part).copied().unwrap_or(1.0));
    let numbers = any(|member| member.numeric.is_some());
    let scaled = numbers && genome.families().any(|(family, _)| family.wants_scale());
    let categories = any(|member| member.low_cardinality.is_some() || member.high_cardinality.is_some());
    let regression = matches!(profile.outcome, Outcome::Values { .. });
    let choices = |on: bool, weight: f64| if on { weight } else { 0.0 };
    vec![
        usual(Part::Members, if members == 1 { 3.0 } else { 1.8 }),
        usual(Part::Weights, choices(members > 1, 1.0)),
        usual(Part::Params, 3.0),
        usual(Part::Numeric, choices(scaled, 1.0)),
        usual(Part::Categories, choices(categories, 0.8)),
        usual(Part::Text, choices(!profile.text.is_empty(), 1.5)),
        usual(Part::Reduce, choices(scaled, 0.3)),
        usual(Part::Target, choices(regression && profile.forecast.is_none(), 0.6)),
        usual(
            Part::Rows,
            choices(profile.time_order.is_some() && profile.forecast.is_none(), 1.0)
                + choices(profile.repeated_rows, 0.5),
        ),
        usual(
            Part::Decision,
            choices(profile.classifies() && profile.metric != Metric::Accuracy, 0.5),
        ),
        usual(
            Part::Bags,
            choices(genome.families().any(|(family, _)| family.is_seeded()), 0.4),
        ),
        usual(Part::Images, choices(genome.images.is_some(), 1.5)),
        usual(Part::Series, choices(genome.series.is_some(), 1.5)),
        usual(Part::Forecast, choices(genome.forecast.is_some(), 2.5)),
    ]
}

fn change(genome: &mut TabularGenome, part: Part, profile: &TaskProfile, chance: &mut Chance) -> Option<String> {
    match part {
        Part::Members => members(genome, profile, chance),
        Part::Weights => weights(genome, chance),
        Part::Params => params(genome, profile, chance),
        Part::Numeric => {
            let (name, family, member) = some_member(genome, chance, Family::wants_scale)?;
            member.numeric = Some(draw::numeric(family, profile, chance));
            Some(format!("{name} now sees {}", member.numeric?.words()))
        }
        Part::Categories => {
            let (name, family, member) = some_member(genome, chance, |family| family != Family::NaiveBayes)?;
            let many = member.high_cardinality.is_some() && (member.low_cardinality.is_none() || chance.happens(0.5));
            let encoding = draw::categories(family, many, chance);
            *(if many {
                &mut member.high_cardinality
            } else {
                &mut member.low_cardinality
            }) = Some(encoding);
            let which = if many { "many" } else { "few" };
            Some(format!(
                "{name} now sees {} for columns of {which} values",
                encoding.words()
            ))
        }
        Part::Text => text(genome, chance),
        Part::Reduce => {
            let (name, family, member) = some_member(genome, chance, Family::wants_scale)?;
            let before = member.reduce;
            member.reduce = if before.is_some() && chance.happens(0.6) {
                None
            } else {
                draw::reduce(family, profile, chance)
            };
            Some(match member.reduce {
                Some(_) => format!("{name} now works on a reduced set of features"),
                None => format!("{name} now works on all features"),
            })
        }
        Part::Target => {
            let others: Vec<_> = [Target::Identity, Target::Log, Target::Sqrt]
                .into_iter()
                .filter(|other| *other != genome.target)
                .collect();
            genome.target = *chance.pick(&others)?;
            Some(match genome.target {
                Target::Identity => "the target is fitted on its own scale".to_owned(),
                Target::Log => "the target is fitted on a log scale, which evens out relative errors".to_owned(),
                Target::Sqrt => "the target is fitted as a square root, between its own and a log scale".to_owned(),
            })
        }
        Part::Rows => rows(genome, profile, chance),
        Part::Decision if profile.metric != Metric::LogLoss => {
            genome.balanced = !genome.balanced;
            Some(if genome.balanced {
                "classes weigh the same in the fit, however rare".to_owned()
            } else {
                "classes weigh as often as they are".to_owned()
            })
        }
        Part::Decision => {
            genome.shrink = !genome.shrink;
            Some(if genome.shrink {
                "probabilities are drawn towards the class shares, against overconfidence".to_owned()
            } else {
                "probabilities are left as the models give them".to_owned()
            })
        }
        Part::Bags => {
            genome.bags = if genome.bags > 1 { genome.bags + 2 } else { 3 };
            Some(format!(
                "{} fits with different seeds are averaged, which takes noise out",
                genome.bags
            ))
        }
        Part::Images => images(genome, profile, chance),
        Part::Series => {
            let fresh = draw::series_features(chance);
            let series = genome.series.as_mut()?;
            match chance.below(3) {
                0 => series.steps = fresh.steps,
                1 => series.quantiles = !series.quantiles,
                _ => series.correlations = !series.correlations,
            }
            Some("each series is described by other numbers".to_owned())
        }
        Part::Forecast => forecast(genome, chance),
    }
}

fn some_member<'a>(
    genome: &'a mut TabularGenome,
    chance: &mut Chance,
    fits: impl Fn(Family) -> bool,
) -> Option<(String, Family, &'a mut Member)> {
    let fitting: Vec<_> = genome
        .members
        .0
        .iter_mut()
        .filter_map(|(name, member)| Some((name.clone(), Family::from_name(name)?, member)))
        .filter(|(_, family, _)| fits(*family))
        .collect();
    let at = chance.below(fitting.len());
    fitting.into_iter().nth(at)
}

fn members(genome: &mut TabularGenome, profile: &TaskProfile, chance: &mut Chance) -> Option<String> {
    let count = genome.members.0.len();
    let add = match count {
        1 => 0.75,
        2 => 0.55,
        MOST_MEMBERS.. => 0.0,
        _ => 0.35,
    };
    let present: Vec<Family> = genome.families().map(|(family, _)| family).collect();
    let mut weights = draw::families(profile);
    for (family, weight) in &mut weights {
        if present.contains(family) {
            *weight *= 0.15;
        }
        if present.iter().all(|other| other.is_tree() != family.is_tree()) {
            *weight *= 1.5;
        }
    }
    if chance.happens(add) {
        let family = chance.weighted(&weights)?;
        let mut fresh = draw::drawn_member(family, profile, chance);
        fresh.weight = genome.members.0.iter().map(|(_, member)| member.weight).sum::<f64>() / count as f64;
        genome.members.0.push((family.name().to_owned(), fresh));
        if chance.happens(0.6) {
            genome.blend = Blend::Fitted;
        }
        return Some(format!(
            "{} joins the blend, as its errors should differ from the others'",
            family.words()
        ));
    }
    let out = chance.below(count);
    if count > 1 && chance.happens(0.5) {
        let (name, _) = genome.members.0.remove(out);
        return Some(format!("{name} leaves the blend, to see whether it carries its weight"));
    }
    let family = chance.weighted(&weights)?;
    let fresh = draw::drawn_member(family, profile, chance);
    let (name, member) = genome.members.0.get_mut(out)?;
    let words = format!("{} takes the place of {name}", family.words());
    *name = family.name().to_owned();
    *member = Member {
        weight: member.weight,
        ..fresh
    };
    Some(words)
}

fn weights(genome: &mut TabularGenome, chance: &mut Chance) -> Option<String> {
    if chance.happens(0.4) {
        genome.blend = if genome.blend == Blend::Fixed {
            Blend::Fitted
        } else {
            Blend::Fixed
        };
        return Some(match genome.blend {
            Blend::Fixed => "the weights of the blend are fixed, which is steadier".to_owned(),
            Blend::Fitted => "the weights of the blend are fitted on held-out predictions".to_owned(),
        });
    }
    genome.blend = Blend::Fixed;
    for (_, member) in &mut genome.members.0 {
        member.weight = plain(member.weight * chance.factor(0.8));
    }
    Some("the weights of the blend are shifted".to_owned())
}

fn params(genome: &mut TabularGenome, profile: &TaskProfile, chance: &mut Chance) -> Option<String> {
    const REACH: f64 = 0.15;
    let classifies = profile.classifies();
    let (name, family, member) = some_member(genome, chance, |_| true)?;
    let specs = family.params(classifies);
    let mut changes = Vec::new();
    for _ in 0..=chance.below(2) {
        let (param, domain, _) = chance.pick(specs)?;
        let value = member.params.get_mut(param)?;
        let next = chance.near(value, *domain, REACH);
        if next != *value {
            changes.push(format!("{param} goes from {value} to {next}"));
            *value = next;
        }
        couple(member, param, &changes);
    }
    (!changes.is_empty()).then(|| format!("in {name}, {}", super::plan::enumerate(&changes)))
}

/// Keeps the product of learning rate and number of trees, so that a slower rate gets the trees it needs.
fn couple(member: &mut Member, param: &str, changes: &[String]) {
    let count = if member.params.get("max_iter").is_some() {
        "max_iter"
    } else {
        "n_estimators"
    };
    let Some((before, after)) = changes.last().filter(|_| param == "learning_rate").and_then(|change| {
        let (before, after) = change.strip_prefix("learning_rate goes from ")?.split_once(" to ")?;
        Some((before.parse::<f64>().ok()?, after.parse::<f64>().ok()?))
    }) else {
        return;
    };
    if let Some(Scalar::Int(trees)) = member.params.get_mut(count) {
        *trees = super::genome::plain_int((*trees as f64 * before / after).clamp(20.0, 800.0));
    }
}

fn text(genome: &mut TabularGenome, chance: &mut Chance) -> Option<String> {
    let (name, family, member) = some_member(genome, chance, |_| true)?;
    let fresh = draw::text(family, chance);
    let text = member.text.as_mut()?;
    let words = match chance.below(4) {
        0 => {
            text.analyzer = fresh.analyzer;
            let kind = match text.analyzer {
                Analyzer::Word => "words",
                Analyzer::CharWb => "runs of letters",
                Analyzer::Both => "words and runs of letters",
            };
            format!("{name} now reads {kind}")
        }
        1 => {
            text.words = fresh.words;
            text.letters = fresh.letters;
            format!(
                "{name} now reads runs of up to {} words or {} letters",
                text.words, text.letters
            )
        }
        2 => {
            text.min_df = fresh.min_df;
            format!("{name} now reads terms that are in at least {} texts", text.min_df)
        }
        _ if text.svd.is_some() => {
            text.svd = fresh.svd.or(Some(100));
            format!("{name} now works on another number of text components")
        }
        _ => {
            text.max_features = if text.max_features.is_some() {
                None
            } else {
                Some([5_000, 10_000, 20_000][chance.below(3)])
            };
            format!("{name} now keeps another number of terms")
        }
    };
    Some(words)
}

fn rows(genome: &mut TabularGenome, profile: &TaskProfile, chance: &mut Chance) -> Option<String> {
    if profile.repeated_rows && (profile.time_order.is_none() || chance.happens(0.3)) {
        genome.drop_duplicates = !genome.drop_duplicates;
        return Some(if genome.drop_duplicates {
            "repeated training rows are dropped, as they would sit in both parts of a fold".to_owned()
        } else {
            "repeated training rows are kept".to_owned()
        });
    }
    genome.half_life = match genome.half_life {
        Some(_) if chance.happens(0.2) => None,
        Some(share) => Some(plain((share * chance.factor(0.9)).clamp(0.02, 2.0))),
        None => Some(draw::half_life(chance)),
    };
    Some(match genome.half_life {
        Some(share) => format!("a row now counts half after {share} of the history"),
        None => "all rows count the same, however old".to_owned(),
    })
}

fn images(genome: &mut TabularGenome, profile: &TaskProfile, chance: &mut Chance) -> Option<String> {
    let native = profile.images.as_ref()?.size;
    let fresh = draw::image_features(native, chance);
    let images = genome.images.as_mut()?;
    Some(match chance.below(3) {
        0 => {
            images.shifts = !images.shifts;
            images.gradient_cells = if images.shifts { 0 } else { images.gradient_cells };
            "whether fits see moved copies of the pictures is changed".to_owned()
        }
        1 => {
            images.gradient_cells = if images.gradient_cells > 0 {
                0
            } else {
                (images.size / 4).clamp(2, 8)
            };
            "whether histograms of edge directions go with the pixels is changed".to_owned()
        }
        _ => {
            images.size = fresh.size;
            images.color = fresh.color;
            "pictures are read at another size".to_owned()
        }
    })
}

fn forecast(genome: &mut TabularGenome, chance: &mut Chance) -> Option<String> {
    let fresh = draw::forecast_features(chance);
    let forecast = genome.forecast.as_mut()?;
    Some(match chance.below(4) {
        0 => {
            forecast.level = fresh.level;
            match forecast.level {
                Level::None => "the fit sees the values themselves".to_owned(),
                Level::Year => "the fit sees ratios to the mean of the latest known year".to_owned(),
                Level::Trend => "the fit sees ratios to an exponential trend".to_owned(),
            }
        }
        1 => {
            forecast.lags = fresh.lags;
            format!("{} lags are features", forecast.lags)
        }
        2 => {
            forecast.waves = fresh.waves;
            format!("{} waves a year are features", forecast.waves)
        }
        _ => {
            forecast.years = fresh.years;
            match forecast.years {
                0 => "the fit sees the whole history".to_owned(),
                years => format!("the fit sees the last {years} years only"),
            }
        }
    })
}

fn ranking_change(genome: &RankingGenome, timed: bool, chance: &mut Chance) -> Option<(RankingGenome, String)> {
    let mut changed = genome.clone();
    let count = changed.scorers.0.len();
    let missing: Vec<_> = ScorerKind::ALL
        .into_iter()
        .filter(|kind| changed.scorers.get(kind.name()).is_none() && (timed || *kind != ScorerKind::NextItem))
        .collect();
    let moves = [
        (0, if missing.is_empty() { 0.0 } else { 1.2 }),
        (1, if count > 1 { 0.5 } else { 0.0 }),
        (2, if count > 1 { 1.2 } else { 0.0 }),
        (3, 2.5),
    ];
    let words = match chance.weighted(&moves)? {
        0 => {
            let kind = *chance.pick(&missing)?;
            changed.scorers.0.push(draw::drawn_scorer(kind, timed, chance));
            format!("{} is added to the sum", kind.words())
        }
        1 => {
            let (name, _) = changed.scorers.0.remove(chance.below(count));
            format!("{name} leaves the sum")
        }
        2 => {
            let at = chance.below(count);
            let (name, scorer) = changed.scorers.0.get_mut(at)?;
            scorer.weight = plain((scorer.weight * chance.factor(0.9)).clamp(0.02, 5.0));
            format!("the weight of {name} goes to {}", scorer.weight)
        }
        _ => {
            let at = chance.below(count);
            let (name, scorer) = changed.scorers.0.get_mut(at)?;
            let kind = ScorerKind::from_name(name)?;
            let mut changes = Vec::new();
            for _ in 0..=chance.below(2) {
                let (param, domain, _) = chance.pick(kind.params(timed))?;
                let value = scorer.params.get_mut(param)?;
                let next = chance.near(value, *domain, 0.2);
                changes.push(format!("{param} goes from {value} to {next}"));
                *value = next;
            }
            format!("in {name}, {}", super::plan::enumerate(&changes))
        }
    };
    Some((changed, words))
}

/// The parts in which two genomes differ.
pub(crate) fn differences(one: &Genome, other: &Genome) -> Vec<Part> {
    let (Genome::Tabular(one), Genome::Tabular(other)) = (one, other) else {
        return Vec::new();
    };
    let mut parts = Vec::new();
    let mut differ = |part: Part, differs: bool| {
        if differs {
            parts.push(part);
        }
    };
    let names =
        |genome: &TabularGenome| -> Vec<String> { genome.members.0.iter().map(|(name, _)| name.clone()).collect() };
    let same_members = names(one) == names(other);
    differ(Part::Members, !same_members);
    if same_members {
        let any = |differs: &dyn Fn(&Member, &Member) -> bool| {
            one.members
                .0
                .iter()
                .zip(&other.members.0)
                .any(|((_, a), (_, b))| differs(a, b))
        };
        differ(
            Part::Weights,
            one.blend != other.blend || any(&|a, b| a.weight != b.weight),
        );
        differ(Part::Params, any(&|a, b| a.params != b.params));
        differ(Part::Numeric, any(&|a, b| a.numeric != b.numeric));
        differ(
            Part::Categories,
            any(&|a, b| (a.low_cardinality, a.high_cardinality) != (b.low_cardinality, b.high_cardinality)),
        );
        differ(Part::Text, any(&|a, b| a.text != b.text));
        differ(Part::Reduce, any(&|a, b| a.reduce != b.reduce));
    }
    differ(Part::Target, one.target != other.target);
    differ(
        Part::Rows,
        (one.drop_duplicates, one.half_life) != (other.drop_duplicates, other.half_life),
    );
    differ(
        Part::Decision,
        (one.shrink, one.balanced) != (other.shrink, other.balanced),
    );
    differ(Part::Bags, one.bags != other.bags);
    differ(Part::Images, one.images != other.images);
    differ(Part::Series, one.series != other.series);
    differ(Part::Forecast, one.forecast != other.forecast);
    parts
}

/// Sets a part of a genome to what another one has.
pub(crate) fn borrow(genome: &TabularGenome, from: &TabularGenome, part: Part) -> TabularGenome {
    let mut mixed = genome.clone();
    match part {
        Part::Target => mixed.target = from.target,
        Part::Rows => {
            (mixed.drop_duplicates, mixed.half_life) = (from.drop_duplicates, from.half_life);
        }
        Part::Decision => (mixed.shrink, mixed.balanced) = (from.shrink, from.balanced),
        Part::Bags => mixed.bags = from.bags,
        Part::Images => mixed.images = from.images,
        Part::Series => mixed.series = from.series,
        Part::Forecast => mixed.forecast = from.forecast,
        Part::Members | Part::Weights | Part::Params | Part::Numeric | Part::Categories | Part::Text | Part::Reduce => {
            (mixed.blend, mixed.members) = (from.blend, Ordered(from.members.0.clone()));
        }
    }
    mixed
}
