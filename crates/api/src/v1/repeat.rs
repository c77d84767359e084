//! Recurring leases, in requests and answers (CLS-10). Not in Blazar.
//!
//! Starts and ends follow the calendar of a time zone: a course on Mondays from nine to five has these hours
//! in winter and in summer. If the request has a duration instead of an end, its days and weeks follow the
//! calendar, and its hours are as long as the first lease's. A lease that would overlap the next one ends
//! where that one starts, unless the first lease overlaps the second one already.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, SpanFieldwise, Timestamp, Unit};
use leases::window::Window;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::date::{Dates, read_date};
use super::error::RequestError;
use super::fields::{Fields, boolean, count, text};
use super::lease::Lease;

/// The recurrence of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeat {
    every: SpanFieldwise,
    times: Option<u32>,
    until: Option<Timestamp>,
    /// The duration in the request. `None` if it has an end.
    duration: Option<SpanFieldwise>,
    zone: TimeZone,
    /// Maximum number of leases.
    most: u32,
    dates: Dates,
    /// Whether dates without enough capacity are skipped.
    pub skips: bool,
}

impl Repeat {
    pub(super) fn read(
        value: &Value,
        duration: Option<&Value>,
        dates: Dates,
        most: u32,
    ) -> Result<Self, RequestError> {
        let mut fields = Fields::nested("repeat", value)?;
        let wrong = || RequestError::malformed("repeat.every", "a time such as 1w, 1d or 1mo");
        let every = fields.required("every")?;
        let every: Span = every.as_str().and_then(|text| text.parse().ok()).ok_or_else(wrong)?;
        if every.signum() <= 0 || has_seconds(&every) {
            return Err(wrong());
        }
        let times = fields.given("times").map(|value| count("repeat.times", value, 1)).transpose()?;
        let until = fields.given("until").map(|value| read_date("repeat.until", value, dates)).transpose()?;
        if times.is_some() == until.is_some() {
            return Err(RequestError::malformed("repeat", "with either times or until"));
        }
        if let Some(times) = times.filter(|times| *times > most) {
            let (parameter, value) = ("repeat.times".to_owned(), times.to_string());
            return Err(RequestError::TooLarge {
                parameter,
                value,
                most: most.into(),
                setting: "limits.series",
            });
        }
        let zone = match fields.given("time_zone") {
            Some(name) => {
                let name = text("repeat.time_zone", name)?;
                let unknown = || RequestError::malformed("repeat.time_zone", "a name such as Europe/Paris");
                TimeZone::get(&name).map_err(|_| unknown())?
            }
            None => TimeZone::UTC,
        };
        let duration = duration.and_then(Value::as_str).and_then(|text| text.parse::<Span>().ok());
        let duration = duration.map(Span::fieldwise);
        let skips = fields.given("skip_unavailable");
        let skips = skips.map(|value| boolean("repeat.skip_unavailable", value)).transpose()?;
        fields.finish()?;
        let (every, skips) = (every.fieldwise(), skips.unwrap_or(false));
        Ok(Self { every, times, until, duration, zone, most, dates, skips })
    }

