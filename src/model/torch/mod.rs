//! Weights that run in this process, on libtorch. Only a build with the feature `torch` has it; any other says how to get one.

use std::sync::Arc;

use super::error::ModelError;
use super::generator::Generator;
use super::options::ModelOptions;

/// The generator of a model with provider `torch`. Nothing is loaded yet.
///
/// # Errors
/// When this build is without libtorch.
pub(super) fn generator(name: &str, options: &ModelOptions) -> Result<Arc<dyn Generator>, ModelError> {
    let _ = options;
    Err(ModelError::Configuration {
        model: name.to_owned(),
        reason: "this build of Clade is without libtorch; `make torch` builds one with it".to_owned(),
    })
}
