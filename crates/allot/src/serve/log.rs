//! The log, on standard error.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use super::ServeError;
use crate::config::LogFormat;

/// Begins to log. The filter is that of the `tracing` crates: a level, or levels by module.
pub(crate) fn start(level: &str, format: LogFormat) -> Result<(), ServeError> {
    let filter = EnvFilter::builder()
        .parse(level)
        .map_err(|error| ServeError::Log { level: level.to_owned(), reason: error.to_string() })?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
    Ok(())
}
