//! The metric, the program's own validation, and the submission.

use super::script::Script;
use crate::model::evolver::genome::{Blend, TabularGenome};
use crate::model::evolver::literal::quote;
use crate::model::evolver::metric::Metric;
use crate::model::evolver::profile::{Outcome, TaskProfile};

/// Renders `metric(truth, prediction)`.
pub(crate) fn metric(script: &mut Script, profile: &TaskProfile) {
    if let Some((module, name)) = profile.metric.import() {
        script.from(module, name);
    }
    let (docstring, body) = (profile.metric.name(), profile.metric.body(&profile.outcome));
    let first = docstring
        .chars()
        .next()
        .map(|c| c.to_uppercase().to_string())
        .unwrap_or_default();
    let rest: String = docstring.chars().skip(1).collect();
    script.function(format!(
        "def metric(truth, prediction):\n    \"\"\"{first}{rest}.\"\"\"\n{body}"
    ));
}

/// Renders what turns blended predictions into the form that is submitted and scored.
pub(crate) fn decision(script: &mut Script, genome: &TabularGenome, profile: &TaskProfile) {
    match (&profile.outcome, profile.metric) {
        (Outcome::Label { .. }, Metric::Accuracy) => script.function(
            "def decide(probabilities):\n    \"\"\"The likeliest class.\"\"\"\n    return CLASSES[np.argmax(probabilities, axis=1)]",
        ),
        (Outcome::Label { .. }, _) => script.function(
            "def decide(probabilities, power):\n    \"\"\"The class that is likeliest after dividing by the class shares to a power.\"\"\"\n    \
             return CLASSES[np.argmax(probabilities / SHARES**power, axis=1)]",
        ),
        (Outcome::Values { .. }, Metric::Qwk) => script.function(
            "def decide(values):\n    \"\"\"Whole levels, cut so that held-out predictions get the shares of the training data.\"\"\"\n    \
             return LEVELS[np.searchsorted(cuts, values)]",
        ),
        (Outcome::Classes { .. } | Outcome::Probability { .. }, _) if genome.shrink => script.function(
            "def shrunk(probabilities, share):\n    \"\"\"Probabilities drawn towards the class shares.\"\"\"\n    \
             return (1 - share) * probabilities + share * SHARES",
        ),
        _ => {}
    }
}

/// Renders the folds.
pub(crate) fn folds(script: &mut Script, genome: &TabularGenome, profile: &TaskProfile) {
    const SELECTION: &str = "sklearn.model_selection";
    let holdout = genome.folds == 1;
    let strata = profile.classifies();
    if profile.time_order.is_some() {
        script.from(SELECTION, "TimeSeriesSplit");
        if holdout {
            script.line("splits = list(TimeSeriesSplit(2, test_size=min(len(test), len(train) // 3)).split(X))[-1:]");
        } else {
            script.line("held_out = min(len(test), len(train) // (CONFIG[\"folds\"] + 1))");
            script.line("splits = list(TimeSeriesSplit(CONFIG[\"folds\"], test_size=held_out).split(X))");
        }
        return;
    }
    let (class, groups) = match (&profile.group, holdout, strata) {
        (Some(group), false, true) => ("StratifiedGroupKFold", Some(group)),
        (Some(group), false, false) => ("GroupKFold", Some(group)),
        (Some(group), true, _) => ("GroupShuffleSplit", Some(group)),
        (None, true, true) => ("StratifiedShuffleSplit", None),
        (None, true, false) => ("ShuffleSplit", None),
        (None, false, true) => ("StratifiedKFold", None),
        (None, false, false) => ("KFold", None),
    };
    script.from(SELECTION, class);
    let arguments = if holdout {
        "1, test_size=0.2, random_state=SEED"
    } else {
        "CONFIG[\"folds\"], shuffle=True, random_state=SEED"
    };
    let split = match groups {
        Some(group) => format!("X, y, groups=train[{}]", quote(group)),
        None => "X, y".to_owned(),
    };
    script.line(format!("splits = list({class}({arguments}).split({split}))"));
}

