//! Reading the files: settings at the top of a program and its data section.

use super::script::Script;
use crate::model::evolver::genome::{Genome, TabularGenome};
use crate::model::evolver::literal::{list, quote};
use crate::model::evolver::profile::{Outcome, SAMPLE, TEST, TRAIN, TaskProfile};

/// Imports and settings that every program has.
pub(crate) fn settings(script: &mut Script, genome: &Genome, profile: &TaskProfile) {
    script.import("os", None);
    script.from("pathlib", "Path");
    script.import("numpy", Some("np"));
    script.import("pandas", Some("pd"));
    script.line("# Every choice of this program; the sections below carry them out.");
    script.line(format!("CONFIG = {}", genome.python()));
    script.line("");
    script.line("DATA_DIR = Path(os.environ[\"DATA_DIR\"])");
    script.line(format!("ID = {}", quote(&profile.id)));
}

/// The call that reads one of the three tables.
pub(crate) fn read(profile: &TaskProfile, file: &str) -> String {
    let [train, test, sample] = profile.formats;
    let format = match file {
        TRAIN => train,
        TEST => test,
        _ => sample,
    };
    let mut options = String::new();
    if format.separator != ',' {
        options += &format!(", sep={}", quote(&format.separator.to_string()));
    }
    if !format.utf8 {
        options += ", encoding=\"latin-1\"";
    }
    format!("pd.read_csv(DATA_DIR / {}{options})", quote(file))
}

/// Names of the columns a tabular program uses.
pub(crate) fn columns(script: &mut Script, profile: &TaskProfile) {
    match &profile.outcome {
        Outcome::Values { targets, .. } if targets.len() > 1 => script.line(format!("TARGETS = {}", list(targets, 10))),
        Outcome::Risk {
            duration,
            event,
            column,
        } => {
            script.line(format!("TIME = {}", quote(duration)));
            script.line(format!("EVENT = {}", quote(event)));
            script.line(format!("RISK = {}", quote(column)));
        }
        outcome => {
            for target in outcome.targets() {
                script.line(format!("TARGET = {}", quote(target)));
            }
        }
    }
    for (name, columns) in [
        ("NUMERIC", &profile.numeric),
        ("LOW_CARDINALITY", &profile.low),
        ("HIGH_CARDINALITY", &profile.high),
        ("TEXT", &profile.text),
    ] {
        if !columns.is_empty() {
            script.line(format!("{name} = {}", list(columns, name.len() + 3)));
        }
    }
}

/// Reads the tables and prepares rows and targets.
pub(crate) fn tables(script: &mut Script, genome: &TabularGenome, profile: &TaskProfile) {
    script.section("Data");
    script.line(format!("train = {}", read(profile, TRAIN)));
    script.line(format!("test = {}", read(profile, TEST)));
    script.line(format!("sample = {}", read(profile, SAMPLE)));
    if profile.missing_targets {
        let targets = match &profile.outcome {
            Outcome::Values { targets, .. } if targets.len() > 1 => "TARGETS",
            Outcome::Risk { .. } => "[TIME, EVENT]",
            _ => "[TARGET]",
        };
        script.line(format!("train = train.dropna(subset={targets}).reset_index(drop=True)"));
    }
    if genome.drop_duplicates {
        script.line("train = train.drop_duplicates(ignore_index=True)");
    }
    if let Some(time) = &profile.time_order {
        script.line(format!(
            "when = pd.to_datetime(train[{}], format={})",
            quote(&time.name),
            quote(time.layout.pandas())
        ));
        script.line("train = train.iloc[np.argsort(when.fillna(when.min()), kind=\"stable\")].reset_index(drop=True)");
    }
    match &profile.outcome {
        Outcome::Values { targets, .. } if targets.len() > 1 => script.line("y = train[TARGETS].to_numpy(float)"),
        Outcome::Values { .. } => script.line("y = train[TARGET].to_numpy(float)"),
        Outcome::Label { classes, positive, .. } => {
            let text = classes.iter().any(|class| !class.bare);
            script.line(format!(
                "y = train[TARGET]{}.to_numpy()",
                if text { ".astype(object)" } else { "" }
            ));
            script.line("CLASSES, counts = np.unique(y, return_counts=True)");
            script.line("SHARES = counts / counts.sum()");
            if let (Some(positive), crate::model::evolver::metric::Metric::F1) = (positive, profile.metric) {
                script.line(format!("POSITIVE = {}", positive.python()));
            }
        }
        Outcome::Classes { columns, .. } => {
            let text = columns.iter().any(|(class, _)| !class.bare);
            script.line(format!(
                "y = train[TARGET]{}.to_numpy()",
                if text { ".astype(object)" } else { "" }
            ));
            if genome.shrink {
                script.line("CLASSES, counts = np.unique(y, return_counts=True)");
                script.line("SHARES = counts / counts.sum()");
            } else {
                script.line("CLASSES = np.unique(y)");
            }
        }
        Outcome::Probability { positive, negative, .. } => {
            let class = if genome.other_class { negative } else { positive };
            script.line(format!("y = (train[TARGET] == {}).to_numpy(int)", class.python()));
            if genome.shrink {
                script.line("SHARES = y.mean()");
            }
        }
        Outcome::Risk { .. } => {
            script.line("durations, events = train[TIME].to_numpy(float), train[EVENT].to_numpy(int)");
            script.line("y = events - expected_events(durations, events)");
        }
        Outcome::Ranking(_) => {}
    }
    if genome.half_life.is_some()
        && let Some(time) = &profile.time_order
    {
        script.line(format!(
            "when = pd.to_datetime(train[{}], format={})",
            quote(&time.name),
            quote(time.layout.pandas())
        ));
        script.line("age = (when.max() - when).dt.days.fillna(0)");
        script.line("row_weights = 0.5 ** (age / age.max() / CONFIG[\"half_life\"]).to_numpy()");
    }
}
