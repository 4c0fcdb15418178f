//! The folder for what is fetched once and can be fetched again.

use std::path::PathBuf;

use super::error::CliError;

/// A place in Clade's cache: `clade/NAME` in `XDG_CACHE_HOME` or `~/.cache`.
///
/// # Errors
/// When neither is known; `flag` says which option names a place instead.
pub fn cache_folder(name: &str, flag: &str) -> Result<PathBuf, CliError> {
    let of = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    of("XDG_CACHE_HOME")
        .or_else(|| of("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("clade").join(name))
        .ok_or_else(|| CliError::Failed(format!("neither HOME nor XDG_CACHE_HOME is set: give {flag}")))
}
