//! The address of a server as its clients are given it, and whether a key may be sent there.

use std::net::IpAddr;

use reqwest::Url;

/// The address of a server without a slash at its end. A key is not sent in the clear to another machine, unless that is asked for;
/// `allow` says how that is done.
///
/// # Errors
/// What is wrong with the address.
pub(crate) fn base_url(address: &str, insecure: bool, allow: &str) -> Result<String, String> {
    let scheme = || "it must begin with https:// or http://".to_owned();
    if !address.contains("://") {
        return Err(scheme());
    }
    let url = Url::parse(address).map_err(|error| format!("it is no address: {error}"))?;
    let is_secret = !url.username().is_empty() || url.password().is_some();
    if is_secret || url.query().is_some() || url.fragment().is_some() {
        return Err("it must have a host and nothing but a path beside it: the key goes elsewhere".to_owned());
    }
    match url.scheme() {
        "https" => {}
        "http" if insecure || is_loopback(&url) => {}
        "http" => {
            return Err(format!(
                "the key would be sent in the clear: use https, or {allow} where something else encrypts"
            ));
        }
        _ => return Err(scheme()),
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_not_sent_in_the_clear_to_other_machines() {
        for address in [
            "https://example.org",
            "https://example.org/jobs",
            "http://127.0.0.1:8765/",
            "http://localhost:1",
            "http://[::1]:8765",
        ] {
            assert!(base_url(address, false, "").is_ok(), "{address}");
        }
        for address in [
            "http://example.org",
            "http://127.example.org",
            "http://localhost:x@example.org",
            "http://127.0.0.1@example.org",
            "https://example.org?key=1",
            "ftp://x",
            "example.org",
            "localhost:8765",
            "https://",
            "",
        ] {
            assert!(base_url(address, false, "").is_err(), "{address}");
        }
        assert_eq!(
            base_url("http://example.org:8765/", true, "").as_deref(),
            Ok("http://example.org:8765")
        );
    }
}
