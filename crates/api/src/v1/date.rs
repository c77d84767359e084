//! Dates in four forms: of leases, of records, of requests, and of fields that Blazar doesn't have.

use jiff::civil::{DateTime, Time};
use jiff::fmt::temporal::{DateTimePrinter, Pieces};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::error::RequestError;
use super::limits::Limits;
use super::python;

/// Writes dates with microseconds. Lists have many dates, and `strftime` would parse its format for each of
/// them.
const MICROSECONDS: DateTimePrinter = DateTimePrinter::new().precision(Some(6));

/// Writes times without fractions of seconds.
const SECONDS: DateTimePrinter = DateTimePrinter::new().precision(Some(0));

/// The date of a lease or an event: always with microseconds, without a zone, in UTC (API-lease).
pub fn date(instant: Timestamp) -> String {
    MICROSECONDS.datetime_to_string(&TimeZone::UTC.to_datetime(instant))
}

/// The time at which a record was made, to the second (API-lease, API-clients).
pub fn created_at(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// An instant in a field that Blazar doesn't have: RFC 3339 in UTC, `2030-01-02T10:00:00Z`, with a fraction
/// of a second if the instant has one.
pub fn rfc_3339(instant: Timestamp) -> String {
    instant.to_string()
}

/// Like [`rfc_3339`], but to the second, for records and instances.
pub(crate) fn rfc_3339_seconds(instant: Timestamp) -> String {
    SECONDS.timestamp_to_string(&instant)
}

/// The start of the minute. Dates of requests have no seconds, so `now` has none either.
pub fn minute(instant: Timestamp) -> Timestamp {
    let into = SignedDuration::from_secs(instant.as_second().rem_euclid(60))
        + SignedDuration::from_nanos(i64::from(instant.subsec_nanosecond()));
    instant.checked_sub(into).unwrap_or(instant)
}

/// Dates that a request may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dates {
    /// The present.
    pub now: Timestamp,
    /// The latest allowed date.
    latest: Timestamp,
}

impl Dates {
    /// Those that these limits allow at that time.
    pub fn new(now: Timestamp, limits: &Limits) -> Self {
        Self { now, latest: limits.latest(now) }
    }

    /// Rejects an instant after the latest allowed date.
    pub fn check(&self, parameter: &'static str, instant: Timestamp) -> Result<(), RequestError> {
        if instant <= self.latest { Ok(()) } else { Err(self.too_late(parameter, to_the_minute(instant))) }
    }

    fn too_late(&self, parameter: &'static str, date: String) -> RequestError {
        RequestError::TooLate { parameter, date, latest: to_the_minute(self.latest) }
    }
}

/// The instant in the form of requests and messages, without seconds.
pub(crate) fn to_the_minute(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%d %H:%M").to_string()
}

/// A date as it is written, with its seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// That instant.
    At(Timestamp),
    /// A valid date in the calendar that is later than any instant.
    Beyond,
}

/// Reads a date in one of the forms of answers, or in RFC 3339: `2030-01-02 10:00`,
/// `2030-01-02T10:00:00.000000`, `2030-01-02T10:00:00+02:00`, `2030-01-02`. Without an offset it is UTC;
/// without a time it is midnight. `None` for any other text.
pub fn read_written(text: &str) -> Option<Written> {
    // A sign would be read as part of the year.
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (civil, offset) = if let Ok(civil) = DateTime::strptime("%Y-%m-%d %H:%M", text) {
        (civil, Offset::UTC)
    } else {
        let pieces = Pieces::parse(text).ok().filter(|pieces| pieces.time_zone_annotation().is_none())?;
        let offset = pieces.to_numeric_offset().unwrap_or(Offset::UTC);
        (pieces.date().to_datetime(pieces.time().unwrap_or(Time::midnight())), offset)
    };
    Some(offset.to_timestamp(civil).map_or(Written::Beyond, Written::At))
}

/// Reads the date in that field of a request: `now`, or any form that [`read_written`] accepts. Dates of
/// requests are whole minutes: `now` is the start of the current minute, and seconds are dropped.
pub(crate) fn read_date(
    parameter: &'static str,
    value: &Value,
    dates: Dates,
) -> Result<Timestamp, RequestError> {
    read_instant(parameter, value, dates).map(minute)
}

/// Reads the new value of a date. A value that equals `present` keeps its seconds, so a client that sends
/// back an answer changes nothing.
pub(crate) fn read_date_beside(
    present: Timestamp,
    parameter: &'static str,
    value: &Value,
    dates: Dates,
) -> Result<Timestamp, RequestError> {
    let instant = read_instant(parameter, value, dates)?;
    Ok(if instant == present { instant } else { minute(instant) })
}

