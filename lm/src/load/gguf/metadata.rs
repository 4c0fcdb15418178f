//! Values of a GGUF file's metadata, and reading them by key.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::{LmError, Result};
use crate::load::files::format_error;

/// A value of metadata.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// An integer of any width; all that are in use fit.
    Integer(i128),
    /// A float of either width.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A text.
    Text(String),
    /// A list of values of one type.
    List(Vec<Value>),
}

impl Value {
    fn type_name(&self) -> &'static str {
        match self {
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Bool(_) => "a truth value",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
        }
    }
}

/// A type that metadata is read as.
pub(crate) trait FromValue: Sized {
    /// The type as errors name it.
    const NAME: &'static str;

    /// The value, where it is of this type and in its range.
    fn from_value(value: &Value) -> Option<Self>;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl FromValue for $type {
            const NAME: &'static str = "an integer that is not negative";

            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Integer(integer) => Self::try_from(*integer).ok(),
                    _ => None,
                }
            }
        }
    )*};
}
integers!(u32, u64, usize);

impl FromValue for i32 {
    const NAME: &'static str = "an integer";

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Integer(integer) => Self::try_from(*integer).ok(),
            _ => None,
        }
    }
}

impl FromValue for f64 {
    const NAME: &'static str = "a float";

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Float(float) => Some(*float),
            _ => None,
        }
    }
}

impl FromValue for bool {
    const NAME: &'static str = "a truth value";

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(truth) => Some(*truth),
            _ => None,
        }
    }
}

impl FromValue for String {
    const NAME: &'static str = "a string";

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }
}

impl<T: FromValue> FromValue for Vec<T> {
    const NAME: &'static str = "a list of the right values";

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::List(values) => values.iter().map(T::from_value).collect(),
            _ => None,
        }
    }
}

/// The metadata of a file.
#[derive(Debug)]
pub(crate) struct Metadata {
    path: PathBuf,
    values: BTreeMap<String, Value>,
}

impl Metadata {
    /// Metadata of the file at `path`.
    pub(super) fn new(path: &Path, values: BTreeMap<String, Value>) -> Self {
        Self {
            path: path.to_owned(),
            values,
        }
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a key is there.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// The value of a key that need not be there.
    pub(crate) fn optional<T: FromValue>(&self, key: &str) -> Result<Option<T>> {
        let Some(value) = self.values.get(key) else {
            return Ok(None);
        };
        T::from_value(value).map(Some).ok_or_else(|| {
            self.fault(format!(
                "the key '{key}' is {}, {} is expected",
                value.type_name(),
                T::NAME
            ))
        })
    }

    /// The value of a key.
    pub(crate) fn required<T: FromValue>(&self, key: &str) -> Result<T> {
        self.optional(key)?
            .ok_or_else(|| self.fault(format!("the key '{key}' is missing")))
    }

    /// A fault of the metadata.
    pub(crate) fn fault(&self, problem: impl Into<String>) -> LmError {
        format_error(&self.path, problem)
    }
}
