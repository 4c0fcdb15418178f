//! What models made by statements may reach: who may run statements need not be who may send keys of this process anywhere.

use super::options::{ModelOptions, Provider, WrongOption};

/// Hosts and variables that CREATE MODEL may name, as patterns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelAccess {
    hosts: String,
    key_variables: String,
}

impl ModelAccess {
    /// Patterns, separated by spaces or commas; a `*` stands for any letters.
    pub fn new(hosts: &str, key_variables: &str) -> Self {
        Self {
            hosts: hosts.to_owned(),
            key_variables: key_variables.to_owned(),
        }
    }

    /// Checks the options of a model that a statement made.
    ///
    /// # Errors
    /// The option that names what is not allowed, and where it could be allowed.
    pub fn check(&self, options: &ModelOptions) -> Result<(), WrongOption> {
        if options.provider == Provider::Torch {
            // It sends nothing anywhere.
            return Ok(());
        }
        let host = options.endpoint()?.host().to_owned();
        if !fits_one(&self.hosts, &host) {
            return Err(WrongOption {
                option: "endpoint",
                problem: format!(
                    "names the host {host}, which access.model_hosts of the configuration ({}) does not allow to statements",
                    self.hosts
                ),
            });
        }
        match options.key_variable() {
            Some(variable) if !fits_one(&self.key_variables, variable) => Err(WrongOption {
                option: "api_key_env",
                problem: format!(
                    "names {variable}, which access.key_variables of the configuration ({}) does not allow to statements; add it \
                     there, or set the model up in the configuration",
                    self.key_variables
                ),
            }),
            _ => Ok(()),
        }
    }
}

impl Default for ModelAccess {
    /// No bounds.
    fn default() -> Self {
        Self::new("*", "*")
    }
}

fn fits_one(patterns: &str, name: &str) -> bool {
    patterns
        .split([' ', ','])
        .filter(|pattern| !pattern.is_empty())
        .any(|pattern| fits(&pattern.to_lowercase(), &name.to_lowercase()))
}

/// Whether a name fits a pattern in which `*` stands for any letters.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            let mut ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            ends.any(|at| fits(rest, &name[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn refused(access: &ModelAccess, endpoint: &str, variable: &str) -> Option<String> {
        let options =
            format!(r#"{{"provider": "openai", "model": "m", "endpoint": "{endpoint}", "api_key_env": "{variable}"}}"#);
        let options = ModelOptions::from_json(&options).unwrap();
        access.check(&options).err().map(|error| error.to_string())
    }

    #[test]
    fn hosts_and_variables_are_bounded_by_patterns() {
        let access = ModelAccess::new("localhost, *.example.com", "*_API_KEY OTHER");
        for (endpoint, variable, said) in [
            ("http://localhost:8000/v1", "OPENAI_API_KEY", None),
            ("https://a.b.example.com/v1", "OTHER", None),
            (
                "https://example.com.evil.org/v1",
                "OTHER",
                Some("the host example.com.evil.org"),
            ),
            ("https://example.com/v1", "OTHER", Some("access.model_hosts")),
            (
                "http://localhost/v1",
                "AWS_SECRET_ACCESS_KEY",
                Some("AWS_SECRET_ACCESS_KEY, which access.key_variables"),
            ),
        ] {
            let refused = refused(&access, endpoint, variable);
            assert_eq!(refused.is_some(), said.is_some(), "{endpoint} {variable}: {refused:?}");
            assert!(refused.unwrap_or_default().contains(said.unwrap_or_default()));
        }
        assert_eq!(refused(&ModelAccess::default(), "https://x.example/v1", "ANY"), None);
        assert!(refused(&ModelAccess::new("", "*"), "https://x.example/v1", "ANY").is_some());
    }

    #[test]
    fn a_star_stands_for_any_letters() {
        for (pattern, name, fit) in [
            ("*", "", true),
            ("a*", "a", true),
            ("a*c", "abbc", true),
            ("a*c", "abcb", false),
            ("*a*b*", "xaxbx", true),
            ("*é", "aé", true),
            ("a", "ab", false),
        ] {
            assert_eq!(fits(pattern, name), fit, "{pattern} {name}");
        }
    }
}
