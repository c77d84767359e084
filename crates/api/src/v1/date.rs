//! Dates, of which there are three forms: of a lease, of a record, and of a request.

use jiff::civil::DateTime;
use jiff::fmt::temporal::DateTimePrinter;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::error::RequestError;
use super::limits::Limits;
use super::python;

/// Writes dates with microseconds. Lists are full of dates, and `strftime` reads its format each time.
const MICROSECONDS: DateTimePrinter = DateTimePrinter::new().precision(Some(6));

/// The instant as leases and events show it: always microseconds, no zone, UTC (spec §1.7).
pub fn date(instant: Timestamp) -> String {
    MICROSECONDS.datetime_to_string(&TimeZone::UTC.to_datetime(instant))
}

/// The instant as records show when they were made: to the second (spec §1.7, §2.7).
pub fn created_at(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// The beginning of the minute: dates of requests have no seconds, so `now` has none either.
pub fn minute(instant: Timestamp) -> Timestamp {
    let into = SignedDuration::from_secs(instant.as_second().rem_euclid(60))
        + SignedDuration::from_nanos(i64::from(instant.subsec_nanosecond()));
    instant.checked_sub(into).unwrap_or(instant)
}

/// Which dates a request may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dates {
    /// The present.
    pub now: Timestamp,
    /// The last.
    latest: Timestamp,
}

impl Dates {
    /// Those that these limits allow at that time.
    pub fn new(now: Timestamp, limits: &Limits) -> Self {
        Self { now, latest: limits.latest(now) }
    }

    /// Refuses an instant that is too far in the future.
    pub fn check(&self, parameter: &'static str, instant: Timestamp) -> Result<(), RequestError> {
        if instant <= self.latest {
            return Ok(());
        }
        let shown = |instant: Timestamp| instant.strftime("%Y-%m-%d %H:%M").to_string();
        Err(RequestError::TooFar { parameter, date: shown(instant), latest: shown(self.latest) })
    }
}

/// The date of a request in the field of that name: `now`, or `YYYY-MM-DD HH:MM` in UTC (spec §1.8). `now` is the current
/// minute.
pub(crate) fn read_date(
    parameter: &'static str,
    value: &Value,
    dates: Dates,
) -> Result<Timestamp, RequestError> {
    let wrong = || RequestError::Date(python::shown(value));
    let text = value.as_str().ok_or_else(wrong)?;
    if text == "now" {
        return Ok(minute(dates.now));
    }
    // A sign would be read as that of the year.
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(wrong());
    }
    let civil = DateTime::strptime("%Y-%m-%d %H:%M", text).map_err(|_| wrong())?;
    let instant = TimeZone::UTC.to_timestamp(civil).map_err(|_| wrong())?;
    dates.check(parameter, instant)?;
    Ok(instant)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("an instant")
    }

    #[test]
    fn a_date_is_now_or_of_one_format() {
        let dates = Dates::new(at("2030-01-02T10:11:12.5Z"), &Limits::default());
        let read_date = |value: &Value| read_date("end_date", value, dates);
        assert_eq!(read_date(&json!("now")), Ok(at("2030-01-02T10:11:00Z")));
        assert_eq!(read_date(&json!("2030-02-28 23:59")), Ok(at("2030-02-28T23:59:00Z")));
        for wrong in [
            "bad",
            "Bogus-date 13:13",
            "2030-02-30 10:00",
            "2030-02-28 10:00:00",
            "2030-02-28",
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
    fn a_date_that_is_too_far_in_the_future_is_refused_with_the_latest_that_will_do() {
        let dates = Dates::new(at("2026-11-25T00:00:00Z"), &Limits::default());
        let read = |text: &str| read_date("end_date", &json!(text), dates);
        assert!(read("2050-12-27 10:00").is_ok() && read("2126-11-26 00:00").is_ok());
        let wanted = "Malformed parameter end_date: 9998-12-31 00:00 is too far in the future, and may be \
                      2126-11-26 00:00 at the latest";
        assert_eq!(read("9998-12-31 00:00").expect_err("too far").to_string(), wanted);
        assert!(read("2126-11-26 00:01").is_err());
    }

    #[test]
    fn dates_are_written_as_clients_parse_them() {
        let instant = at("2030-01-02T10:11:12.5Z");
        assert_eq!(date(instant), "2030-01-02T10:11:12.500000");
        assert_eq!(created_at(instant), "2030-01-02 10:11:12");
    }

    #[test]
    fn minutes_begin_before_their_instants_also_before_1970() {
        assert_eq!(minute(at("1969-12-31T23:59:30.25Z")), at("1969-12-31T23:59:00Z"));
        assert_eq!(minute(at("2030-01-01T00:00:00Z")), at("2030-01-01T00:00:00Z"));
    }
}
