//! Periods of which usage is asked.

use api::v1::{Written, read_written};
use axum::http::StatusCode;
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use leases::window::Window;

use crate::error::ApiError;
use crate::extract::Options;

/// Most parts that a period is asked in.
const MOST_PARTS: usize = 1000;

/// Parts that a period is asked in: by the calendar, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Hours.
    Hour,
    /// Days.
    Day,
    /// Months.
    Month,
}

impl Step {
    /// The step of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "hour" => Some(Self::Hour),
            "day" => Some(Self::Day),
            "month" => Some(Self::Month),
            _ => None,
        }
    }

    /// When the next one begins.
    fn next(self, at: Timestamp) -> Option<Timestamp> {
        let civil = TimeZone::UTC.to_datetime(at);
        let next = match self {
            Self::Hour => {
                let begun = at.as_second().rem_euclid(3600);
                let hour = Timestamp::from_second(at.as_second() - begun).ok()?;
                return hour.checked_add(SignedDuration::from_hours(1)).ok();
            }
            Self::Day => civil.date().tomorrow().ok()?,
            Self::Month => civil.date().first_of_month().checked_add(1.month()).ok()?,
        };
        utc(next.to_datetime(Time::midnight()))
    }
}

fn utc(civil: DateTime) -> Option<Timestamp> {
    TimeZone::UTC.to_timestamp(civil).ok()
}

/// The instant of that name, if there is one.
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

/// The end is before the start.
pub(in crate::routes) fn backwards() -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "The end must not be before the start")
}

/// The period that is asked for, as far as it is past.
pub(in crate::routes) fn asked(options: &Options, now: Timestamp) -> Result<Window, ApiError> {
    let month = TimeZone::UTC.to_datetime(now).date().first_of_month();
    let start = match instant(options, "start", now)? {
        Some(start) => start,
        None => utc(month.to_datetime(Time::midnight())).unwrap_or(now),
    };
    let end = instant(options, "end", now)?.unwrap_or(now);
    let whole = Window::new(start, end).map_err(|_| backwards())?;
    Ok(whole.before(now))
}

/// Its parts; none of a period that is empty.
pub(super) fn parts(period: Window, step: Option<Step>) -> Result<Vec<Window>, ApiError> {
    let Some(step) = step else { return Ok(if period.is_empty() { Vec::new() } else { vec![period] }) };
    let mut parts = Vec::new();
    let mut rest = period;
    while !rest.is_empty() {
        if parts.len() == MOST_PARTS {
            let message = format!("The period has more than {MOST_PARTS} such parts");
            return Err(ApiError::new(StatusCode::BAD_REQUEST, message));
        }
        let next = step.next(rest.start()).unwrap_or(rest.end());
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
        let of = |step| parts(period, Some(step)).expect("few");
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
        assert!(parts(years, Some(Step::Day)).is_err());
        let nothing = window("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z");
        assert_eq!(parts(nothing, Some(Step::Day)).expect("few"), []);
        assert_eq!(parts(nothing, None).expect("few"), []);
    }
}
