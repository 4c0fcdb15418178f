//! `CLADE_*` variables: which key each one sets.

use super::error::ConfigError;
use super::load::{Setting, nearest};

/// Prefix of all variables.
const PREFIX: &str = "CLADE_";

/// Prefixes of variables that belong to the tests and set nothing.
const TEST_PREFIXES: [&str; 2] = ["CLADE_TEST_", "CLADE_SKIP_"];

/// Variables of the build, of the tests, of the model library and of programs in a sandbox; they set nothing either.
const OTHERS: [&str; 9] = [
    "CLADE_KILLS",
    "CLADE_LM_LIBRARY",
    "CLADE_MEASURE_DIR",
    "CLADE_PYTHON_ENV",
    "CLADE_SEED",
    "CLADE_SHARED",
    "CLADE_TORCH",
    "CLADE_UPDATE_SLT",
    "CLADE_VECTORS",
];

/// Variable that names the configuration file.
pub(super) const FILE_VARIABLE: &str = "CLADE_CONFIG";

/// Short names of the two keys that are set most often.
const ALIASES: [(&str, &str); 2] = [("CLADE_STORE", "store.path"), ("CLADE_PYTHON", "python.interpreter")];

/// The variable of a key: `search.steps` is `CLADE_SEARCH_STEPS`.
pub(super) fn variable_of(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "_").to_ascii_uppercase())
}

/// Settings of the environment. `keys` are the known keys, `model_keys` the keys of one model, `exempt` the variables
/// that the configuration names as holders of secrets.
pub(super) fn settings(
    environment: &[(String, String)],
    keys: &[String],
    model_keys: &[&str],
    exempt: &[String],
) -> Result<Vec<Setting>, ConfigError> {
    let mut settings = Vec::new();
    for (variable, value) in environment {
        if !variable.starts_with(PREFIX)
            || TEST_PREFIXES.iter().any(|prefix| variable.starts_with(prefix))
            || OTHERS.contains(&variable.as_str())
            || variable == FILE_VARIABLE
            || exempt.contains(variable)
        {
            continue;
        }
        let Some(key) = key_of(variable, keys, model_keys) else {
            let known = keys
                .iter()
                .map(|key| variable_of(key))
                .chain(ALIASES.map(|(name, _)| name.to_owned()));
            return Err(ConfigError::UnknownVariable {
                variable: variable.clone(),
                near: nearest(variable, known),
            });
        };
        settings.push(Setting {
            key,
            value: value.clone(),
            origin: format!("environment variable {variable}"),
        });
    }
    settings.sort_by(|a, b| a.origin.cmp(&b.origin));
    Ok(settings)
}

/// The key a variable sets.
fn key_of(variable: &str, keys: &[String], model_keys: &[&str]) -> Option<String> {
    if let Some((_, key)) = ALIASES.iter().find(|(name, _)| *name == variable) {
        return Some((*key).to_owned());
    }
    if let Some(key) = keys.iter().find(|key| variable_of(key) == variable) {
        return Some(key.clone());
    }
    let model = variable.strip_prefix("CLADE_MODELS_")?;
    model_keys
        .iter()
        .filter_map(|field| {
            let name = model.strip_suffix(&format!("_{}", field.to_ascii_uppercase()))?;
            (!name.is_empty()).then(|| format!("models.{}.{field}", name.to_ascii_lowercase()))
        })
        // `MODELS_A_USD_…` ends in one field only, but a field may end in another one's name: the longest wins.
        .max_by_key(String::len)
}