    /// Windows of all leases. The first one is `first`. A start that the clocks skip becomes later by the
    /// amount of the change.
    pub fn windows(&self, first: Window) -> Result<Vec<Window>, RequestError> {
        let wrong = || RequestError::malformed("repeat", "of dates that the calendar has");
        let local = |instant: Timestamp| instant.to_zoned(self.zone.clone());
        let dates = Occurrences {
            start: local(first.start()).datetime(),
            end: match &self.duration {
                Some(duration) => {
                    local(first.start()).datetime().checked_add(duration.0).map_err(|_| wrong())?
                }
                None => local(first.end()).datetime(),
            },
            every: self.every.0,
        };
        if self.until.is_some_and(|until| until <= first.start()) {
            return Err(RequestError::malformed("repeat.until", "later than the start of the lease"));
        }
        // An end that the clocks skip is later in local time, but not as an instant.
        let second = self.start(first.start(), 1).ok_or_else(wrong)?;
        let overlap = dates.end > dates.start(1).ok_or_else(wrong)?
            && (self.duration.is_some() || first.end() > second);
        let mut windows = Vec::new();
        for number in 0..=self.most {
            if self.times == Some(number) {
                return Ok(windows);
            }
            let start = self.start(first.start(), number).ok_or_else(wrong)?;
            if self.until.is_some_and(|until| start >= until) {
                return Ok(windows);
            }
            let end = match &self.duration {
                Some(duration) => local(start).checked_add(duration.0).ok().map(|zoned| zoned.timestamp()),
                None if number == 0 => Some(first.end()),
                None => dates
                    .end(number)
                    .and_then(|end| end.to_zoned(self.zone.clone()).ok())
                    .map(|end| end.timestamp()),
            };
            let mut end = end.ok_or_else(wrong)?;
            if end <= start {
                // The clocks skip both the start and the end, or are set back between them to before the
                // start.
                end = start.checked_add(first.length()).map_err(|_| wrong())?;
            }
            if !overlap && let Some(next) = self.start(first.start(), number + 1) {
                end = end.min(next);
            }
            self.dates.check("repeat", end)?;
            windows.push(Window::new(start, end).map_err(|_| wrong())?);
        }
        // A series with a number of times has returned before.
        let (parameter, value) = ("repeat".to_owned(), format!("more than {} leases", self.most));
        Err(RequestError::TooLarge { parameter, value, most: self.most.into(), setting: "limits.series" })
    }

    /// Start of a lease in the series. It is computed from the first one, so that the 31st of a month doesn't
    /// become the 28th for good.
    fn start(&self, first: Timestamp, number: u32) -> Option<Timestamp> {
        let later = self.every.0.checked_mul(i64::from(number)).ok()?;
        Some(first.to_zoned(self.zone.clone()).checked_add(later).ok()?.timestamp())
    }
}

/// Leases of a series in local time.
struct Occurrences {
    start: DateTime,
    end: DateTime,
    every: Span,
}

impl Occurrences {
    fn start(&self, number: u32) -> Option<DateTime> {
        self.later(self.start, number)
    }

    /// If the month lacks the day of the start or the end, the end is as long after the start as the first
    /// end, unless the next lease starts before that.
    fn end(&self, number: u32) -> Option<DateTime> {
        let (start, end) = (self.start(number)?, self.later(self.end, number)?);
        if !self.misses_day(self.start, number) && !self.misses_day(self.end, number) {
            return Some(end);
        }
        let as_long = start.checked_add(self.start.until((Unit::Day, self.end)).ok()?).ok()?;
        let fits = as_long <= self.start(number + 1)?;
        Some(if fits || end <= start { as_long } else { end })
    }

    fn later(&self, first: DateTime, number: u32) -> Option<DateTime> {
        first.checked_add(self.every.checked_mul(i64::from(number)).ok()?).ok()
    }

    /// Whether the month lacks that day, so that its last day is used.
    fn misses_day(&self, first: DateTime, number: u32) -> bool {
        let months = i64::from(self.every.get_years()) * 12 + i64::from(self.every.get_months());
        let months =
            months.checked_mul(i64::from(number)).and_then(|months| Span::new().try_months(months).ok());
        months.and_then(|months| first.checked_add(months).ok()).is_some_and(|date| date.day() != first.day())
    }
}

/// Whether it isn't a number of whole minutes, which dates require.
fn has_seconds(span: &Span) -> bool {
    let parts = [
        i128::from(span.get_seconds()) * 1_000_000_000,
        i128::from(span.get_milliseconds()) * 1_000_000,
        i128::from(span.get_microseconds()) * 1000,
        i128::from(span.get_nanoseconds()),
    ];
    parts.into_iter().sum::<i128>() % 60_000_000_000 != 0
}

/// A series of recurring leases.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Series {
    /// Identifier of the series.
    pub id: String,
    /// Leases of the series, by start.
    pub leases: Vec<Lease>,
    /// Skipped dates, for which the lease wasn't available.
    pub skipped: Vec<Skipped>,
}

