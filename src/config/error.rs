//! Errors of the configuration.

use std::path::PathBuf;

use crate::error::ErrorClass;

/// What is wrong with the configuration, and where it came from.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file that was named does not exist or cannot be read.
    #[error("cannot read the configuration file {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why it cannot be read.
        source: std::io::Error,
    },
    /// A file is no TOML.
    #[error("{origin} is not valid TOML: {message}")]
    Syntax {
        /// Where the text came from.
        origin: String,
        /// The parser's message.
        message: String,
    },
    /// A key that nothing reads.
    #[error("unknown key '{key}' in {origin}{}", suggestion(.near, .known))]
    UnknownKey {
        /// The key as written.
        key: String,
        /// Where it came from.
        origin: String,
        /// The most similar known key.
        near: Option<String>,
        /// Keys that are known in its place.
        known: Vec<String>,
    },
    /// A variable with our prefix that names no key.
    #[error("unknown variable {variable} in the environment{}", suggestion(.near, &[]))]
    UnknownVariable {
        /// The variable.
        variable: String,
        /// The most similar known variable.
        near: Option<String>,
    },
    /// A value of the wrong type or out of range.
    #[error("'{key}' in {origin}: {message}")]
    Invalid {
        /// The key.
        key: String,
        /// Where the value came from.
        origin: String,
        /// What is wrong with it.
        message: String,
    },
    /// A profile that there is not.
    #[error(
        "there is no profile '{name}', which {origin} names: the profiles are {}; own ones are files NAME.toml in {folder}",
        .known.join(", ")
    )]
    UnknownProfile {
        /// Its name.
        name: String,
        /// Who names it.
        origin: String,
        /// The profiles that there are.
        known: Vec<String>,
        /// Folder of own profiles.
        folder: String,
    },
    /// An override on the command line that is no `KEY=VALUE`.
    #[error("'{text}' is no setting: write KEY=VALUE, such as search.steps=16")]
    Override {
        /// The text as written.
        text: String,
    },
}

impl ConfigError {
    /// Class of the fault.
    pub fn class(&self) -> ErrorClass {
        ErrorClass::Config
    }
}

/// "did you mean" with the nearest key, else the list of what is known.
fn suggestion(near: &Option<String>, known: &[String]) -> String {
    match near {
        Some(near) => format!("; did you mean '{near}'?"),
        None if known.is_empty() => String::new(),
        None => format!("; known there: {}", known.join(", ")),
    }
}
