//! Dates of leases: whole minutes, in UTC.

use anyhow::{Context, Result};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// A minute in UTC, given by its first instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Minute(Timestamp);

impl Minute {
    pub fn now() -> Self {
        let now = Timestamp::now();
        Self(now - SignedDuration::from_secs(now.as_second().rem_euclid(60)) - sub_second(now))
    }

    /// Seconds left of the current minute: 1 to 60.
    pub fn seconds_left() -> i64 {
        60 - Timestamp::now().as_second().rem_euclid(60)
    }

    /// The first minute that begins in `seconds` or later. `seconds` must be less than 60.
    pub fn begins_in(seconds: i64) -> Self {
        Self::now().plus(if Self::seconds_left() < seconds { 2 } else { 1 })
    }

    /// Parses a date from an answer: `2030-01-02T10:00:00.000000`, or `2030-01-02T10:00:00Z` in fields that
    /// Blazar doesn't have.
    pub fn read(text: &str) -> Result<Self> {
        let civil = text.strip_suffix('Z').unwrap_or(text);
        let date: DateTime = civil.parse().with_context(|| format!("'{text}' is no date"))?;
        Ok(Self(date.to_zoned(TimeZone::UTC).with_context(|| format!("'{text}' is no date"))?.timestamp()))
    }

    #[must_use]
    pub fn plus(self, minutes: i64) -> Self {
        Self(self.0 + SignedDuration::from_mins(minutes))
    }

    /// Format of requests: `2030-01-02 10:00`.
    pub fn sent(self) -> String {
        self.0.strftime("%Y-%m-%d %H:%M").to_string()
    }

    /// Format of answers, in Blazar's fields: `2030-01-02T10:00:00.000000`.
    pub fn shown(self) -> String {
        self.0.strftime("%Y-%m-%dT%H:%M:00.000000").to_string()
    }

    /// First instant of the minute.
    pub fn instant(self) -> Timestamp {
        self.0
    }
}

fn sub_second(instant: Timestamp) -> SignedDuration {
    SignedDuration::from_nanos(i64::from(instant.subsec_nanosecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_back() {
        let minute = Minute::read("2030-01-02T10:00:00.000000").unwrap();
        assert_eq!(minute.plus(61).sent(), "2030-01-02 11:01");
        assert_eq!(Minute::read("2030-01-02T10:00:00Z").unwrap(), minute);
        assert_eq!(Minute::read(&minute.shown()).unwrap(), minute);
        assert_eq!(Minute::read(&Minute::now().shown()).unwrap(), Minute::now());
    }
}
