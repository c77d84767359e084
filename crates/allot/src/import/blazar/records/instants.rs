//! Timestamps in Blazar's format.

use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use leases::text::Quoted;

/// Parses a timestamp of Blazar's, which is always in UTC.
pub(super) fn instant(text: &str) -> Result<Timestamp, String> {
    let civil = DateTime::from_str(text).map_err(|_| format!("invalid date {}", Quoted(text)))?;
    let zoned = civil.to_zoned(TimeZone::UTC).map_err(|_| format!("invalid date {}", Quoted(text)))?;
    Ok(zoned.timestamp())
}

/// Parses an optional timestamp, with a default if it's missing.
pub(super) fn instant_or(text: Option<&String>, otherwise: Timestamp) -> Result<Timestamp, String> {
    text.map_or(Ok(otherwise), |text| instant(text))
}
