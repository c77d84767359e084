//! Leases that recur, in requests and answers (spec CLS-10). Not in Blazar.
//!
//! Times are reckoned by the calendar of a time zone: a course on Mondays at nine is at nine in winter and in summer.

use jiff::tz::TimeZone;
use jiff::{Span, SpanFieldwise, Timestamp};
use leases::window::Window;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::Lease;
use super::date::{Dates, read_date};
use super::error::RequestError;
use super::fields::{Fields, boolean, count, text};

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

    /// When: first in this window, and then again and again.
    pub fn windows(&self, first: Window) -> Result<Vec<Window>, RequestError> {
        let wrong = || RequestError::malformed("repeat", "of dates that the calendar has");
        let (start, end) =
            (first.start().to_zoned(self.zone.clone()), first.end().to_zoned(self.zone.clone()));
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
            let end = end.checked_add(later).map_err(|_| wrong())?.timestamp();
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