fn read_instant(parameter: &'static str, value: &Value, dates: Dates) -> Result<Timestamp, RequestError> {
    let wrong = || RequestError::Date(python::shown(value));
    let text = value.as_str().ok_or_else(wrong)?;
    if text == "now" {
        return Ok(minute(dates.now));
    }
    match read_written(text).ok_or_else(wrong)? {
        Written::At(instant) => dates.check(parameter, instant).map(|()| instant),
        Written::Beyond => Err(dates.too_late(parameter, text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("an instant")
    }

    #[test]
    fn a_date_is_now_or_of_a_form_that_answers_have_or_rfc_3339() {
        let dates = Dates::new(at("2030-01-02T10:11:12.5Z"), &Limits::default());
        let read_date = |value: &Value| read_date("end_date", value, dates);
        assert_eq!(read_date(&json!("now")), Ok(at("2030-01-02T10:11:00Z")));
        for (text, wanted) in [
            ("2030-02-28 23:59", "2030-02-28T23:59:00Z"),
            ("2030-2-8 3:05", "2030-02-08T03:05:00Z"),
            ("2030-02-28", "2030-02-28T00:00:00Z"),
            ("2030-02-28 10:00:00", "2030-02-28T10:00:00Z"),
            ("2030-02-28T10:00:59.999999", "2030-02-28T10:00:00Z"),
            ("2030-02-28T10:00", "2030-02-28T10:00:00Z"),
            ("2030-02-28T10:00Z", "2030-02-28T10:00:00Z"),
            ("2030-02-28t10:00:00z", "2030-02-28T10:00:00Z"),
            ("2030-02-28T10:00:00.25+02:00", "2030-02-28T08:00:00Z"),
            ("2030-02-28 10:00:00-05:30", "2030-02-28T15:30:00Z"),
        ] {
            assert_eq!(read_date(&json!(text)), Ok(at(wanted)), "{text}");
        }
        for instant in [at("2030-02-28T10:11:12.5Z"), at("2030-02-28T10:11:12Z")] {
            for text in [date(instant), created_at(instant), rfc_3339(instant), rfc_3339_seconds(instant)] {
                assert!(read_date(&json!(text)).is_ok(), "{text}");
            }
        }
        for wrong in [
            "bad",
            "Bogus-date 13:13",
            "2030-02-30 10:00",
            "2030-02-28 24:00",
            "2030-02-28T10:00:00[Europe/Rome]",
            "2030-02-28T10:00:00+02:00[Europe/Rome]",
            "2030-02-28T10:00:00 CET",
            "10:00",
            "1893456000",
            "",
            "-2027-01-02 10:00",
            "+2027-01-02 10:00",
            " 2027-01-02 10:00",
        ] {
            let text = format!("{wrong} is an invalid date. Required format: %Y-%m-%d %H:%M");
            assert_eq!(read_date(&json!(wrong)).expect_err("wrong").to_string(), text);
        }
        for wrong in [json!(5), json!(null), json!(["now"])] {
            assert!(matches!(read_date(&wrong), Err(RequestError::Date(_))));
        }
    }

    #[test]
    fn a_date_that_is_too_late_is_refused_with_the_latest_that_will_do() {
        let dates = Dates::new(at("2026-11-25T00:00:00Z"), &Limits::default());
        let read = |text: &str| read_date("end_date", &json!(text), dates);
        assert!(read("2050-12-27 10:00").is_ok() && read("2126-11-26 00:00").is_ok());
        for text in ["9998-12-31 00:00", "9999-12-31 23:58", "9999-12-31T23:59:59-12:00"] {
            let wanted = format!(
                "Malformed parameter end_date: {text} is later than dates can be: 2126-11-26 00:00 at the latest"
            );
            assert_eq!(read(text).expect_err("too late").to_string(), wanted);
        }
        assert!(read("2126-11-26 00:01").is_err());
    }

    #[test]
    fn dates_are_written_as_clients_parse_them() {
        let instant = at("2030-01-02T10:11:12.5Z");
        assert_eq!(date(instant), "2030-01-02T10:11:12.500000");
        assert_eq!(created_at(instant), "2030-01-02 10:11:12");
        assert_eq!(rfc_3339(instant), "2030-01-02T10:11:12.5Z");
        assert_eq!(rfc_3339(minute(instant)), "2030-01-02T10:11:00Z");
        assert_eq!(rfc_3339_seconds(instant), "2030-01-02T10:11:12Z");
    }

    #[test]
    fn minutes_begin_before_their_instants_also_before_1970() {
        assert_eq!(minute(at("1969-12-31T23:59:30.25Z")), at("1969-12-31T23:59:00Z"));
        assert_eq!(minute(at("2030-01-01T00:00:00Z")), at("2030-01-01T00:00:00Z"));
    }
}
