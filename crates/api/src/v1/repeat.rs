//! Leases that recur, in requests and answers (CLS-10). Not in Blazar.
//!
//! Starts are reckoned by the calendar of a time zone: a course on Mondays at nine is at nine in winter and in summer. Each
//! lease is as long as the first one, also where clocks are changed while it runs, or when it starts.

use jiff::tz::TimeZone;
use jiff::{Span, SpanFieldwise, Timestamp};
use leases::window::Window;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::date::{Dates, read_date};
use super::error::RequestError;
use super::fields::{Fields, boolean, count, text};
use super::lease::Lease;

/// How a lease recurs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeat {
    every: SpanFieldwise,
    times: Option<u32>,
    until: Option<Timestamp>,
    zone: TimeZone,
    /// Most leases that there may be.
    most: u32,
    dates: Dates,
    /// Whether dates that cannot be had are left out.
    pub skips: bool,
}

impl Repeat {
    pub(super) fn read(value: &Value, dates: Dates, most: u32) -> Result<Self, RequestError> {
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
        let skips = fields.given("skip_unavailable");
        let skips = skips.map(|value| boolean("repeat.skip_unavailable", value)).transpose()?;
        fields.finish()?;
        Ok(Self { every: every.fieldwise(), times, until, zone, most, dates, skips: skips.unwrap_or(false) })
    }

    /// When: first in this window, and then again and again, each time for as long. A start that the clocks leave out is
    /// later by as much as they are changed.
    pub fn windows(&self, first: Window) -> Result<Vec<Window>, RequestError> {
        let wrong = || RequestError::malformed("repeat", "of dates that the calendar has");
        let (start, length) = (first.start().to_zoned(self.zone.clone()), first.length());
        let mut windows = Vec::new();
        for number in 0..=self.most {
            if self.times == Some(number) {
                return Ok(windows);
            }
            // Counted from the first, so that the 31st of a month does not become the 28th for good.
            let later = self.every.0.checked_mul(i64::from(number)).map_err(|_| wrong())?;
            let start = start.checked_add(later).map_err(|_| wrong())?.timestamp();
            if self.until.is_some_and(|until| start >= until) {
                return Ok(windows);
            }
            let end = start.checked_add(length).map_err(|_| wrong())?;
            self.dates.check("repeat", end)?;
            windows.push(Window::new(start, end).map_err(|_| wrong())?);
        }
        // With a number of times it has returned.
        let (parameter, value) = ("repeat".to_owned(), format!("more than {} leases", self.most));
        Err(RequestError::TooLarge { parameter, value, most: self.most.into(), setting: "limits.series" })
    }
}

/// Whether it is no number of whole minutes: dates have no seconds.
fn has_seconds(span: &Span) -> bool {
    let parts = [
        i128::from(span.get_seconds()) * 1_000_000_000,
        i128::from(span.get_milliseconds()) * 1_000_000,
        i128::from(span.get_microseconds()) * 1000,
        i128::from(span.get_nanoseconds()),
    ];
    parts.into_iter().sum::<i128>() % 60_000_000_000 != 0
}

/// Leases that were made together.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Series {
    /// What they are found by.
    pub id: String,
    /// The leases, by start.
    pub leases: Vec<Lease>,
    /// Dates that were left out, since the lease could not be had.
    pub skipped: Vec<Skipped>,
}

/// A date that was left out.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Skipped {
    /// From when.
    pub start_date: String,
    /// Until when.
    pub end_date: String,
    /// Why.
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
            Repeat::read(repeat, dates, limits.series)?.windows(window)?
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

    /// The lengths in minutes and the starts of a lease that recurs daily from then on.
    fn daily(zone: &str, start: &str, minutes: i64) -> Vec<(i64, String)> {
        let limits = Limits::default();
        let dates = Dates::new(at("2026-01-01T00:00:00Z"), &limits);
        let repeat =
            Repeat::read(&json!({"every": "1d", "times": 3, "time_zone": zone}), dates, limits.series);
        let window = Window::starting(at(start), jiff::SignedDuration::from_mins(minutes));
        let windows = repeat.expect("well formed").windows(window).expect("dates that there are");
        windows.iter().map(|window| (window.length().as_mins(), window.start().to_string())).collect()
    }

    #[test]
    fn cls_10_h_a_lease_that_recurs_over_a_change_of_clocks_keeps_its_length() {
        // In New York clocks go from 2:00 to 3:00 on March 14, 2027, in Lord Howe from 2:00 to 2:30 on October 4, 2026.
        for (zone, starts) in [
            ("America/New_York", ["2027-03-13T07:00:00Z", "2027-03-14T07:00:00Z", "2027-03-15T06:00:00Z"]),
            ("Australia/Lord_Howe", ["2026-10-02T15:30:00Z", "2026-10-03T15:30:00Z", "2026-10-04T15:00:00Z"]),
        ] {
            for minutes in [15, 30, 60, 90, 1500] {
                let found = daily(zone, starts[0], minutes);
                let wanted: Vec<_> = starts.iter().map(|start| (minutes, (*start).to_owned())).collect();
                assert_eq!(found, wanted, "{zone}");
            }
        }
        // And back: New York from 2:00 to 1:00 on November 7, 2027, Lord Howe from 2:00 to 1:30 on April 5, 2026.
        for (zone, start) in [
            ("America/New_York", "2027-11-06T05:30:00Z"),
            ("America/New_York", "2027-11-06T06:00:00Z"),
            ("Australia/Lord_Howe", "2026-04-03T14:40:00Z"),
            ("Australia/Lord_Howe", "2026-04-03T15:00:00Z"),
        ] {
            let found = daily(zone, start, 60);
            assert!(found.iter().all(|(minutes, _)| *minutes == 60), "{zone}: {found:?}");
            assert!(found.is_sorted_by_key(|(_, start)| start.clone()), "{zone}: {found:?}");
        }
    }

    #[test]
    fn cls_10_h_it_recurs_until_a_date_or_so_many_times() {
        let until = json!({"every": "1d", "until": "2030-01-04 08:00"});
        let found = starts(&until, "2030-01-02T08:00:00Z", "2030-01-02T12:00:00Z").expect("well formed");
        assert_eq!(found, ["2030-01-02T08:00:00Z", "2030-01-03T08:00:00Z"]);
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
