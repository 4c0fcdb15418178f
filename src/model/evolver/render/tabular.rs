//! Programs that predict each row from its features.

use super::script::Script;
use super::{data, estimators, scoring, sources, transformers};
use crate::model::evolver::genome::{Blend, Categorical, Family, Genome, Level, TabularGenome, Target};
use crate::model::evolver::literal::quote;
use crate::model::evolver::profile::{Outcome, TaskProfile};

/// The program of a tabular genome.
pub(crate) fn program(genome: &Genome, tabular: &TabularGenome, profile: &TaskProfile) -> String {
    let mut script = Script::default();
    data::settings(&mut script, genome, profile);
    script.line("SEED = CONFIG[\"seed\"]");
    script.line("MEMBERS = CONFIG[\"members\"]");
    data::columns(&mut script, profile);
    if matches!(profile.outcome, Outcome::Risk { .. }) {
        expected_events(&mut script);
    }
    data::tables(&mut script, tabular, profile);
    sources::features(&mut script, tabular, profile);
    models(&mut script, tabular, profile);
    script.section("Validation");
    scoring::metric(&mut script, profile);
    scoring::decision(&mut script, tabular, profile);
    if tabular.blend == Blend::Fitted {
        fit_weights(&mut script);
    }
    scoring::folds(&mut script, tabular, profile);
    scoring::validation(&mut script, tabular, profile);
    scoring::submission(&mut script, tabular, profile);
    script.finish(&docstring(tabular, profile))
}

fn docstring(genome: &TabularGenome, profile: &TaskProfile) -> String {
    let names: Vec<_> = genome.families().map(|(family, _)| family.words()).collect();
    let how = match names.as_slice() {
        [one] => (*one).to_owned(),
        many => format!("a blend of {}", super::super::plan::enumerate(many)),
    };
    let order = if profile.higher_is_better { "higher" } else { "lower" };
    format!(
        "{}: {how} ({}, {order} is better).",
        profile.task_id,
        profile.metric.name()
    )
}

fn models(script: &mut Script, genome: &TabularGenome, profile: &TaskProfile) {
    script.section("Models");
    let uses_frequency =
        genome.members.0.iter().any(|(_, member)| {
            [member.low_cardinality, member.high_cardinality].contains(&Some(Categorical::Frequency))
        });
    if uses_frequency {
        transformers::frequency_encoder(script);
    }
    script.from("sklearn.pipeline", "Pipeline");
    for (name, member) in &genome.members.0 {
        let Some(family) = Family::from_name(name) else {
            continue;
        };
        let (lines, steps) = transformers::steps(script, member, family, name, profile);
        let estimator = estimators::expression(script, family, name, genome, profile);
        let mut text = format!("def {name}(seed):\n    \"\"\"{}.\"\"\"\n", sentence(family.words()));
        for line in lines {
            text += &line;
            text.push('\n');
        }
        let mut steps: Vec<_> = steps
            .into_iter()
            .map(|(step, expression)| format!("({}, {expression})", quote(&step)))
            .collect();
        steps.push(format!("(\"model\", {estimator})"));
        text += &format!("    return Pipeline([{}])", steps.join(", "));
        script.function(text);
    }
    predict(script, genome, profile);
}

fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + letters.as_str())
        .unwrap_or_default()
}

