//! Periods in requests for usage.

use api::v1::{Written, read_written};
use axum::http::StatusCode;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use leases::window::Window;

use crate::error::ApiError;
use crate::extract::Options;

/// Maximum number of parts of a period.
const MOST_PARTS: usize = 1000;

/// Calendar unit that a period is split into, in a time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Hour,
    Day,
    Month,
}

impl Step {
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "hour" => Some(Self::Hour),
            "day" => Some(Self::Day),
            "month" => Some(Self::Month),
            _ => None,
        }
    }

    /// Start of the next hour, day or month.
    fn next(self, at: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let today = zone.to_datetime(at).date();
        let next = match self {
            Self::Hour => {
                let begun = (at.as_second() + i64::from(zone.to_offset(at).seconds())).rem_euclid(3600);
                let hour = Timestamp::from_second(at.as_second() - begun).ok()?;
                return hour.checked_add(SignedDuration::from_hours(1)).ok();
            }
            Self::Day => today.tomorrow().ok()?,
            Self::Month => today.first_of_month().checked_add(1.month()).ok()?,
        };
        beginning(next, zone)
    }
}

/// The first instant of a day.
fn beginning(date: Date, zone: &TimeZone) -> Option<Timestamp> {
    Some(date.to_zoned(zone.clone()).ok()?.timestamp())
}

/// Time zone of a report's days and months. UTC by default.
pub(in crate::routes) fn zone(options: &Options) -> Result<TimeZone, ApiError> {
    let zone = options.parsed("time_zone", |name| TimeZone::get(name).ok())?;
    Ok(zone.unwrap_or(TimeZone::UTC))
}

/// The instant in the option `name`. `None` if it isn't set.
pub(in crate::routes) fn instant(
    options: &Options,
    name: &str,
    now: Timestamp,
) -> Result<Option<Timestamp>, ApiError> {
    options.parsed(name, |text| match text {
        "now" => Some(now),
        _ => match read_written(text)? {
            Written::At(instant) => Some(instant),
            Written::Beyond => Some(Timestamp::MAX),
        },
    })
}

/// Error for an end before the start.
pub(in crate::routes) fn backwards() -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "The end must not be before the start")
}

/// Start of a report. A date without a time means the start of that day.
pub(in crate::routes) fn start(
    options: &Options,
    now: Timestamp,
    zone: &TimeZone,
) -> Result<Option<Timestamp>, ApiError> {
    match day(options, "start") {
        Some(first) => Ok(beginning(first, zone)),
        None => instant(options, "start", now),
    }
}

/// End of a report. A date without a time means the end of that day.
pub(in crate::routes) fn end(
    options: &Options,
    now: Timestamp,
    zone: &TimeZone,
) -> Result<Option<Timestamp>, ApiError> {
    match day(options, "end") {
        Some(last) => Ok(last.tomorrow().ok().and_then(|next| beginning(next, zone))),
        None => instant(options, "end", now),
    }
}

/// The option's value if it is a date without a time.
fn day(options: &Options, name: &str) -> Option<Date> {
    options.text(name).filter(|text| !text.contains([':', 'T', ' '])).and_then(|text| text.parse().ok())
}

/// The requested period, cut off at `now`. It starts with the month by default.
pub(in crate::routes) fn asked(options: &Options, now: Timestamp) -> Result<(Window, TimeZone), ApiError> {
    let zone = zone(options)?;
    let start = match start(options, now, &zone)? {
        Some(start) => start,
        None => beginning(zone.to_datetime(now).date().first_of_month(), &zone).unwrap_or(now),
    };
    let last = day(options, "end");
    let end = end(options, now, &zone)?.unwrap_or(now);
    if last.is_some() && end <= start {
        return Err(backwards());
    }
    let whole = Window::new(start, end).map_err(|_| backwards())?;
    Ok((whole.before(now), zone))
}

/// Splits the period. An empty period has no parts.
pub(super) fn parts(period: Window, step: Option<Step>, zone: &TimeZone) -> Result<Vec<Window>, ApiError> {
    let Some(step) = step else { return Ok(if period.is_empty() { Vec::new() } else { vec![period] }) };
    let mut parts = Vec::new();
    let mut rest = period;
    while !rest.is_empty() {
        if parts.len() == MOST_PARTS {
            let message = format!("The period has more than {MOST_PARTS} such parts");
            return Err(ApiError::new(StatusCode::BAD_REQUEST, message));
        }
        let next = step.next(rest.start(), zone).unwrap_or(rest.end());
        parts.push(rest.before(next));
        rest = rest.since(next);
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(start: &str, end: &str) -> Window {
        let at = |text: &str| text.parse().expect("an instant");
        Window::new(at(start), at(end)).expect("forwards")
    }

    #[test]
    fn parts_begin_with_the_hours_days_and_months_of_the_calendar() {
        let period = window("2028-01-30T22:30:00Z", "2028-03-01T00:00:00Z");
        let of = |step| parts(period, Some(step), &TimeZone::UTC).expect("few");
        let (months, days, hours) = (of(Step::Month), of(Step::Day), of(Step::Hour));
        assert_eq!(
            months,
            [
                window("2028-01-30T22:30:00Z", "2028-02-01T00:00:00Z"),
                window("2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z")
            ]
        );
        assert_eq!((days.len(), hours.len()), (31, 722));
        assert_eq!(days[0], window("2028-01-30T22:30:00Z", "2028-01-31T00:00:00Z"));
        for parts in [&months, &days, &hours] {
            assert!(parts.windows(2).all(|pair| pair[0].end() == pair[1].start()));
            assert_eq!((parts[0].start(), parts[parts.len() - 1].end()), (period.start(), period.end()));
        }
        let years = window("2020-01-01T00:00:00Z", "2030-01-01T00:00:00Z");
        assert!(parts(years, Some(Step::Day), &TimeZone::UTC).is_err());
        let nothing = window("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z");
        assert_eq!(parts(nothing, Some(Step::Day), &TimeZone::UTC).expect("few"), []);
        assert_eq!(parts(nothing, None, &TimeZone::UTC).expect("few"), []);
    }
    #[test]
    fn days_and_months_are_those_of_the_zone() {
        let berlin = TimeZone::get("Europe/Berlin").expect("a zone");
        let period = window("2026-10-22T22:00:00Z", "2026-10-31T23:00:00Z");
        let days = parts(period, Some(Step::Day), &berlin).expect("few");
        let hours: Vec<i64> = days.iter().map(|day| day.length().as_hours()).collect();
        assert_eq!(hours, [24, 24, 25, 24, 24, 24, 24, 24, 24], "clocks go back on October 25");
        let months =
            parts(window("2026-09-30T22:00:00Z", "2026-11-30T23:00:00Z"), Some(Step::Month), &berlin);
        let starts: Vec<_> = months.expect("few").iter().map(|month| month.start().to_string()).collect();
        assert_eq!(starts, ["2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z"]);
        let kolkata = TimeZone::get("Asia/Kolkata").expect("a zone");
        let hours = parts(window("2026-10-01T00:00:00Z", "2026-10-01T01:00:00Z"), Some(Step::Hour), &kolkata);
        assert_eq!(hours.expect("few")[1].start().to_string(), "2026-10-01T00:30:00Z");
    }
}
