//! The generators a session knows, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::ModelError;
use super::generator::Generator;

/// Generators by name.
#[derive(Debug, Clone, Default)]
pub struct ModelRegistry {
    generators: BTreeMap<String, Arc<dyn Generator>>,
}

impl ModelRegistry {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a generator under its name and returns the one it replaces.
    pub fn register(&mut self, generator: Arc<dyn Generator>) -> Option<Arc<dyn Generator>> {
        self.generators.insert(generator.name().to_owned(), generator)
    }

    /// The generator of this name.
    pub fn get(&self, name: &str) -> Result<Arc<dyn Generator>, ModelError> {
        self.generators
            .get(name)
            .cloned()
            .ok_or_else(|| ModelError::UnknownModel {
                name: name.to_owned(),
                known: self.names().collect::<Vec<_>>().join(", "),
            })
    }

    /// Known names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.generators.keys().map(String::as_str)
    }

    /// Known generators, sorted by name.
    pub fn generators(&self) -> impl Iterator<Item = &Arc<dyn Generator>> {
        self.generators.values()
    }
}
