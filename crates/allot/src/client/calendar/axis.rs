//! Time axis above a chart.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Unit, Zoned, ZonedRound};

use super::chart::Chart;

/// A tick on the time axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tick {
    pub at: Timestamp,
    pub label: String,
}

/// Possible distances between ticks, in hours.
const STEPS_HOURS: [i64; 11] = [1, 2, 3, 6, 12, 24, 48, 7 * 24, 14 * 24, 28 * 24, 91 * 24];
/// Columns per tick: `Wed 02 Jan` and one or two spaces.
const COLUMNS: i64 = 12;

/// Returns ticks at full hours or midnights of `zone`, far enough apart to be readable in `columns`.
pub(super) fn ticks(chart: &Chart, columns: usize, zone: &TimeZone) -> Vec<Tick> {
    let seconds = chart.to.as_second() - chart.from.as_second();
    let most = (columns as i64 / COLUMNS).max(1);
    let step = STEPS_HOURS.into_iter().find(|hours| seconds / (hours * 3600) <= most).unwrap_or(364 * 24);
    let Some(first) = first(chart.from, step, zone) else { return Vec::new() };
    let mut ticks = Vec::new();
    let mut at = first;
    while at.timestamp() < chart.to {
        ticks.push(Tick { at: at.timestamp(), label: label(&at, step) });
        // Add calendar days rather than hours, so that ticks stay at midnight after days of 23 or 25 hours.
        let next = if step < 24 { at.checked_add(step.hours()) } else { at.checked_add((step / 24).days()) };
        match next {
            Ok(next) => at = next,
            Err(_) => break,
        }
    }
    ticks
}

/// First tick at or after `from`.
fn first(from: Timestamp, step: i64, zone: &TimeZone) -> Option<Zoned> {
    let from = from.to_zoned(zone.clone());
    if step >= 24 {
        let midnight = from.start_of_day().ok()?;
        return if midnight == from { Some(midnight) } else { midnight.tomorrow().ok() };
    }
    let mode = jiff::RoundMode::Ceil;
    let mut hour = from.round(ZonedRound::new().smallest(Unit::Hour).mode(mode)).ok()?;
    while i64::from(hour.hour()) % step != 0 {
        hour = hour.checked_add(1.hour()).ok()?;
    }
    Some(hour)
}

fn label(at: &Zoned, step: i64) -> String {
    let midnight = at.hour() == 0 && at.minute() == 0;
    let format = if step < 24 && !midnight { "%H:%M" } else { "%a %d %b" };
    at.strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(from: &str, to: &str, columns: usize) -> Vec<String> {
        let at = |text: &str| text.parse().expect("a timestamp");
        let chart = Chart { from: at(from), to: at(to), now: at(from), rows: Vec::new() };
        ticks(&chart, columns, &TimeZone::UTC).into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn marks_are_at_round_times() {
        let day = labels("2030-01-02T10:20:00Z", "2030-01-03T10:20:00Z", 60);
        assert_eq!(day, ["12:00", "18:00", "Thu 03 Jan", "06:00"]);
        let week = labels("2030-01-02T10:20:00Z", "2030-01-09T10:20:00Z", 60);
        assert_eq!(week, ["Thu 03 Jan", "Sat 05 Jan", "Mon 07 Jan", "Wed 09 Jan"]);
    }

    #[test]
    fn a_long_time_has_few_marks() {
        assert!(labels("2030-01-01T00:00:00Z", "2090-01-01T00:00:00Z", 60).len() < 80);
    }
}
