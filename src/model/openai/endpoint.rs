//! Where requests may be sent.

use std::fmt;
use std::net::IpAddr;

use reqwest::Url;

/// Base URL of a service. It holds no secret, so that it may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint(Url);

impl Endpoint {
    /// Reads a base URL. Plain http is for this machine, or for `allow_http`.
    ///
    /// # Errors
    /// What is wrong, in words that follow the name of the option; the address itself is not repeated.
    pub fn parse(text: &str, allow_http: bool) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|error| format!("is no URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err("must be an http or https URL, such as https://api.example.com/v1".to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "must not hold a user name or password; keys are read from the variable of api_key_env".to_owned(),
            );
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err("must not have a query or fragment; keys are read from the variable of api_key_env".to_owned());
        }
        let endpoint = Self(url);
        if endpoint.0.scheme() == "http" && !endpoint.is_loopback() && !allow_http {
            return Err(
                "is plain http to another machine, where anybody on the way can read the key: use https, or allow_http"
                    .to_owned(),
            );
        }
        Ok(endpoint)
    }

    /// Host name or address.
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// Whether it is on this machine.
    pub fn is_loopback(&self) -> bool {
        let host = self.host();
        let address = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost"
            || host.ends_with(".localhost")
            || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// Whether it needs certificates.
    pub fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Address of a path below it.
    pub fn join(&self, path: &str) -> String {
        format!("{}/{path}", self.0.as_str().trim_end_matches('/'))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn plain_http_is_for_this_machine_or_on_request() {
        for text in [
            "http://localhost:8000/v1",
            "http://127.0.0.1:1/v1/",
            "http://[::1]:1",
            "https://x.example/v1",
        ] {
            assert!(Endpoint::parse(text, false).is_ok(), "{text}");
        }
        assert!(
            Endpoint::parse("http://10.0.0.7/v1", false)
                .unwrap_err()
                .contains("allow_http")
        );
        assert!(Endpoint::parse("http://10.0.0.7/v1", true).is_ok());
    }

    #[test]
    fn addresses_with_secrets_are_refused_without_repeating_them() {
        for text in ["https://me:hunter2@x.example/v1", "https://x.example/v1?key=hunter2"] {
            let error = Endpoint::parse(text, false).unwrap_err();
            assert!(error.contains("api_key_env") && !error.contains("hunter2"), "{error}");
        }
        assert!(Endpoint::parse("file:///etc/passwd", false).is_err());
    }

    #[test]
    fn paths_are_joined_with_one_slash() {
        let endpoint = Endpoint::parse("http://localhost:1/v1/", false).unwrap();
        assert_eq!(
            endpoint.join("chat/completions"),
            "http://localhost:1/v1/chat/completions"
        );
    }
}
