//! Peculiarities of services, as data: `configs/models/*.toml`. A new service needs a file, not code.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// The embedded profiles by name.
const FILES: [(&str, &str); 7] = [
    ("compatible", include_str!("../../../configs/models/compatible.toml")),
    ("deepseek", include_str!("../../../configs/models/deepseek.toml")),
    ("ollama", include_str!("../../../configs/models/ollama.toml")),
    ("openai", include_str!("../../../configs/models/openai.toml")),
    ("openrouter", include_str!("../../../configs/models/openrouter.toml")),
    ("sglang", include_str!("../../../configs/models/sglang.toml")),
    ("vllm", include_str!("../../../configs/models/vllm.toml")),
];

#[expect(
    clippy::expect_used,
    reason = "the files are part of the binary, and a test reads each"
)]
static PROFILES: LazyLock<BTreeMap<&'static str, Profile>> = LazyLock::new(|| {
    FILES
        .iter()
        .map(|(name, text)| (*name, Profile::parse(text).expect("an embedded profile")))
        .collect()
});

/// A parameter of sampling that a service may take or refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Parameter {
    /// `temperature`.
    Temperature,
    /// `top_p`.
    TopP,
    /// `seed`.
    Seed,
}

/// What is peculiar to a service.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// What service it is.
    pub doc: String,
    /// Usual base URL.
    pub endpoint: Option<String>,
    /// Usual variable of the API key.
    pub api_key_env: Option<String>,
    /// Path of chat completions below the base URL.
    pub path: String,
    /// Field of the token limit.
    pub max_tokens_field: String,
    /// Sampling parameters that the service takes; others are left out of requests.
    pub parameters: Vec<Parameter>,
    /// Answers come as a stream unless the model says otherwise.
    pub stream: bool,
    /// The service takes `stream_options.include_usage`.
    pub stream_usage: bool,
    /// Fields of a message that may hold reasoning, in the order they are looked at.
    pub reasoning_fields: Vec<String>,
    /// Error codes, or parts of messages, that say the prompt is too long.
    pub too_long: Vec<String>,
    /// Error codes, or parts of messages, that say the prompt offends a rule of the service: another prompt may not.
    pub refused: Vec<String>,
    /// Error codes, or parts of messages, that say the account has nothing left: waiting does not help.
    pub out_of_credit: Vec<String>,
    /// What differs for some models of the service; the first whose pattern fits counts.
    #[serde(default)]
    pub models: Vec<ModelPeculiarity>,
}

/// What differs for some models of a service.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPeculiarity {
    /// Name of the model; a `*` at the end stands for any rest.
    pub pattern: String,
    /// Sampling parameters that the model takes.
    pub parameters: Vec<Parameter>,
}

impl Profile {
    /// Name of the profile that holds where none is named.
    pub const DEFAULT: &str = "compatible";

    fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// The profile of a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PROFILES.get(name)
    }

    /// Names of all profiles, sorted.
    pub fn names() -> Vec<&'static str> {
        FILES.iter().map(|(name, _)| *name).collect()
    }

    /// Sampling parameters that a model of the service takes.
    pub fn parameters_of(&self, model: &str) -> &[Parameter] {
        self.models
            .iter()
            .find(|peculiarity| peculiarity.fits(model))
            .map_or(&self.parameters, |peculiarity| &peculiarity.parameters)
    }
}

impl ModelPeculiarity {
    fn fits(&self, model: &str) -> bool {
        match self.pattern.strip_suffix('*') {
            Some(beginning) => model.starts_with(beginning),
            None => model == self.pattern,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::*;
    use crate::model::openai::Endpoint;

    #[test]
    fn every_profile_reads_and_is_sound() {
        for (name, text) in FILES {
            let profile = Profile::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(profile.doc.ends_with('.'), "{name}");
            assert!(!profile.path.starts_with('/'), "{name}");
            assert!(profile.max_tokens_field.starts_with("max_"), "{name}");
            assert!(!profile.reasoning_fields.is_empty(), "{name}");
            if let Some(endpoint) = &profile.endpoint {
                assert!(Endpoint::parse(endpoint, false).is_ok(), "{name}");
            }
            for phrase in profile
                .too_long
                .iter()
                .chain(&profile.refused)
                .chain(&profile.out_of_credit)
            {
                assert_eq!(*phrase, phrase.to_lowercase(), "{name}: compared in lower case");
            }
        }
        assert!(Profile::names().is_sorted());
        assert!(Profile::named(Profile::DEFAULT).is_some());
    }

    #[test]
    fn every_file_of_the_folder_is_embedded() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/configs/models");
        let mut found: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| {
                entry
                    .unwrap()
                    .path()
                    .file_stem()
                    .unwrap()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        found.sort();
        assert_eq!(found, Profile::names());
    }

    #[test]
    fn models_of_a_service_may_differ() {
        let openai = Profile::named("openai").unwrap();
        assert_eq!(openai.parameters_of("o3-mini"), [Parameter::Seed]);
        assert!(openai.parameters_of("gpt-4.1").contains(&Parameter::Temperature));
    }
}