/// Renders the validation of the blend and prints its score.
pub(crate) fn validation(script: &mut Script, genome: &TabularGenome, profile: &TaskProfile) {
    let blended = genome.members.0.len() > 1;
    script.line("held = np.concatenate([hold for _, hold in splits])");
    if blended {
        script.line("parts = [np.concatenate([predict(name, fit, hold) for fit, hold in splits]) for name in MEMBERS]");
        if genome.blend == Blend::Fitted {
            let truth = if is_matrix(profile) {
                "(y[held][:, None] == CLASSES).astype(float)"
            } else {
                "y[held].astype(float)"
            };
            script.line(format!("weights = fit_weights(parts, {truth})"));
            script.line("print(\"Weights:\", dict(zip(MEMBERS, weights.round(3))))");
        } else {
            script.line("weights = [member[\"weight\"] for member in MEMBERS.values()]");
        }
        script.line("held_prediction = np.average(parts, axis=0, weights=weights)");
    } else {
        script.line("held_prediction = np.concatenate([predict(fit, hold) for fit, hold in splits])");
    }
    if genome.shrink {
        script.line("shares = np.linspace(0, 0.9, 19)");
        script.line("share = min(shares, key=lambda share: metric(y[held], shrunk(held_prediction, share)))");
        script.line("held_prediction = shrunk(held_prediction, share)");
    }
    let scored = match (&profile.outcome, profile.metric) {
        (Outcome::Label { .. }, Metric::Accuracy) => "metric(y[held], decide(held_prediction))",
        (Outcome::Label { .. }, _) => {
            script.line("powers = np.linspace(-0.5, 1.5, 41)");
            script.line("power = max(powers, key=lambda power: metric(y[held], decide(held_prediction, power)))");
            "metric(y[held], decide(held_prediction, power))"
        }
        (Outcome::Values { .. }, Metric::Qwk) => {
            script.line("LEVELS, counts = np.unique(y.round().astype(int), return_counts=True)");
            script.line("cuts = np.quantile(held_prediction, np.cumsum(counts)[:-1] / counts.sum())");
            "metric(y[held].round().astype(int), decide(held_prediction))"
        }
        (Outcome::Risk { .. }, _) => "metric(held, held_prediction)",
        _ => "metric(y[held], held_prediction)",
    };
    script.line(format!("score = {scored}"));
    script.line("print(f\"Final Validation Score: {score:.6f}\")");
}

/// Renders the final fit and writes the submission.
pub(crate) fn submission(script: &mut Script, genome: &TabularGenome, profile: &TaskProfile) {
    script.section("Submission");
    if genome.members.0.len() > 1 {
        script.line(
            "prediction = np.average([predict(name, np.arange(len(X))) for name in MEMBERS], axis=0, weights=weights)",
        );
    } else {
        script.line("prediction = predict(np.arange(len(X)))");
    }
    if genome.shrink {
        script.line("prediction = shrunk(prediction, share)");
    }
    let fill = match &profile.outcome {
        Outcome::Label { .. } if profile.metric == Metric::Accuracy => {
            "{ID: test[ID], TARGET: decide(prediction)}".to_owned()
        }
        Outcome::Label { .. } => "{ID: test[ID], TARGET: decide(prediction, power)}".to_owned(),
        Outcome::Values { .. } if profile.metric == Metric::Qwk => {
            "{ID: test[ID], TARGET: decide(prediction)}".to_owned()
        }
        Outcome::Classes { columns, .. } => {
            let same = columns
                .iter()
                .all(|(class, column)| class.text == *column && !class.bare);
            let names = if same {
                "CLASSES".to_owned()
            } else {
                let names: Vec<_> = columns
                    .iter()
                    .map(|(class, column)| format!("{}: {}", class.python(), quote(column)))
                    .collect();
                script.line(format!("COLUMNS = {{{}}}", names.join(", ")));
                "[COLUMNS[name] for name in CLASSES]".to_owned()
            };
            format!("{{ID: test[ID], **dict(zip({names}, prediction.T))}}")
        }
        Outcome::Values { targets, .. } if targets.len() > 1 => {
            "{ID: test[ID], **dict(zip(TARGETS, prediction.T))}".to_owned()
        }
        Outcome::Risk { .. } => "{ID: test[ID], RISK: prediction}".to_owned(),
        outcome => {
            let column = profile.submission.iter().find(|column| **column != profile.id);
            let target = outcome.targets().first().copied().unwrap_or_default().to_owned();
            match column {
                Some(column) if *column != target => format!("{{ID: test[ID], {}: prediction}}", quote(column)),
                _ => "{ID: test[ID], TARGET: prediction}".to_owned(),
            }
        }
    };
    script.line(format!("predicted = pd.DataFrame({fill})"));
    let extra =
        matches!(&profile.outcome, Outcome::Classes { columns, .. } if columns.len() + 1 < profile.submission.len());
    let complete = if extra {
        ".reindex(columns=sample.columns).fillna(0.0)"
    } else {
        "[sample.columns]"
    };
    script.line(format!(
        "submission = sample[[ID]].merge(predicted, on=ID, how=\"left\"){complete}"
    ));
    script.line("submission.to_csv(\"submission.csv\", index=False)");
}

/// Whether members predict one column for each class.
pub(crate) fn is_matrix(profile: &TaskProfile) -> bool {
    matches!(profile.outcome, Outcome::Label { .. } | Outcome::Classes { .. })
}