/// A skipped date.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Skipped {
    /// Start of the skipped lease: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub start_date: String,
    /// End of the skipped lease: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub end_date: String,
    /// Reason the date was skipped.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::limits::Limits;
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("an instant")
    }

    fn starts(repeat: &Value, start: &str, end: &str) -> Result<Vec<String>, RequestError> {
        let window = Window::new(at(start), at(end)).expect("forwards");
        let windows = {
            let limits = Limits::default();
            let dates = Dates::new(at("2030-01-01T00:00:00Z"), &limits);
            Repeat::read(repeat, None, dates, limits.series)?.windows(window)?
        };
        Ok(windows.iter().map(|window| window.start().to_string()).collect())
    }

    #[test]
    fn cls_10_h_a_lease_recurs_at_the_same_time_of_the_day_in_its_zone() {
        let weekly = json!({"every": "1w", "times": 3, "time_zone": "Europe/Paris"});
        let found = starts(&weekly, "2030-03-18T08:00:00Z", "2030-03-18T12:00:00Z").expect("well formed");
        let expected = ["2030-03-18T08:00:00Z", "2030-03-25T08:00:00Z", "2030-04-01T07:00:00Z"];
        assert_eq!(found, expected, "it is summer from March 31 on");
        let monthly = json!({"every": "1mo", "times": 3});
        let found = starts(&monthly, "2030-01-31T08:00:00Z", "2030-01-31T12:00:00Z").expect("well formed");
        assert_eq!(found, ["2030-01-31T08:00:00Z", "2030-02-28T08:00:00Z", "2030-03-31T08:00:00Z"]);
    }

    /// Windows of a recurring lease, in local time.
    fn local(every: &str, times: u32, start: &str, length: Length<'_>) -> Vec<String> {
        in_zone("Europe/Berlin", every, times, start, length)
    }

    fn in_zone(zone: &str, every: &str, times: u32, start: &str, length: Length<'_>) -> Vec<String> {
        let limits = Limits::default();
        let dates = Dates::new(at("2026-01-01T00:00:00Z"), &limits);
        let repeat = json!({"every": every, "times": times, "time_zone": zone});
        let wall = |text: &str| {
            let civil: DateTime = text.parse().expect("a date");
            civil.in_tz(zone).expect("a zone").timestamp()
        };
        let (end, duration) = match length {
            Length::Until(end) => (wall(end), None),
            Length::For(duration) => {
                (wall(start) + jiff::SignedDuration::from_hours(1), Some(json!(duration)))
            }
        };
        let repeat = Repeat::read(&repeat, duration.as_ref(), dates, limits.series).expect("well formed");
        let windows = repeat.windows(Window::new(wall(start), end).expect("forwards")).expect("dates");
        let shown = |at: Timestamp| at.in_tz(zone).expect("a zone").strftime("%m-%d %H:%M").to_string();
        windows.iter().map(|window| format!("{} {}", shown(window.start()), shown(window.end()))).collect()
    }

    #[derive(Clone, Copy)]
    enum Length<'a> {
        Until(&'a str),
        For(&'a str),
    }

    #[test]
    fn cls_10_h_an_end_stays_a_date_of_the_calendar() {
        // Clocks go from 2:00 to 3:00 on March 28, 2027.
        let weekly = ["03-20 10:00 03-27 10:00", "03-27 10:00 04-03 10:00", "04-03 10:00 04-10 10:00"];
        assert_eq!(local("1w", 3, "2027-03-20T10:00", Length::Until("2027-03-27T10:00")), weekly);
        let months = ["02-01 00:00 03-01 00:00", "03-01 00:00 04-01 00:00", "04-01 00:00 05-01 00:00"];
        assert_eq!(local("1mo", 3, "2027-02-01T00:00", Length::Until("2027-03-01T00:00")), months);
        let leap_year = ["01-01 00:00 02-01 00:00", "02-01 00:00 03-01 00:00", "03-01 00:00 04-01 00:00"];
        assert_eq!(local("1mo", 3, "2028-01-01T00:00", Length::Until("2028-02-01T00:00")), leap_year);
        let last_days = ["01-01 00:00 01-31 18:00", "02-01 00:00 02-28 18:00"];
        assert_eq!(local("1mo", 2, "2027-01-01T00:00", Length::Until("2027-01-31T18:00")), last_days);
        let over_the_end = ["01-30 10:00 01-31 12:00", "02-28 10:00 03-01 12:00", "03-30 10:00 03-31 12:00"];
        assert_eq!(local("1mo", 3, "2027-01-30T10:00", Length::Until("2027-01-31T12:00")), over_the_end);
        let nights = ["03-27 00:00 03-27 04:00", "03-28 00:00 03-28 04:00"];
        assert_eq!(local("1d", 2, "2027-03-27T00:00", Length::Until("2027-03-27T04:00")), nights);
        // In Cairo, clocks go from 0:00 to 1:00 on April 30, 2027.
        let days = ["04-29 00:00 04-30 01:00", "04-30 01:00 05-01 00:00", "05-01 00:00 05-02 00:00"];
        assert_eq!(
            in_zone("Africa/Cairo", "1d", 3, "2027-04-29T00:00", Length::Until("2027-04-30T00:00")),
            days
        );
        // The clocks skip both the start and the end.
        let left_out = ["03-27 02:30 03-27 03:00", "03-28 03:30 03-28 04:00", "03-29 02:30 03-29 03:00"];
        assert_eq!(local("1d", 3, "2027-03-27T02:30", Length::Until("2027-03-27T03:00")), left_out);
    }

    #[test]
    fn cls_10_h_days_of_a_duration_follow_the_calendar_and_hours_do_not() {
        let weekly = ["03-27 10:00 04-03 10:00", "04-03 10:00 04-10 10:00"];
        for week in ["7d", "P7D", "1w", "P1W"] {
            assert_eq!(local("1w", 2, "2027-03-27T10:00", Length::For(week)), weekly, "{week}");
        }
        let longer = ["03-27 10:00 03-28 12:00", "04-03 10:00 04-04 12:00"];
        assert_eq!(local("1w", 2, "2027-03-27T10:00", Length::For("1d2h")), longer);
        let nights = ["03-27 00:00 03-27 04:00", "03-28 00:00 03-28 05:00"];
        assert_eq!(local("1d", 2, "2027-03-27T00:00", Length::For("4h")), nights);
    }

    #[test]
    fn cls_10_h_a_lease_does_not_reach_into_the_next_one_unless_the_first_does() {
        let daily = ["03-26 10:00 03-27 10:00", "03-27 10:00 03-28 10:00", "03-28 10:00 03-29 10:00"];
        assert_eq!(local("1d", 3, "2027-03-26T10:00", Length::For("24h")), daily);
        let from_the_change = ["03-27 10:00 03-28 10:00", "03-28 10:00 03-29 10:00"];
        assert_eq!(local("1d", 2, "2027-03-27T10:00", Length::For("PT24H")), from_the_change);
        let months = ["01-01 00:00 02-01 00:00", "02-01 00:00 03-01 00:00", "03-01 00:00 04-01 00:00"];
        assert_eq!(local("1mo", 3, "2027-01-01T00:00", Length::For("31d")), months);
        let overlapping = ["02-01 09:00 02-02 11:00", "02-02 09:00 02-03 11:00"];
        assert_eq!(local("1d", 2, "2027-02-01T09:00", Length::For("26h")), overlapping);
    }

    #[test]
    fn cls_10_h_it_recurs_until_a_date_or_so_many_times() {
        let until = json!({"every": "1d", "until": "2030-01-04 08:00"});
        let found = starts(&until, "2030-01-02T08:00:00Z", "2030-01-02T12:00:00Z").expect("well formed");
        assert_eq!(found, ["2030-01-02T08:00:00Z", "2030-01-03T08:00:00Z"]);
        for start in ["2030-01-04T08:00:00Z", "2030-01-05T08:00:00Z"] {
            let none = starts(&until, start, "2030-01-06T08:00:00Z").expect_err("no lease");
            assert!(none.to_string().contains("repeat.until"), "{none}");
        }
        for wrong in [
            json!({"every": "1d"}),
            json!({"every": "1d", "times": 2, "until": "2030-01-04 08:00"}),
            json!({"every": "-1d", "times": 2}),
            json!({"every": "0s", "times": 2}),
            json!({"every": "soon", "times": 2}),
            json!({"every": "1d", "times": 0}),
            json!({"every": "1d", "times": 201}),
            json!({"every": "1m", "until": "2030-02-04 08:00"}),
            json!({"every": "1d", "times": 2, "time_zone": "Nowhere/Land"}),
            json!({"every": "1d", "times": 2, "more": 1}),
            json!(5),
        ] {
            let found = starts(&wrong, "2030-01-02T08:00:00Z", "2030-01-02T12:00:00Z");
            assert!(found.is_err(), "{wrong}: {found:?}");
        }
    }
}
