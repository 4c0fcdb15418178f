//! Genomes and changes in words.

use super::genome::{Blend, Genome, Level, Reduce, ScorerKind, TabularGenome, Target};
use super::profile::TaskProfile;

/// Words with commas and an `and`.
pub(crate) fn enumerate<S: AsRef<str>>(words: &[S]) -> String {
    match words {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [first, second] => format!("{} and {}", first.as_ref(), second.as_ref()),
        [start @ .., last] => {
            let start: Vec<_> = start.iter().map(AsRef::as_ref).collect();
            format!("{}, and {}", start.join(", "), last.as_ref())
        }
    }
}

/// What the program of a genome does, in one to four sentences.
pub(crate) fn describe(genome: &Genome, profile: &TaskProfile) -> String {
    match genome {
        Genome::Tabular(tabular) => describe_tabular(tabular, profile),
        Genome::Ranking(ranking) => {
            let kinds: Vec<_> = ranking
                .scorers
                .0
                .iter()
                .filter_map(|(name, _)| ScorerKind::from_name(name))
                .map(ScorerKind::words)
                .collect();
            format!(
                "Score every item for every user by {}, and list the best ones the user has not chosen yet. \
                 The latest choices of each user are held back to measure the lists.",
                enumerate(&kinds)
            )
        }
    }
}

fn describe_tabular(genome: &TabularGenome, profile: &TaskProfile) -> String {
    let members: Vec<_> = genome
        .families()
        .map(|(family, member)| {
            let mut parts = Vec::new();
            if let Some(numeric) = member.numeric {
                parts.push(numeric.words().to_owned());
            }
            let encodings = [member.low_cardinality, member.high_cardinality];
            let mut encodings: Vec<_> = encodings
                .iter()
                .flatten()
                .map(|encoding| encoding.words().to_owned())
                .collect();
            encodings.dedup();
            parts.extend(encodings);
            if let Some(text) = &member.text {
                parts.push(match text.svd {
                    Some(size) => format!("{size} components of TF-IDF text features"),
                    None => "TF-IDF text features".to_owned(),
                });
            }
            match member.reduce {
                Some(Reduce::Pca(_)) => parts.push("principal components of all".to_owned()),
                Some(Reduce::Select(_)) => parts.push("only the strongest features".to_owned()),
                None => {}
            }
            format!("{} on {}", family.words(), enumerate(&parts))
        })
        .collect();
    let mut text = if members.len() == 1 {
        format!("Fit {}.", members[0])
    } else {
        let how = match genome.blend {
            Blend::Fixed => "fixed weights",
            Blend::Fitted => "weights fitted on held-out predictions",
        };
        format!("Blend {} members with {how}: {}.", members.len(), members.join("; "))
    };
    let mut also = Vec::new();
    match genome.target {
        Target::Log => also.push("the target is fitted on a log scale"),
        Target::Sqrt => also.push("the target is fitted as a square root"),
        Target::Identity => {}
    }
    if genome.drop_duplicates {
        also.push("repeated training rows are dropped");
    }
    if genome.half_life.is_some() {
        also.push("recent rows weigh more than old ones");
    }
    if genome.balanced {
        also.push("classes weigh the same");
    }
    if genome.shrink {
        also.push("probabilities are drawn towards the class shares as far as held-out rows ask for it");
    }
    if genome.bags > 1 {
        also.push("fits with several seeds are averaged");
    }
    if genome.images.is_some_and(|images| images.shifts) {
        also.push("fits also see each picture moved by one pixel");
    }
    if genome.images.is_some_and(|images| images.gradient_cells > 0) {
        also.push("histograms of edge directions go with the pixels");
    }
    match genome.forecast.map(|forecast| forecast.level) {
        Some(Level::Year) => also.push("the fit sees ratios to the mean of the latest known year"),
        Some(Level::Trend) => also.push("the fit sees ratios to an exponential trend"),
        Some(Level::None) | None => {}
    }
    if !also.is_empty() {
        text += &format!(" Also, {}.", enumerate(&also));
    }
    text + " " + &validation(genome, profile)
}

fn validation(genome: &TabularGenome, profile: &TaskProfile) -> String {
    let metric = profile.metric.name();
    if profile.time_order.is_some() {
        return format!("The {metric} is measured on the latest rows, as the test rows lie after the training rows.");
    }
    match (&profile.group, genome.folds) {
        (Some(group), 1) => format!("The {metric} is measured on held-out groups of {group}."),
        (Some(group), folds) => {
            format!("The {metric} is measured in {folds} folds that keep each {group} in one part.")
        }
        (None, 1) => format!("The {metric} is measured on held-out rows."),
        (None, folds) => format!("The {metric} is measured by {folds}-fold cross-validation."),
    }
}
