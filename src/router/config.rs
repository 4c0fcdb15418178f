//! The file of the router: `configs/router.toml` has what it does not say.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use figment::Figment;
use figment::providers::{Format, Toml};
use serde::{Deserialize, Deserializer, de};

use super::error::RouterError;
use crate::config::ByteSize;
use crate::service::client_address::base_url;

/// Text of the defaults.
const DEFAULTS: &str = include_str!("../../configs/router.toml");
/// Longest name of a server.
const MOST_NAME: usize = 64;
/// Longest time of a setting, in seconds.
const MOST_SECONDS: f64 = 1e7;

/// What the router does.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouterConfig {
    /// Address and port.
    pub address: String,
    /// Certificate chain, PEM.
    pub tls_cert: Option<PathBuf>,
    /// Private key, PEM.
    pub tls_key: Option<PathBuf>,
    /// Time between two questions how a server does.
    #[serde(rename = "poll_seconds", deserialize_with = "seconds")]
    pub poll_time: Duration,
    /// Time for the answer to such a question.
    #[serde(rename = "poll_answer_seconds", deserialize_with = "seconds")]
    pub poll_answer_time: Duration,
    /// Time for a connection.
    #[serde(rename = "connect_seconds", deserialize_with = "seconds")]
    pub connect_time: Duration,
    /// Time for an answer.
    #[serde(rename = "answer_seconds", deserialize_with = "seconds")]
    pub answer_time: Duration,
    /// Time without an answer after which a server counts as gone.
    #[serde(rename = "failover_seconds", deserialize_with = "seconds")]
    pub failover_time: Duration,
    /// Time for the head of a request.
    #[serde(rename = "head_seconds", deserialize_with = "seconds")]
    pub head_time: Duration,
    /// Time for the body of a request.
    #[serde(rename = "body_seconds", deserialize_with = "seconds")]
    pub body_time: Duration,
    /// Time for the body of an upload.
    #[serde(rename = "upload_seconds", deserialize_with = "seconds")]
    pub upload_time: Duration,
    /// Time that answers have after the stop.
    #[serde(rename = "stop_seconds", deserialize_with = "seconds")]
    pub stop_time: Duration,
    /// Largest body of a request that is no upload.
    pub body_bytes: ByteSize,
    /// Largest upload.
    pub upload_bytes: ByteSize,
    /// Folder for uploads on their way.
    pub spool_dir: Option<PathBuf>,
    /// Uploads that are received at the same time.
    pub uploads_at_once: u32,
    /// The same of one user.
    pub uploads_per_user: u32,
    /// Jobs whose servers are remembered.
    pub remembered_jobs: usize,
    /// Idempotency keys whose servers are remembered.
    pub remembered_keys: usize,
    /// The servers.
    #[serde(rename = "server", default)]
    pub servers: Vec<ServerConfig>,
}

/// A server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// It gets no new jobs.
    #[serde(default)]
    pub drain: bool,
}

impl RouterConfig {
    /// Reads a file. Keys are sent in the clear to this machine only, unless `insecure` says otherwise.
    ///
    /// # Errors
    /// When the file cannot be read, or something in it is wrong.
    pub fn load(path: &Path, insecure: bool) -> Result<Self, RouterError> {
        let text = std::fs::read_to_string(path).map_err(|source| RouterError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text, insecure).map_err(|problem| RouterError::Config {
            path: path.to_owned(),
            problem,
        })
    }

    fn parse(text: &str, insecure: bool) -> Result<Self, String> {
        let figment = Figment::from(Toml::string(DEFAULTS)).merge(Toml::string(text));
        let mut config: Self = figment.extract().map_err(|error| {
            let problems: Vec<String> = error.into_iter().map(|error| problem(&error)).collect();
            problems.join("; ")
        })?;
        config.check(insecure)?;
        Ok(config)
    }

