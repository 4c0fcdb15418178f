//! JSON whose objects keep the order of their keys, which templates show.

use std::fmt;
use std::sync::Arc;

use minijinja::Value;
use minijinja::value::{Enumerator, Object, ObjectRepr};
use serde::Deserialize;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};

use crate::error::{LmError, Result};

/// A JSON value for a template: a message, a tool, a variable.
#[derive(Debug, Clone)]
pub struct Json(pub(super) Value);

impl Json {
    /// Reads a JSON text.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|error| LmError::Request(format!("this is no JSON: {error}")))
    }

    /// A message of a role.
    #[must_use]
    pub fn message(role: &str, content: &str) -> Self {
        let pairs = [("role", role), ("content", content)];
        Self(Ordered::value(
            pairs
                .into_iter()
                .map(|(key, text)| (key.to_owned(), Value::from(text)))
                .collect(),
        ))
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self(Value::from(value))
    }
}

impl From<&str> for Json {
    fn from(value: &str) -> Self {
        Self(Value::from(value))
    }
}

/// An object.
#[derive(Debug)]
pub(super) struct Ordered(Vec<(String, Value)>);

impl Ordered {
    /// An object of pairs. Of a key that is there twice the last value counts, at the first place.
    pub(super) fn value(pairs: Vec<(String, Value)>) -> Value {
        let mut kept: Vec<(String, Value)> = Vec::with_capacity(pairs.len());
        for (key, value) in pairs {
            match kept.iter_mut().find(|(other, _)| *other == key) {
                Some((_, before)) => *before = value,
                None => kept.push((key, value)),
            }
        }
        Value::from_object(Self(kept))
    }
}

impl Object for Ordered {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let key = key.as_str()?;
        self.0
            .iter()
            .find(|(other, _)| other == key)
            .map(|(_, value)| value.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.iter().map(|(key, _)| Value::from(key.as_str())).collect())
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor).map(Self)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> std::result::Result<Value, E> {
        Ok(Value::from(()))
    }

    fn visit_bool<E: Error>(self, value: bool) -> std::result::Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> std::result::Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> std::result::Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> std::result::Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> std::result::Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> std::result::Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Json(value)) = sequence.next_element()? {
            values.push(value);
        }
        Ok(Value::from(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some((key, Json(value))) = map.next_entry::<String, Json>()? {
            pairs.push((key, value));
        }
        Ok(Ordered::value(pairs))
    }
}
