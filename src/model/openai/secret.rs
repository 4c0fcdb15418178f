//! The API key: read from its variable when a request is sent, never kept longer, never shown.

use std::fmt;

use crate::model::ModelError;

const REDACTED: &str = "<redacted>";

/// Keys shorter than this are placeholders such as `EMPTY`; they are no secret and may be words of a program.
const SHORTEST_SECRET: usize = 8;

/// An API key.
pub(super) struct ApiKey(String);

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl ApiKey {
    /// Reads the variable of a model.
    pub(super) fn read(model: &str, variable: &str) -> Result<Self, ModelError> {
        match std::env::var(variable) {
            Ok(key) if !key.trim().is_empty() => Ok(Self(key.trim().to_owned())),
            _ => Err(ModelError::Configuration {
                model: model.to_owned(),
                reason: format!(
                    "the variable {variable} that should hold its API key is not set; set it and try again"
                ),
            }),
        }
    }

    /// Value of the header that carries it.
    pub(super) fn bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }

    fn is_secret(&self) -> bool {
        self.0.len() >= SHORTEST_SECRET
    }
}

/// A text of the provider's without the key.
pub(super) fn redact(key: Option<&ApiKey>, text: String) -> String {
    match key {
        Some(key) if key.is_secret() && text.contains(&key.0) => text.replace(&key.0, REDACTED),
        _ => text,
    }
}

/// Whether a field or header of this name usually holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    const PARTS: [&str; 8] = [
        "authorization",
        "api_key",
        "apikey",
        "secret",
        "password",
        "cookie",
        "credential",
        "bearer",
    ];
    let name = name.to_lowercase().replace('-', "_");
    PARTS.iter().any(|part| name.contains(part))
        || ["key", "token"]
            .iter()
            .any(|word| name.split('_').next_back() == Some(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known() {
        for name in [
            "Authorization",
            "X-Api-Key",
            "apiKey",
            "session_token",
            "key",
            "Cookie",
            "client-secret",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "max_tokens",
            "chat_template_kwargs",
            "top_k",
            "HTTP-Referer",
            "logit_bias",
            "stop_token_ids",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn an_echoed_key_is_redacted_and_a_placeholder_is_not() {
        let key = ApiKey("sk-planted-0123".to_owned());
        assert_eq!(
            redact(Some(&key), "bad key sk-planted-0123!".to_owned()),
            "bad key <redacted>!"
        );
        assert_eq!(format!("{key:?}"), "<redacted>");
        let placeholder = ApiKey("EMPTY".to_owned());
        assert_eq!(redact(Some(&placeholder), "if EMPTY:".to_owned()), "if EMPTY:");
    }
}
