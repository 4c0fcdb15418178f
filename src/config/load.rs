//! The layers: defaults < file < environment < command line, merged by figment.

use std::path::PathBuf;

use figment::error::Kind;
use figment::providers::{Format, Toml};
use figment::value::{Dict, Map, Value};
use figment::{Error as FigmentError, Figment, Metadata, Profile, Provider};

use super::environment::{self, FILE_VARIABLE};
use super::error::ConfigError;
use super::{Config, entries, validate};
use crate::model::ModelOptions;

/// Text of the embedded defaults.
pub const DEFAULTS: &str = include_str!("../../configs/default.toml");

/// File that is read when none is named.
const LOCAL_FILE: &str = "clade.toml";

/// Name of the embedded defaults as an origin.
pub const DEFAULT_ORIGIN: &str = "default";

/// One value of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// Dotted key.
    pub key: String,
    /// Value as text.
    pub value: String,
    /// The flag it came from, such as `--store`.
    pub flag: String,
}

/// What is read beside the defaults.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// File that must exist.
    pub file: Option<PathBuf>,
    /// Folder whose `clade.toml` is read when no file is named.
    pub folder: Option<PathBuf>,
    /// Variables of the environment.
    pub environment: Vec<(String, String)>,
    /// Values of the command line; later ones win.
    pub overrides: Vec<Override>,
}

/// A configuration with the origin of its values.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    figment: Figment,
}

/// One value of one key, from one place.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub key: String,
    pub value: String,
    pub origin: String,
}

impl Override {
    /// Reads `KEY=VALUE` of a flag.
    pub fn parse(text: &str, flag: &str) -> Result<Self, ConfigError> {
        match text.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => Ok(Self {
                key: key.trim().to_owned(),
                value: value.trim().to_owned(),
                flag: flag.to_owned(),
            }),
            _ => Err(ConfigError::Override { text: text.to_owned() }),
        }
    }
}

impl Sources {
    /// The process's environment and current folder.
    pub fn from_process() -> Self {
        Self {
            file: None,
            folder: std::env::current_dir().ok(),
            environment: std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
            overrides: Vec::new(),
        }
    }

    /// Reads and merges all layers.
    pub fn load(&self) -> Result<Loaded, ConfigError> {
        let defaults = Figment::new().merge(Named {
            name: DEFAULT_ORIGIN.to_owned(),
            provider: Toml::string(DEFAULTS),
        });
        let known = entries::keys(&extract(&defaults)?);

        let mut figment = defaults;
        if let Some(path) = self.config_file()? {
            let text = std::fs::read_to_string(&path).map_err(|source| ConfigError::Unreadable {
                path: path.clone(),
                source,
            })?;
            figment = figment.merge(Named {
                name: path.display().to_string(),
                provider: Toml::string(&text),
            });
        }
        let exempt = entries::variables_named_in(&extract_value(&figment)?);
        for setting in environment::settings(&self.environment, &known, &ModelOptions::KEYS, &exempt)? {
            figment = figment.merge(setting);
        }
        for item in &self.overrides {
            let origin = format!("command line ({})", item.flag);
            figment = figment.merge(Setting {
                key: item.key.clone(),
                value: item.value.clone(),
                origin,
            });
        }
        let loaded = Loaded {
            config: extract(&figment)?,
            figment,
        };
        validate::check(&loaded)?;
        Ok(loaded)
    }

    /// The file to read: the named one, that of [`FILE_VARIABLE`], else `clade.toml` when there is one.
    fn config_file(&self) -> Result<Option<PathBuf>, ConfigError> {
        if let Some(path) = &self.file {
            return Ok(Some(path.clone()));
        }
        if let Some((_, path)) = self
            .environment
            .iter()
            .find(|(name, value)| name == FILE_VARIABLE && !value.is_empty())
        {
            return Ok(Some(path.into()));
        }
        let Some(folder) = &self.folder else { return Ok(None) };
        let path = folder.join(LOCAL_FILE);
        let exists = path.try_exists().map_err(|source| ConfigError::Unreadable {
            path: path.clone(),
            source,
        })?;
        Ok(exists.then_some(path))
    }
}

impl Loaded {
    /// Every key with its value and origin, secrets redacted, in order of the keys.
    pub fn entries(&self) -> Vec<super::Entry> {
        entries::entries(&self.config, |key| self.origin(key))
    }

    /// Where the value of a key came from; none when nothing set it.
    pub fn origin(&self, key: &[String]) -> Option<String> {
        let (first, rest) = key.split_first()?;
        let mut value = self.figment.find_value(first).ok()?;
        for part in rest {
            value = match value {
                Value::Dict(_, mut dict) => dict.remove(part)?,
                _ => return None,
            };
        }
        self.figment
            .get_metadata(value.tag())
            .map(|metadata| metadata.name.to_string())
    }
}

/// A provider under another name, so that origins read well.
struct Named<P> {
    name: String,
    provider: P,
}

impl<P: Provider> Provider for Named<P> {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, FigmentError> {
        self.provider.data()
    }
}

impl Provider for Setting {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.origin.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, FigmentError> {
        match figment::util::nest(&self.key, Value::from(self.value.clone())) {
            Value::Dict(_, dict) => Ok(Profile::Default.collect(dict)),
            _ => Err(FigmentError::from(format!("'{}' is no key of a section", self.key))),
        }
    }
}

/// The configuration of the merged layers; texts of the environment and the command line are read as numbers and flags
/// where the key wants one.
fn extract(figment: &Figment) -> Result<Config, ConfigError> {
    figment.extract_lossy().map_err(translate)
}

/// The merged layers as plain values.
fn extract_value(figment: &Figment) -> Result<Value, ConfigError> {
    figment.extract::<Value>().map_err(translate)
}

/// Figment's error in our words.
fn translate(error: FigmentError) -> ConfigError {
    let origin = error
        .metadata
        .as_ref()
        .map_or_else(|| "the configuration".to_owned(), |m| m.name.to_string());
    let key = error.path.join(".");
    match error.kind {
        Kind::UnknownField(field, expected) => {
            let prefix: Vec<&str> = error
                .path
                .iter()
                .map(String::as_str)
                .filter(|part| *part != field.as_str())
                .collect();
            let full = |name: &str| {
                let mut parts = prefix.clone();
                parts.push(name);
                parts.join(".")
            };
            ConfigError::UnknownKey {
                near: nearest(&full(&field), expected.iter().map(|name| full(name))),
                known: expected.iter().map(|name| full(name)).collect(),
                key: full(&field),
                origin,
            }
        }
        kind if key.is_empty() => ConfigError::Syntax {
            origin,
            message: kind.to_string(),
        },
        kind => ConfigError::Invalid {
            key,
            origin,
            message: kind.to_string(),
        },
    }
}

/// The most similar of `known`, when it is similar enough to be meant.
pub(super) fn nearest(written: &str, known: impl IntoIterator<Item = String>) -> Option<String> {
    const SIMILAR: f32 = 0.75;
    known
        .into_iter()
        .map(|name| (similar::TextDiff::from_chars(written, &name).ratio(), name))
        .filter(|(ratio, _)| *ratio >= SIMILAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}
