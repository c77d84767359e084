//! Times and durations as people write and read them. The service knows minutes, in UTC.

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Unit};

use super::ClientError;

/// A point in time as it is written on a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// The present minute, whenever the request arrives.
    Now,
    /// That instant.
    At(Timestamp),
}

impl When {
    /// Reads `now`, `+2h` and `-2h` (from now), `2030-01-02`, `2030-01-02 10:00`, the same with a zone or `Z`, `today 10:00`
    /// and `tomorrow`. Without a zone, times are of `zone`.
    pub(crate) fn parse(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Self, ClientError> {
        let text = text.trim();
        if text == "now" {
            return Ok(Self::Now);
        }
        if let Some(distance) = text.strip_prefix("now+").or_else(|| text.strip_prefix('+')) {
            let distance = duration(distance)?;
            return now.checked_add(distance).map(Self::At).map_err(|_| wrong(text));
        }
        if let Some(distance) = text.strip_prefix("now-").or_else(|| text.strip_prefix('-')) {
            return now.checked_sub(duration(distance)?).map(Self::At).map_err(|_| wrong(text));
        }
        instant(text, now, zone).map(Self::At).ok_or_else(|| wrong(text))
    }

    /// The instant, if `now` is the present.
    pub(crate) fn instant(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Now => minute(now),
            Self::At(instant) => instant,
        }
    }

    /// As requests have it.
    pub(crate) fn wire(self) -> String {
        match self {
            Self::Now => "now".to_owned(),
            Self::At(instant) => instant.strftime("%Y-%m-%d %H:%M").to_string(),
        }
    }
}

fn wrong(text: &str) -> ClientError {
    ClientError::Usage(format!(
        "{text:?} is no time: write now, +2h, 2030-01-02, \"2030-01-02 10:00\", \"tomorrow 09:00\", or \
         2030-01-02T10:00Z for UTC"
    ))
}

fn instant(text: &str, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    if let Ok(instant) = text.replacen(' ', "T", 1).parse::<Timestamp>() {
        return Some(instant);
    }
    let (day, time) = text.split_once([' ', 'T']).unwrap_or((text, "00:00"));
    let today = now.to_zoned(zone.clone()).date();
    let date = match day {
        "today" => today,
        "tomorrow" => today.tomorrow().ok()?,
        day => day.parse().ok()?,
    };
    let time: Time = time.trim().parse().ok()?;
    let local = DateTime::from_parts(date, time);
    local.to_zoned(zone.clone()).ok().map(|zoned| zoned.timestamp())
}

/// Reads a duration of full minutes, which is what the service knows.
pub(crate) fn duration(text: &str) -> Result<SignedDuration, ClientError> {
    let read = crate::duration::parse(text).filter(|duration| duration.as_secs() % 60 == 0);
    read.ok_or_else(|| {
        ClientError::Usage(format!(
            "{text:?} is no duration: write minutes, hours, days or weeks as in 90m, 2h, 3d, 1d12h, 1w"
        ))
    })
}

/// The beginning of the minute: what the service takes `now` for.
pub(crate) fn minute(instant: Timestamp) -> Timestamp {
    let seconds = instant.as_second();
    Timestamp::from_second(seconds - seconds.rem_euclid(60)).unwrap_or(instant)
}

/// Reads a date of an answer: `2030-01-02T10:00:00.000000`, UTC.
pub(crate) fn of_answer(text: &str) -> Option<Timestamp> {
    let civil: DateTime = text.parse().ok()?;
    civil.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

/// A date of an answer as it is shown; what is none is shown as it is.
pub(crate) fn shown(text: &str, zone: &TimeZone) -> String {
    of_answer(text).map_or_else(|| text.to_owned(), |instant| show(instant, zone))
}

/// An instant as it is shown, to the minute.
pub(crate) fn show(instant: Timestamp, zone: &TimeZone) -> String {
    instant.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string()
}

/// An instant as it is shown, to the second.
pub(crate) fn show_seconds(instant: Timestamp, zone: &TimeZone) -> String {
    instant.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// What times are shown in: `UTC`, `local time (Europe/Rome)`.
pub(crate) fn zone_name(zone: &TimeZone) -> String {
    match zone.iana_name() {
        Some("UTC" | "Etc/UTC") => "UTC".to_owned(),
        Some(name) => format!("local time ({name})"),
        None if *zone == TimeZone::UTC => "UTC".to_owned(),
        None => "local time".to_owned(),
    }
}

/// A length of time in its two largest units: `3d`, `2h 30m`.
pub(crate) fn length(duration: SignedDuration) -> String {
    let minutes = duration.abs().round(Unit::Minute).unwrap_or(duration).as_mins();
    let parts = [(minutes / (24 * 60), 'd'), (minutes / 60 % 24, 'h'), (minutes % 60, 'm')];
    let shown: Vec<_> = parts.iter().filter(|(number, _)| *number > 0).take(2).collect();
    if shown.is_empty() {
        return "0m".to_owned();
    }
    shown.iter().map(|(number, unit)| format!("{number}{unit}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    fn zone() -> TimeZone {
        TimeZone::fixed(jiff::tz::offset(2))
    }

    fn wire(text: &str) -> Option<String> {
        When::parse(text, at("2030-01-02T10:20:30Z"), &zone()).ok().map(When::wire)
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        let cases = [
            ("now", "now"),
            ("+2h", "2030-01-02 12:20"),
            ("now+1d12h", "2030-01-03 22:20"),
            ("-1d", "2030-01-01 10:20"),
            ("now-1h", "2030-01-02 09:20"),
            ("2030-01-05", "2030-01-04 22:00"),
            ("2030-01-05 08:00", "2030-01-05 06:00"),
            ("2030-01-05T08:00", "2030-01-05 06:00"),
            ("2030-01-05T08:00Z", "2030-01-05 08:00"),
            ("2030-01-05 08:00+05:00", "2030-01-05 03:00"),
            ("today 23:30", "2030-01-02 21:30"),
            ("tomorrow", "2030-01-02 22:00"),
            ("tomorrow 09:00", "2030-01-03 07:00"),
        ];
        for (text, wanted) in cases {
            assert_eq!(wire(text).as_deref(), Some(wanted), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "soon",
            "+",
            "+2",
            "+2y",
            "2030-13-01",
            "2030-01-02 25:00",
            "+99999999999999999999d",
            "+9999999d",
        ] {
            assert_eq!(wire(text), None, "{text}");
        }
    }

    #[test]
    fn durations_have_full_minutes() {
        assert_eq!(duration("1d12h").ok(), Some(SignedDuration::from_hours(36)));
        assert_eq!(duration("120s").ok(), Some(SignedDuration::from_mins(2)));
        assert!(duration("30s").is_err());
        assert!(duration("soon").is_err());
    }

    #[test]
    fn answers_are_shown_in_the_zone_asked_for() {
        assert_eq!(shown("2030-01-02T10:00:00.000000", &zone()), "2030-01-02 12:00");
        assert_eq!(shown("2030-01-02T10:00:00.000000", &TimeZone::UTC), "2030-01-02 10:00");
        assert_eq!(shown("whenever", &zone()), "whenever");
        assert_eq!(zone_name(&TimeZone::UTC), "UTC");
    }

    #[test]
    fn lengths_have_two_units_at_most() {
        for (minutes, shown) in
            [(0, "0m"), (59, "59m"), (150, "2h 30m"), (3 * 24 * 60, "3d"), (24 * 60 + 61, "1d 1h")]
        {
            assert_eq!(length(SignedDuration::from_mins(minutes)), shown);
        }
    }
}