/// Renders `predict`: one member, or the only one, fitted on some training rows.
fn predict(script: &mut Script, genome: &TabularGenome, profile: &TaskProfile) {
    let blended = genome.members.0.len() > 1;
    let only = genome.members.0.first().map_or("", |(name, _)| name.as_str());
    if blended {
        let names: Vec<_> = genome
            .members
            .0
            .iter()
            .map(|(name, _)| format!("\"{name}\": {name}"))
            .collect();
        script.line(format!("BUILDERS = {{{}}}", names.join(", ")));
    }
    let weighing: Vec<_> = genome
        .members
        .0
        .iter()
        .filter(|(name, _)| Family::from_name(name).is_some_and(Family::weighs_rows))
        .collect();
    let weighs = genome.half_life.is_some() && !weighing.is_empty();
    let all_weigh = weighing.len() == genome.members.0.len();
    if weighs && !all_weigh {
        let names: Vec<_> = weighing.iter().map(|(name, _)| quote(name)).collect();
        script.line(format!("TAKES_WEIGHTS = {{{}}}", names.join(", ")));
    }
    let signature = if blended {
        "predict(name, fit, hold=None)"
    } else {
        "predict(fit, hold=None)"
    };
    let mut text = format!(
        "def {signature}:\n    \"\"\"Fits on some training rows and predicts others, or the test rows.\"\"\"\n    table = X_test if hold is None else X.iloc[hold]\n"
    );
    let level = genome.forecast.map_or(Level::None, |forecast| forecast.level);
    if let Some(forecast) = &genome.forecast {
        text += "    when = test_dates if hold is None else dates[hold]\n";
        if forecast.years > 0 {
            text +=
                "    fit = fit[dates[fit] > dates[fit[-1]] - pd.DateOffset(years=CONFIG[\"forecast\"][\"years\"])]\n";
        }
        match level {
            Level::Year => text += "    fit = fit[np.isfinite(level(dates[fit]))]\n",
            Level::Trend => {
                text += "    days = (dates - dates[0]).days\n    line = np.polyfit(days[fit], np.log(y[fit]), 1)\n    \
                         level = lambda when: np.exp(np.polyval(line, (when - dates[0]).days))\n";
            }
            Level::None => {}
        }
    }
    let targets = match (level, genome.target) {
        (Level::None, Target::Identity) => "y[fit]",
        (Level::None, Target::Log) => "np.log1p(y[fit])",
        (Level::None, Target::Sqrt) => "np.sqrt(y[fit])",
        _ => "np.log(y[fit] / level(dates[fit]))",
    };
    let shifts = genome.images.is_some_and(|images| images.shifts);
    let (inputs, targets) = if shifts {
        text += &format!("    pictures, targets = with_shifts(X.iloc[fit], {targets})\n");
        ("pictures", "targets".to_owned())
    } else {
        ("X.iloc[fit]", targets.to_owned())
    };
    let options = if !weighs || shifts {
        String::new()
    } else if all_weigh {
        ", model__sample_weight=row_weights[fit]".to_owned()
    } else {
        text += "    options = {\"model__sample_weight\": row_weights[fit]} if name in TAKES_WEIGHTS else {}\n";
        ", **options".to_owned()
    };
    let builder = if blended { "BUILDERS[name]" } else { only };
    let output = output(genome, profile, level);
    if genome.bags > 1 {
        text += "    bags = []\n    for bag in range(CONFIG[\"bags\"]):\n";
        text += &format!("        model = {builder}(SEED + bag).fit({inputs}, {targets}{options})\n");
        for line in &output.lines {
            text += &format!("        {line}\n");
        }
        text += &format!(
            "        bags.append({})\n    return np.mean(bags, axis=0)",
            output.value
        );
    } else {
        text += &format!("    model = {builder}(SEED).fit({inputs}, {targets}{options})\n");
        for line in &output.lines {
            text += &format!("    {line}\n");
        }
        text += &format!("    return {}", output.value);
    }
    script.function(text);
}

struct Output {
    lines: Vec<String>,
    value: String,
}

/// How the prediction of a fitted model comes back on the scale of the target.
fn output(genome: &TabularGenome, profile: &TaskProfile, level: Level) -> Output {
    let line = |text: &str| text.to_owned();
    if scoring::is_matrix(profile) {
        return Output {
            lines: vec![
                line("probabilities = np.zeros((len(table), len(CLASSES)))"),
                line("probabilities[:, np.searchsorted(CLASSES, model.classes_)] = model.predict_proba(table)"),
            ],
            value: line("probabilities"),
        };
    }
    if matches!(profile.outcome, Outcome::Probability { .. }) {
        return Output {
            lines: Vec::new(),
            value: line("model.predict_proba(table)[:, 1]"),
        };
    }
    let back = match (level, genome.target) {
        (Level::None, Target::Identity) => "model.predict(table)",
        (Level::None, Target::Log) => "np.expm1(model.predict(table))",
        (Level::None, Target::Sqrt) => "np.maximum(model.predict(table), 0) ** 2",
        _ => {
            return Output {
                lines: Vec::new(),
                value: line("np.exp(model.predict(table)) * level(when)"),
            };
        }
    };
    let value = if genome.forecast.is_some() {
        back.to_owned()
    } else if profile.has_one_target() {
        format!("np.clip({back}, y.min(), y.max())")
    } else {
        format!("np.clip({back}, y.min(axis=0), y.max(axis=0))")
    };
    Output {
        lines: Vec::new(),
        value,
    }
}

fn fit_weights(script: &mut Script) {
    script.from("scipy.optimize", "nnls");
    script.function(
        "def fit_weights(parts, truth):\n    \"\"\"Least-squares weights of the members, none below zero, with sum one.\"\"\"\n    \
         weights, _ = nnls(np.column_stack([part.ravel() for part in parts]), truth.ravel())\n    \
         return weights / weights.sum()",
    );
}

fn expected_events(script: &mut Script) {
    script.function(
        "def expected_events(durations, events):\n    \"\"\"Cumulative hazard at each time (Nelson and Aalen): the events a row of average risk has by then.\"\"\"\n    \
         order = np.argsort(durations)\n    at_risk = len(durations) - np.arange(len(durations))\n    \
         hazard = np.cumsum(events[order] / at_risk)\n    return hazard[np.searchsorted(durations[order], durations, side=\"right\") - 1]",
    );
}
