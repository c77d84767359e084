//! Past periods in requests for reports.

use clap::Args;
use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use serde_json::Value;

use super::dates::{When, shown_seconds, zone_name};
use super::{ClientError, Session};

/// The period of a report.
#[derive(Args, Debug)]
pub(crate) struct Past {
    /// Start of the period: 2030-01-02, "2030-01-02 10:00", monday, -2h; by default the beginning of the month
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,
    /// End of the period, written like --from; a date includes that day. By default now
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Option<String>,
}

impl Past {
    /// Query parameters. The service has defaults for missing ones.
    pub(crate) async fn query(
        &self,
        session: &Session<'_>,
    ) -> Result<Vec<(&'static str, String)>, ClientError> {
        let now = session.now().await;
        let mut query = Vec::new();
        if let Some(from) = &self.from {
            query.push(("start", When::parse_past(from, now, &session.zone)?.instant(now).to_string()));
        }
        if let Some(to) = &self.to {
            query.push(("end", When::parse_past_end(to, now, &session.zone)?.instant(now).to_string()));
        }
        query.extend(session.zone.iana_name().map(|name| ("time_zone", name.to_owned())));
        Ok(query)
    }
}

/// Notes the period that a report covers.
pub(super) fn note(answer: &Value, session: &mut Session<'_>) {
    let line = sentence(answer, &session.zone);
    session.note_to_people(&line);
}

/// Describes the period of a response. One that ends at midnight includes the day before.
fn sentence(answer: &Value, zone: &TimeZone) -> String {
    let text = |name: &str| answer[name].as_str().unwrap_or_default();
    let end = match last_day(text("end"), zone) {
        Some(day) => format!("the end of {day}"),
        None => shown_seconds(text("end"), zone),
    };
    format!("From {} to {end} ({}).", shown_seconds(text("start"), zone), zone_name(zone))
}

/// Last day of a period that ends at midnight, otherwise `None`.
fn last_day(end: &str, zone: &TimeZone) -> Option<Date> {
    let end = end.parse::<Timestamp>().ok()?.to_zoned(zone.clone());
    if end.time() == Time::midnight() { end.date().yesterday().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_period_that_ends_at_midnight_includes_the_day_before() {
        let period =
            |end: &str| sentence(&json!({"start": "2030-01-01T00:00:00Z", "end": end}), &TimeZone::UTC);
        assert_eq!(
            period("2030-02-01T00:00:00Z"),
            "From 2030-01-01 00:00:00 to the end of 2030-01-31 (UTC)."
        );
        assert_eq!(period("2030-02-01T10:00:00Z"), "From 2030-01-01 00:00:00 to 2030-02-01 10:00:00 (UTC).");
    }
}
