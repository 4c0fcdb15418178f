//! The generators a session knows, by name: built in, set up in the configuration, or made by a statement and kept in the
//! store, where another process may make, change or drop them at any time.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Debug};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::access::ModelAccess;
use super::error::ModelError;
use super::generator::Generator;
use super::openai::OpenAi;
use super::options::{ModelOptions, Provider};
use super::torch::Torch;

/// Where a model comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Part of the engine, or of the program that embeds it.
    BuiltIn,
    /// A section of the configuration.
    Configuration,
    /// CREATE MODEL.
    Store,
}

impl Origin {
    /// Name as `system.models` shows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::Configuration => "configuration",
            Self::Store => "store",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A model as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredModel {
    /// Name.
    pub name: String,
    /// Options as JSON.
    pub options: String,
    /// When it was made, microseconds UTC.
    pub created_at: i64,
}

/// Where models made by statements are looked up.
#[async_trait]
pub trait StoredModels: Send + Sync + Debug {
    /// The model of a name.
    async fn find(&self, name: &str) -> Result<Option<StoredModel>, Box<dyn std::error::Error + Send + Sync>>;

    /// All models, sorted by name.
    async fn all(&self) -> Result<Vec<StoredModel>, Box<dyn std::error::Error + Send + Sync>>;
}

/// A model with what is known of it.
#[derive(Debug)]
pub struct ModelEntry {
    /// Name.
    pub name: String,
    /// Where it comes from.
    pub origin: Origin,
    /// Its options, for one that has any.
    pub options: Option<ModelOptions>,
    /// When it was made, microseconds UTC, for one of the store.
    pub created_at: Option<i64>,
    /// The generator, or why there is none.
    pub generator: Result<Arc<dyn Generator>, ModelError>,
}

#[derive(Debug, Clone)]
struct Fixed {
    origin: Origin,
    options: Option<ModelOptions>,
    generator: Arc<dyn Generator>,
}

#[derive(Debug)]
struct Made {
    /// Options as the store had them.
    definition: String,
    generator: Arc<dyn Generator>,
}

/// Generators by name.
#[derive(Debug, Clone, Default)]
pub struct ModelRegistry {
    fixed: BTreeMap<String, Fixed>,
    stored: Option<Arc<dyn StoredModels>>,
    access: ModelAccess,
    /// Generators of the store's models with the options they were made of: their circuit breakers and connections live on
    /// for as long as the options stay the same.
    made: Arc<Mutex<HashMap<String, Made>>>,
}

impl ModelRegistry {
    /// A registry of models that do not change, and of those of a store as far as they are allowed.
    pub fn new(stored: Option<Arc<dyn StoredModels>>, access: ModelAccess) -> Self {
        Self {
            stored,
            access,
            ..Self::default()
        }
    }

    /// Adds a generator under its name; it takes the place of another of that name.
    pub fn register(&mut self, generator: Arc<dyn Generator>) {
        let fixed = Fixed {
            origin: Origin::BuiltIn,
            options: None,
            generator,
        };
        self.fixed.insert(fixed.generator.name().to_owned(), fixed);
    }

    /// Adds a model of the configuration.
    ///
    /// # Errors
    /// When its name is taken or its options are wrong.
    pub fn configure(&mut self, name: &str, options: &ModelOptions) -> Result<(), ModelError> {
        if self.fixed.contains_key(name) {
            return Err(ModelError::Configuration {
                model: name.to_owned(),
                reason: "a built-in model has this name; give the section of the configuration another one".to_owned(),
            });
        }
        let fixed = Fixed {
            origin: Origin::Configuration,
            options: Some(options.clone()),
            generator: generator(name, options)?,
        };
        self.fixed.insert(name.to_owned(), fixed);
        Ok(())
    }

    /// What models of the store may reach.
    pub fn access(&self) -> &ModelAccess {
        &self.access
    }

    /// Where a name is taken already, other than by a model of the store.
    pub fn fixed_origin(&self, name: &str) -> Option<Origin> {
        self.fixed.get(name).map(|fixed| fixed.origin)
    }

    /// The generator of this name.
    ///
    /// # Errors
    /// When there is none (the message lists the known ones), or the store's definition cannot be used.
    pub async fn get(&self, name: &str) -> Result<Arc<dyn Generator>, ModelError> {
        if let Some(fixed) = self.fixed.get(name) {
            return Ok(Arc::clone(&fixed.generator));
        }
        let stored = match &self.stored {
            Some(stored) => stored.find(name).await.map_err(unreadable)?,
            None => None,
        };
        match stored {
            Some(stored) => self.made(&stored).map(|(_, generator)| generator),
            None => Err(ModelError::UnknownModel {
                name: name.to_owned(),
                known: self.names().await?.join(", "),
            }),
        }
    }

    /// All models, sorted by name.
    ///
    /// # Errors
    /// When the store cannot be read. A model whose definition cannot be used is an entry with an error.
    pub async fn entries(&self) -> Result<Vec<ModelEntry>, ModelError> {
        let fixed = self.fixed.iter().map(|(name, fixed)| ModelEntry {
            name: name.clone(),
            origin: fixed.origin,
            options: fixed.options.clone(),
            created_at: None,
            generator: Ok(Arc::clone(&fixed.generator)),
        });
        let mut entries: Vec<ModelEntry> = fixed.collect();
        if let Some(stored) = &self.stored {
            for model in stored.all().await.map_err(unreadable)? {
                if self.fixed.contains_key(&model.name) {
                    continue;
                }
                let (options, generator) = match self.made(&model) {
                    Ok((options, generator)) => (Some(options), Ok(generator)),
                    Err(error) => (None, Err(error)),
                };
                entries.push(ModelEntry {
                    name: model.name,
                    origin: Origin::Store,
                    options,
                    created_at: Some(model.created_at),
                    generator,
                });
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    async fn names(&self) -> Result<Vec<String>, ModelError> {
        let mut names: Vec<String> = self.fixed.keys().cloned().collect();
        if let Some(stored) = &self.stored {
            names.extend(
                stored
                    .all()
                    .await
                    .map_err(unreadable)?
                    .into_iter()
                    .map(|model| model.name),
            );
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn made(&self, stored: &StoredModel) -> Result<(ModelOptions, Arc<dyn Generator>), ModelError> {
        let unusable = |reason: String| ModelError::Definition {
            model: stored.name.clone(),
            reason,
        };
        let options = ModelOptions::from_json(&stored.options).map_err(|error| unusable(error.to_string()))?;
        self.access
            .check(&options)
            .map_err(|error| unusable(error.to_string()))?;
        let mut made = self.made.lock();
        if let Some(known) = made.get(&stored.name)
            && known.definition == stored.options
        {
            return Ok((options, Arc::clone(&known.generator)));
        }
        let generator = generator(&stored.name, &options)?;
        let known = Made {
            definition: stored.options.clone(),
            generator: Arc::clone(&generator),
        };
        made.insert(stored.name.clone(), known);
        Ok((options, generator))
    }
}

/// The generator of a model with these options.
fn generator(name: &str, options: &ModelOptions) -> Result<Arc<dyn Generator>, ModelError> {
    match options.provider {
        Provider::Openai => Ok(Arc::new(OpenAi::new(name, options)?)),
        Provider::Torch => Ok(Arc::new(Torch::new(name, options)?)),
    }
}

fn unreadable(source: Box<dyn std::error::Error + Send + Sync>) -> ModelError {
    ModelError::Definitions { source }
}
