//! Addresses of servers that keys are sent to.

/// Why a server is not talked to at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AddressFault {
    /// It has no host.
    #[error("it has no host")]
    NoHost,
    /// It is of another kind.
    #[error("it must begin with https:// or http://")]
    Scheme,
    /// It is on another machine and not encrypted.
    #[error("the key would be sent in the clear: use https, or say --insecure where something else encrypts")]
    Clear,
}

/// The address of a server without its last slash. Keys are not sent in the clear to other machines, unless that is asked for.
///
/// # Errors
/// When it is none, or keys must not be sent there.
pub(crate) fn server_base(address: &str, insecure: bool) -> Result<&str, AddressFault> {
    let base = address.trim_end_matches('/');
    match base.split_once("://") {
        Some(("https" | "http", "")) => Err(AddressFault::NoHost),
        Some(("https", _)) => Ok(base),
        Some(("http", host)) if insecure || is_loopback(host) => Ok(base),
        Some(("http", _)) => Err(AddressFault::Clear),
        _ => Err(AddressFault::Scheme),
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.split('/').next().unwrap_or_default();
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name == "localhost"
        || name
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_not_sent_in_the_clear_to_other_machines() {
        for address in [
            "https://example.org",
            "http://127.0.0.1:8765/",
            "http://localhost:1",
            "http://[::1]:8765",
        ] {
            assert!(server_base(address, false).is_ok(), "{address}");
        }
        for address in [
            "http://example.org",
            "http://127.example.org",
            "ftp://x",
            "example.org",
            "https://",
            "http://",
        ] {
            assert!(server_base(address, false).is_err(), "{address}");
        }
        assert_eq!(
            server_base("http://example.org:8765/", true),
            Ok("http://example.org:8765")
        );
    }
}