    fn check(&mut self, insecure: bool) -> Result<(), String> {
        if self.servers.is_empty() {
            return Err("there is no server: add a [[server]] with name and url".to_owned());
        }
        if self.tls_cert.is_some() != self.tls_key.is_some() {
            return Err("tls_cert and tls_key go together".to_owned());
        }
        for (key, is_none) in [
            ("uploads_at_once", self.uploads_at_once == 0),
            ("uploads_per_user", self.uploads_per_user == 0),
            ("remembered_jobs", self.remembered_jobs == 0),
            ("remembered_keys", self.remembered_keys == 0),
        ] {
            if is_none {
                return Err(format!("{key} must be at least 1"));
            }
        }
        if let Some(folder) = self.spool_dir.as_ref().filter(|folder| !folder.is_dir()) {
            return Err(format!("spool_dir: {} is no folder", folder.display()));
        }
        let mut names = HashSet::new();
        for server in &mut self.servers {
            let name = &server.name;
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            if name.is_empty() || name.len() > MOST_NAME || !name.chars().all(is_plain) {
                return Err(format!(
                    "server '{name}': a name has 1 to {MOST_NAME} letters, digits, '-' and '_'"
                ));
            }
            if !names.insert(name.clone()) {
                return Err(format!("server '{name}': there are two of this name"));
            }
            server.url = base_url(&server.url, insecure, "say --insecure")
                .map_err(|problem| format!("server '{name}', url {}: {problem}", server.url))?;
        }
        Ok(())
    }

    /// What of this takes a restart, where it differs from another.
    pub fn fixed_changes(&self, new: &Self) -> Vec<&'static str> {
        [
            ("address", self.address != new.address),
            ("tls_cert", self.tls_cert != new.tls_cert),
            ("tls_key", self.tls_key != new.tls_key),
            ("head_seconds", self.head_time != new.head_time),
            ("remembered_jobs", self.remembered_jobs != new.remembered_jobs),
            ("remembered_keys", self.remembered_keys != new.remembered_keys),
        ]
        .into_iter()
        .filter_map(|(key, is_changed)| is_changed.then_some(key))
        .collect()
    }
}

/// What is wrong with a key, without the names that figment gives to texts.
fn problem(error: &figment::Error) -> String {
    match error.path.is_empty() {
        true => error.kind.to_string(),
        false => format!("{}: {}", error.path.join("."), error.kind),
    }
}

fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let seconds = f64::deserialize(deserializer)?;
    if !(seconds > 0.0 && seconds <= MOST_SECONDS) {
        return Err(de::Error::custom(format!(
            "a time is more than 0 and at most {MOST_SECONDS} seconds, not {seconds}"
        )));
    }
    Ok(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const ONE: &str = "[[server]]\nname = \"a\"\nurl = \"http://127.0.0.1:8765/\"\n";

    #[test]
    fn what_is_left_out_has_its_default() {
        let config = RouterConfig::parse(ONE, false).unwrap();
        assert_eq!(config.address, "127.0.0.1:8700");
        assert_eq!(config.failover_time, Duration::from_secs(300));
        assert_eq!(config.upload_bytes.bytes(), 1 << 30);
        let server = ServerConfig {
            name: "a".to_owned(),
            url: "http://127.0.0.1:8765".to_owned(),
            drain: false,
        };
        assert_eq!(config.servers, [server]);
    }

    #[test]
    fn an_error_says_what_is_wrong() {
        for (text, part) in [
            ("", "there is no server"),
            ("colour = 1\n", "colour"),
            ("poll_seconds = 0\n", "more than 0"),
            ("poll_seconds = \"often\"\n", "poll_seconds"),
            ("body_bytes = \"much\"\n", "no size"),
            ("remembered_keys = 0\n", "remembered_keys"),
            ("uploads_per_user = 0\n", "uploads_per_user"),
            ("spool_dir = \"/nowhere\"\n", "is no folder"),
            ("tls_cert = \"x\"\n", "go together"),
            (
                "[[server]]\nname = \"a\"\nurl = \"http://[::1]:1\"\n",
                "two of this name",
            ),
            (
                "[[server]]\nname = \"a b\"\nurl = \"http://[::1]:1\"\n",
                "letters, digits",
            ),
            ("[[server]]\nname = \"b\"\nurl = \"http://10.0.0.1\"\n", "in the clear"),
            ("[[server]]\nname = \"b\"\nurl = \"10.0.0.1\"\n", "https:// or http://"),
            (
                "[[server]]\nname = \"b\"\nurl = \"https://u:p@x\"\n",
                "nothing but a path",
            ),
            ("[[server]]\nname = \"b\"\nurl = \"https://x\"\nweight = 1\n", "weight"),
            ("[[server]]\nname = \"b\"\n", "url"),
            ("server = 1", ""),
            ("[[server]\n", ""),
        ] {
            let text = match text.is_empty() {
                true => String::new(),
                false => format!("{text}{ONE}"),
            };
            let problem = RouterConfig::parse(&text, false).unwrap_err();
            assert!(problem.contains(part), "{text}: {problem}");
        }
    }
}
