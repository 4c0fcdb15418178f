//! Logs go to standard error.

use std::io;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use super::error::CliError;
use crate::config::LogConfig;

/// Starts logging as configured.
pub fn start(config: &LogConfig) -> Result<(), CliError> {
    let filter = EnvFilter::try_new(&config.level).map_err(|error| {
        CliError::Usage(format!(
            "log.level '{}': {error}; write a level such as info or warn,clade=debug",
            config.level
        ))
    })?;
    // The Delta library reports the missing log of a new table as an error before the table is made.
    let filter = match "buoyant_kernel=off".parse() {
        Ok(directive) if !config.level.contains("buoyant_kernel") => filter.add_directive(directive),
        _ => filter,
    };
    let builder = fmt().with_env_filter(filter).with_writer(io::stderr);
    // A second start in one process (a test) keeps the first.
    let _ = if config.json {
        builder.json().try_init()
    } else {
        builder.with_ansi(false).without_time().try_init()
    };
    Ok(())
}
