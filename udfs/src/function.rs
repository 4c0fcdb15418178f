//! The list of all functions and their registration.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::{Documentation, ScalarUDF, Signature, WindowUDF};

use crate::{direction, grading, programs, text, utility};

/// A function as DataFusion registers it.
#[derive(Debug, Clone)]
pub enum Function {
    /// One value from one row.
    Scalar(Arc<ScalarUDF>),
    /// One value a row from its whole partition.
    Window(Arc<WindowUDF>),
}

impl Function {
    /// Name in SQL.
    pub fn name(&self) -> &str {
        match self {
            Self::Scalar(function) => function.name(),
            Self::Window(function) => function.name(),
        }
    }

    /// Kind in words: `scalar` or `window`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Scalar(_) => "scalar",
            Self::Window(_) => "window",
        }
    }

    /// What the function does, for the generated reference.
    pub fn documentation(&self) -> Option<&Documentation> {
        match self {
            Self::Scalar(function) => function.documentation(),
            Self::Window(function) => function.documentation(),
        }
    }

    /// Types of the arguments.
    pub fn signature(&self) -> &Signature {
        match self {
            Self::Scalar(function) => function.signature(),
            Self::Window(function) => function.signature(),
        }
    }
}

/// All functions, family by family.
pub fn all_functions() -> Vec<Function> {
    [
        direction::udf::functions(),
        utility::udf::functions(),
        programs::udf::functions(),
        text::udf::functions(),
        grading::udf::functions(),
    ]
    .concat()
}

/// Registers all functions.
///
/// # Errors
///
/// When the registry does not take functions.
pub fn register_all(registry: &mut dyn FunctionRegistry) -> Result<()> {
    for function in all_functions() {
        match function {
            Function::Scalar(function) => {
                registry.register_udf(function)?;
            }
            Function::Window(function) => {
                registry.register_udwf(function)?;
            }
        }
    }
    Ok(())
}
