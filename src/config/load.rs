//! The layers: defaults < file < environment < command line, merged by figment.

use std::path::{Path, PathBuf};

use figment::error::Kind;
use figment::providers::{Format, Toml};
use figment::value::{Dict, Map, Value};
use figment::{Error as FigmentError, Figment, Metadata, Profile, Provider};

use super::environment::{self, FILE_VARIABLE};
use super::error::ConfigError;
use super::place::Texts;
use super::profile::{self, Layer};
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
    layers: Layers,
}

/// Merged layers, and the texts that some of them came from.
#[derive(Debug, Clone, Default)]
struct Layers {
    figment: Figment,
    texts: Texts,
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

    /// Reads and merges all layers. A profile lies right below the rest of the layer that names it.
    pub fn load(&self) -> Result<Loaded, ConfigError> {
        let mut layers = Layers::default();
        layers.add_text(DEFAULT_ORIGIN, DEFAULTS);
        let known = entries::keys(&layers.config()?);
        let file = self.read_file()?;
        let file = file.as_ref().map(|(origin, text)| (origin.as_str(), text.as_str()));
        let chosen = profile::chosen(file, &self.environment, &self.overrides);
        for layer in Layer::ALL {
            if let Some(chosen) = chosen.as_ref().filter(|chosen| chosen.layer == layer) {
                let profile = profile::read(chosen, self.beside()?.as_deref())?;
                if let Some(key) = profile::misplaced(&profile.text, &known) {
                    layers.texts.add(&profile.origin, &profile.text);
                    let path: Vec<&str> = key.split('.').collect();
                    return Err(ConfigError::Invalid {
                        origin: layers.texts.place(&profile.origin, &path),
                        message: "a profile sets keys of [search] and [sandbox], and names no other profile".to_owned(),
                        key,
                    });
                }
                layers.add_text(&profile.origin, &profile.text);
            }
            match layer {
                Layer::File => {
                    if let Some((origin, text)) = file {
                        layers.add_text(origin, text);
                    }
                }
                Layer::Environment => {
                    let exempt = entries::variables_named_in(&layers.value()?);
                    for setting in environment::settings(&self.environment, &known, &ModelOptions::KEYS, &exempt)? {
                        layers.add_setting(setting);
                    }
                }
                Layer::CommandLine => {
                    for item in &self.overrides {
                        layers.add_setting(Setting {
                            key: item.key.clone(),
                            value: item.value.clone(),
                            origin: format!("command line ({})", item.flag),
                        });
                    }
                }
            }
        }
        let loaded = Loaded {
            config: layers.config()?,
            layers,
        };
        validate::check(&loaded)?;
        Ok(loaded)
    }

    /// The configuration file with its name, when there is one.
    fn read_file(&self) -> Result<Option<(String, String)>, ConfigError> {
        let Some(path) = self.config_file()? else {
            return Ok(None);
        };
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some((path.display().to_string(), text))),
            Err(source) => Err(ConfigError::Unreadable { path, source }),
        }
    }

    /// The folder of the configuration file; without one, the folder that is looked for it.
    fn beside(&self) -> Result<Option<PathBuf>, ConfigError> {
        let file = self.config_file()?;
        let folder = file.as_deref().and_then(Path::parent).map(Path::to_owned);
        Ok(folder.or_else(|| self.folder.clone()))
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
        let mut value = self.layers.figment.find_value(first).ok()?;
        for part in rest {
            value = match value {
                Value::Dict(_, mut dict) => dict.remove(part)?,
                _ => return None,
            };
        }
        self.layers
            .figment
            .get_metadata(value.tag())
            .map(|metadata| metadata.name.to_string())
    }

    /// The same with the line, where the value came from a text.
    pub(super) fn place(&self, key: &[String]) -> Option<String> {
        self.origin(key).map(|origin| self.layers.texts.place(&origin, key))
    }
}

impl Layers {
    fn add_text(&mut self, origin: &str, text: &str) {
        self.texts.add(origin, text);
        self.merge(Named {
            name: origin.to_owned(),
            provider: Toml::string(text),
        });
    }

    /// Adds a text of the environment or of the command line. Short decimal numbers would be read in single precision, so they are
    /// added as numbers where the key does not want a text.
    fn add_setting(&mut self, setting: Setting) {
        if let Some(decimal) = setting.decimal() {
            let with_number = self.figment.clone().merge(decimal);
            if with_number.extract_lossy::<Config>().is_ok() {
                self.figment = with_number;
                return;
            }
        }
        self.merge(setting);
    }

    fn merge(&mut self, provider: impl Provider) {
        self.figment = std::mem::take(&mut self.figment).merge(provider);
    }

    /// The configuration; texts of the environment and the command line are read as numbers and flags where the key wants one.
    fn config(&self) -> Result<Config, ConfigError> {
        self.figment
            .extract_lossy()
            .map_err(|error| translate(error, &self.texts))
    }

    /// The layers as plain values.
    fn value(&self) -> Result<Value, ConfigError> {
        self.figment
            .extract::<Value>()
            .map_err(|error| translate(error, &self.texts))
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

impl Setting {
    /// The same as a number, where it is one with a fraction or an exponent.
    fn decimal(&self) -> Option<Decimal<'_>> {
        let number = self.value.parse::<f64>().ok().filter(|number| number.is_finite())?;
        self.value
            .contains(['.', 'e', 'E'])
            .then_some(Decimal { setting: self, number })
    }

    /// The sections that the key lies in, with a value at its place; none where the key names no section.
    fn nested(&self, value: Value) -> Option<Dict> {
        match figment::util::nest(&self.key, value) {
            Value::Dict(_, dict) => Some(dict),
            _ => None,
        }
    }
}

impl Provider for Setting {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.origin.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, FigmentError> {
        match self.nested(Value::from(self.value.clone())) {
            Some(dict) => Ok(Profile::Default.collect(dict)),
            None => Err(FigmentError::from(format!("'{}' is no key of a section", self.key))),
        }
    }
}

/// A setting whose text is a decimal number.
struct Decimal<'a> {
    setting: &'a Setting,
    number: f64,
}

impl Provider for Decimal<'_> {
    fn metadata(&self) -> Metadata {
        self.setting.metadata()
    }

    fn data(&self) -> Result<Map<Profile, Dict>, FigmentError> {
        let dict = self.setting.nested(Value::from(self.number)).unwrap_or_default();
        Ok(Profile::Default.collect(dict))
    }
}

/// Figment's error in our words.
fn translate(error: FigmentError, texts: &Texts) -> ConfigError {
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
            let path: Vec<&str> = prefix.iter().copied().chain([field.as_str()]).collect();
            ConfigError::UnknownKey {
                near: nearest(&full(&field), expected.iter().map(|name| full(name))),
                known: expected.iter().map(|name| full(name)).collect(),
                origin: texts.place(&origin, &path),
                key: full(&field),
            }
        }
        kind if key.is_empty() => ConfigError::Syntax {
            origin,
            message: kind.to_string(),
        },
        kind => ConfigError::Invalid {
            key,
            origin: texts.place(&origin, &error.path),
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
