//! The configuration as a list: key, value, origin; secrets redacted.

use figment::value::Value;
use serde_json::Value as Json;

use super::Config;
use super::environment::variable_of;

/// What is shown in place of a secret.
const REDACTED: &str = "<redacted>";

/// One key of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Dotted key.
    pub key: String,
    /// Value as TOML would write it; none when the key is not set.
    pub value: Option<String>,
    /// Where the value came from; none when the key is not set.
    pub origin: Option<String>,
}

impl Entry {
    /// The environment variable that sets the key.
    pub fn variable(&self) -> String {
        variable_of(&self.key)
    }
}

/// Every key of a configuration, also those without a value.
pub(super) fn keys(config: &Config) -> Vec<String> {
    leaves(config).into_iter().map(|(path, _)| path.join(".")).collect()
}

/// Every key with its value and origin.
pub(super) fn entries(config: &Config, origin: impl Fn(&[String]) -> Option<String>) -> Vec<Entry> {
    leaves(config)
        .into_iter()
        .map(|(path, value)| {
            let value = match &value {
                Json::Null => None,
                value => Some(redact(path.last().map_or("", String::as_str), value)),
            };
            let origin = value.is_some().then(|| origin(&path)).flatten();
            Entry {
                key: path.join("."),
                value,
                origin,
            }
        })
        .collect()
}

/// Names of variables that keys ending in `_env` mention.
pub(super) fn variables_named_in(value: &Value) -> Vec<String> {
    fn walk(key: &str, value: &Value, names: &mut Vec<String>) {
        match value {
            Value::Dict(_, dict) => dict.iter().for_each(|(key, value)| walk(key, value, names)),
            value => {
                if key.ends_with("_env")
                    && let Some(name) = value.as_str()
                {
                    names.push(name.to_owned());
                }
            }
        }
    }
    let mut names = Vec::new();
    walk("", value, &mut names);
    names
}

/// Leaves of the configuration in the order of its structs.
fn leaves(config: &Config) -> Vec<(Vec<String>, Json)> {
    fn walk(path: &mut Vec<String>, value: Json, out: &mut Vec<(Vec<String>, Json)>) {
        match value {
            Json::Object(fields) => {
                for (key, value) in fields {
                    path.push(key);
                    walk(path, value, out);
                    path.pop();
                }
            }
            value => out.push((path.clone(), value)),
        }
    }
    let mut out = Vec::new();
    // A struct of plain fields always serialises.
    let value = serde_json::to_value(config).unwrap_or(Json::Null);
    walk(&mut Vec::new(), value, &mut out);
    out
}

/// The value as text, without secrets: keys that hold one, and credentials inside addresses.
fn redact(key: &str, value: &Json) -> String {
    let secret = ["secret", "token", "password", "api_key", "access_key"];
    if !key.ends_with("_env")
        && !key.starts_with("max_")
        && !key.ends_with("_tokens")
        && secret.iter().any(|s| key.contains(s))
    {
        return REDACTED.to_owned();
    }
    match value {
        Json::String(text) => Json::String(redact_address(text)).to_string(),
        other => other.to_string(),
    }
}

/// An address without its user information and query.
fn redact_address(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let (address, query) = match rest.split_once('?') {
        Some((address, _)) => (address, format!("?{REDACTED}")),
        None => (rest, String::new()),
    };
    let (authority, path) = match address.find('/') {
        Some(slash) => address.split_at(slash),
        None => (address, ""),
    };
    let authority = match authority.rsplit_once('@') {
        Some((_, host)) => format!("{REDACTED}@{host}"),
        None => authority.to_owned(),
    };
    format!("{scheme}://{authority}{path}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lose_their_credentials() {
        assert_eq!(
            redact_address("https://u:p@host:1/v1?key=x"),
            "https://<redacted>@host:1/v1?<redacted>"
        );
        assert_eq!(redact_address("http://host/v1"), "http://host/v1");
        assert_eq!(redact_address("native"), "native");
    }
}
