//! Options that are tables in a file and JSON text in a statement.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value as Json};

/// Reads an object that is written as a table, or as JSON text where only texts can be written.
pub(super) fn json_object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Map<String, Json>>, D::Error> {
    struct Object;

    impl<'de> Visitor<'de> for Object {
        type Value = Option<Map<String, Json>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a table, or a text with a JSON object")
        }

        fn visit_none<E: de::Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
            deserializer.deserialize_any(self)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
            serde_json::from_str(text)
                .map(Some)
                .map_err(|error| E::custom(format!("the text is no JSON object: {error}")))
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            Map::deserialize(de::value::MapAccessDeserializer::new(map)).map(Some)
        }
    }

    deserializer.deserialize_any(Object)
}

/// Reads an object of texts, written the same way.
pub(super) fn headers<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, String>>, D::Error> {
    let Some(object) = json_object(deserializer)? else {
        return Ok(None);
    };
    let headers = object.into_iter().map(|(name, value)| match value {
        Json::String(value) => Ok((name, value)),
        _ => Err(de::Error::custom(format!("the header {name} must be a text"))),
    });
    headers.collect::<Result<_, _>>().map(Some)
}
