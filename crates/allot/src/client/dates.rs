//! Times and durations as people write and read them. The service has a resolution of one minute and uses
//! UTC.

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::fmt::temporal::Pieces;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp, Unit};

use super::ClientError;

/// A time given on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// The current minute when the request arrives.
    Now,
    At(Timestamp),
}

impl When {
    /// Parses a time, by default in the future: `now`, `+2h` or `2h` (from now), `-2h`, `2030-01-02`,
    /// `2030-01-02 10:00` (optionally with a zone or `Z`), `today 10:00`, `tomorrow`. Times of day and
    /// weekdays mean their next occurrence: `13:00`, `monday 09:00`. Times without a zone are in `zone`.
    pub(crate) fn parse(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Self, ClientError> {
        Self::read(text, now, Near::From(now), zone)
    }

    /// Parses an end: `13:00` and `monday` mean their first occurrence after `start`.
    pub(crate) fn parse_end(
        text: &str,
        now: Timestamp,
        start: Timestamp,
        zone: &TimeZone,
    ) -> Result<Self, ClientError> {
        let after = minute(start).checked_add(SignedDuration::from_mins(1)).unwrap_or(start);
        Self::read(text, now, Near::From(after), zone)
    }

    /// Parses a new start. A time of day means the day of the `present` start.
    pub(crate) fn parse_on_day_of(
        present: Timestamp,
        text: &str,
        now: Timestamp,
        zone: &TimeZone,
    ) -> Result<Self, ClientError> {
        match time_of_day(text.trim()) {
            Some(time) => {
                at_time(present.to_zoned(zone.clone()).date(), time, zone).ok_or_else(|| wrong(text))
            }
            None => Self::parse(text, now, zone),
        }
    }

    /// Parses a new end. A time of day means its occurrence after `start` that is nearest to the `present`
    /// end.
    pub(crate) fn parse_near(
        present: Timestamp,
        start: Timestamp,
        text: &str,
        now: Timestamp,
        zone: &TimeZone,
    ) -> Result<Self, ClientError> {
        let Some(time) = time_of_day(text.trim()) else { return Self::parse_end(text, now, start, zone) };
        let today = present.to_zoned(zone.clone()).date();
        let days = [today.yesterday().ok(), Some(today), today.tomorrow().ok()];
        let times = days.into_iter().flatten().filter_map(|day| at_time(day, time, zone));
        let later = times.filter(|when| when.instant(now) > start);
        let nearest = later.min_by_key(|when| when.instant(now).duration_since(present).abs());
        nearest.map_or_else(|| Self::parse_end(text, now, start, zone), Ok)
    }

    /// Parses the time of a lease's warning: `13:00` and `monday` mean their last occurrence before its
    /// `end`.
    pub(crate) fn parse_before_end(
        text: &str,
        now: Timestamp,
        end: Timestamp,
        zone: &TimeZone,
    ) -> Result<Self, ClientError> {
        if duration(text).is_ok() {
            return Self::parse(text, now, zone);
        }
        let before = end.checked_sub(SignedDuration::from_mins(1)).unwrap_or(end);
        Self::read(text, now, Near::Until(before), zone)
    }

    /// Parses a time for a report of the past: `13:00` and `monday` mean their last occurrence.
    pub(crate) fn parse_past(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Self, ClientError> {
        Self::read(text, now, Near::Until(now), zone)
    }

    /// Parses the end of a period in the past. A day without a time is part of the period.
    pub(crate) fn parse_past_end(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Self, ClientError> {
        Ok(Self::parse_past(text, now, zone)?.after_day(text, zone))
    }

    /// Parses the end of a period that begins at `start`. A day without a time is part of the period.
    pub(crate) fn parse_last(
        text: &str,
        now: Timestamp,
        start: Timestamp,
        zone: &TimeZone,
    ) -> Result<Self, ClientError> {
        Ok(Self::parse_end(text, now, start, zone)?.after_day(text, zone))
    }

    /// Returns the start of the next day if the text is a day without a time.
    fn after_day(self, text: &str, zone: &TimeZone) -> Self {
        let Self::At(instant) = self else { return self };
        if !is_day(text) {
            return self;
        }
        let next = instant.to_zoned(zone.clone()).date().tomorrow().ok();
        next.and_then(|next| next.to_zoned(zone.clone()).ok()).map_or(self, |next| Self::At(next.timestamp()))
    }

    fn read(text: &str, now: Timestamp, near: Near, zone: &TimeZone) -> Result<Self, ClientError> {
        let text = text.trim();
        if text == "now" {
            return Ok(Self::Now);
        }
        let ahead = text.strip_prefix("now+").or_else(|| text.strip_prefix('+'));
        if let Some(distance) = ahead {
            return now.checked_add(duration(distance)?).map(Self::At).map_err(|_| too_late(text));
        }
        if let Some(distance) = text.strip_prefix("now-").or_else(|| text.strip_prefix('-')) {
            return now.checked_sub(duration(distance)?).map(Self::At).map_err(|_| wrong(text));
        }
        if let (Near::From(_), Ok(distance)) = (near, duration(text)) {
            return now.checked_add(distance).map(Self::At).map_err(|_| too_late(text));
        }
        let found = instant(text, now, near, zone).map(Self::At);
        found.ok_or_else(|| if is_too_late(text) { too_late(text) } else { wrong(text) })
    }

    /// Resolves the time, given the current one.
    pub(crate) fn instant(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Now => minute(now),
            Self::At(instant) => instant,
        }
    }

    /// Formats the time for requests.
    pub(crate) fn wire(self) -> String {
        match self {
            Self::Now => "now".to_owned(),
            Self::At(instant) => instant.strftime("%Y-%m-%d %H:%M").to_string(),
        }
    }
}

/// Selects an occurrence of a time of day or a weekday.
#[derive(Clone, Copy, Debug)]
enum Near {
    /// First occurrence at or after this instant.
    From(Timestamp),
    /// Last occurrence at or before this instant.
    Until(Timestamp),
}

fn wrong(text: &str) -> ClientError {
    ClientError::Usage(format!(
        "invalid time {text:?}: write now, +2h, 13:00, monday, 2030-01-02, \"2030-01-02 10:00\", \"tomorrow 09:00\", or \
         2030-01-02T10:00Z for UTC"
    ))
}

fn too_late(text: &str) -> ClientError {
    ClientError::Usage(format!("{text:?} is later than the latest possible date"))
}

/// Whether a date that can't be converted is too late: the last representable instant is in the last days of
/// 9999.
fn is_too_late(text: &str) -> bool {
    Pieces::parse(&text.replacen(' ', "T", 1)).is_ok_and(|pieces| pieces.date().year() == 9999)
}

fn instant(text: &str, now: Timestamp, near: Near, zone: &TimeZone) -> Option<Timestamp> {
    if let Ok(instant) = text.replacen(' ', "T", 1).parse::<Timestamp>() {
        return Some(instant);
    }
    civil(text, now, near, zone)?.to_zoned(zone.clone()).ok().map(|zoned| zoned.timestamp())
}

/// Parses a local date and time.
fn civil(text: &str, now: Timestamp, near: Near, zone: &TimeZone) -> Option<DateTime> {
    let text = text.to_lowercase();
    if let Some(time) = time_of_day(&text) {
        return nearest(time, near, zone, |_| true);
    }
    let separator =
        text.find(' ').or_else(|| text.find('t').filter(|_| text.starts_with(|c: char| c.is_ascii_digit())));
    let (day, time) = separator.map_or((text.as_str(), "00:00"), |at| (&text[..at], &text[at + 1..]));
    let time = time_of_day(time.trim())?;
    let today = now.to_zoned(zone.clone()).date();
    let date = match day {
        "today" => today,
        "tomorrow" => today.tomorrow().ok()?,
        "yesterday" => today.yesterday().ok()?,
        day => match weekday(day) {
            Some(weekday) => return nearest(time, near, zone, |date| date.weekday() == weekday),
            None => day.parse().ok()?,
        },
    };
    Some(DateTime::from_parts(date, time))
}

/// Parses `9:00`, `09:00` or `09:00:30`.
fn time_of_day(text: &str) -> Option<Time> {
    let (hour, rest) = text.split_once(':')?;
    let digits =
        |part: &str| !part.is_empty() && part.len() <= 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    (digits(hour) && rest.split(':').all(digits)).then(|| format!("{hour:0>2}:{rest}").parse().ok())?
}

fn at_time(day: Date, time: Time, zone: &TimeZone) -> Option<When> {
    let zoned = DateTime::from_parts(day, time).to_zoned(zone.clone()).ok()?;
    Some(When::At(zoned.timestamp()))
}

/// Whether the text is a day without a time.
pub(crate) fn is_day(text: &str) -> bool {
    let text = text.trim().to_lowercase();
    let dated = text.starts_with(|c: char| c.is_ascii_digit()) && !text.contains([':', ' ', 't']);
    matches!(text.as_str(), "today" | "tomorrow" | "yesterday")
        || weekday(&text).is_some()
        || (dated && text.parse::<Date>().is_ok())
}

/// Note that an end on the weekday of the start is in the following week.
pub(crate) fn week_later(start: &str, end: &str, lasts: SignedDuration) -> Option<String> {
    let day = |text: &str| weekday(text.trim().to_lowercase().split(' ').next()?);
    let is_later = day(start)? == day(end)? && lasts > SignedDuration::from_hours(6 * 24);
    is_later.then(|| {
        format!("the lease lasts {}: --end {end} is in the week after --start {start}", length(lasts))
    })
}

fn weekday(text: &str) -> Option<Weekday> {
    const NAMES: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let place = NAMES.iter().position(|name| *name == text || name[..3] == *text)?;
    Weekday::from_monday_zero_offset(i8::try_from(place).ok()?).ok()
}

/// Finds the nearest `time` on a day that `meant` accepts, within a week.
fn nearest(time: Time, near: Near, zone: &TimeZone, meant: impl Fn(Date) -> bool) -> Option<DateTime> {
    let (Near::From(around) | Near::Until(around)) = near;
    // Ignore seconds: people give times to the minute.
    let around = minute(around).to_zoned(zone.clone()).datetime();
    let (step, day) = match near {
        Near::From(_) => (1, around.date()),
        Near::Until(_) => (-1, around.date()),
    };
    let days = (0..=7).filter_map(|days| day.checked_add(SignedDuration::from_hours(24 * days * step)).ok());
    let mut times = days.filter(|date| meant(*date)).map(|date| DateTime::from_parts(date, time));
    times.find(|time| if step > 0 { *time >= around } else { *time <= around })
}

/// Note about a local time that clocks skip or show twice that day. `taken` is the instant it was resolved
/// to.
pub(crate) fn oddity(text: &str, taken: Timestamp, now: Timestamp, zone: &TimeZone) -> Option<String> {
    // A time of day or a weekday is on the day of `taken`, which clocks can show an hour later.
    let near = taken.checked_sub(SignedDuration::from_hours(12)).unwrap_or(taken);
    let local = civil(text.trim(), now, Near::From(near), zone)?;
    let offset = zone.to_ambiguous_timestamp(local).offset();
    let taken = show(local.to_zoned(zone.clone()).ok()?.timestamp(), zone);
    let local = local.strftime("%Y-%m-%d %H:%M");
    match offset {
        AmbiguousOffset::Unambiguous { .. } => None,
        AmbiguousOffset::Gap { .. } => Some(format!("clocks skip {local} that day; using {taken}")),
        AmbiguousOffset::Fold { .. } => Some(format!(
            "clocks show {local} twice that day; using the first, {taken}; for the second, write the offset"
        )),
    }
}

/// End of a period from `start` with as many calendar days and hours in `zone` as the period from `old_start`
/// to `old_end`. A multiple of 24 hours that isn't a number of whole calendar days keeps its hours.
pub(crate) fn end_of_same_length(
    old_start: Timestamp,
    old_end: Timestamp,
    start: Timestamp,
    zone: &TimeZone,
) -> Option<Timestamp> {
    let hours = old_end.duration_since(old_start);
    let days = old_start.to_zoned(zone.clone()).until((Unit::Day, &old_end.to_zoned(zone.clone()))).ok()?;
    let is_of_whole_days = days == Span::new().try_days(days.get_days()).ok()?.fieldwise();
    if !is_of_whole_days && hours.as_secs() % (24 * 60 * 60) == 0 {
        return start.checked_add(hours).ok();
    }
    start.to_zoned(zone.clone()).checked_add(days).ok().map(|end| end.timestamp())
}

/// Parses a duration of whole minutes, which is the service's resolution.
pub(crate) fn duration(text: &str) -> Result<SignedDuration, ClientError> {
    let read = crate::duration::parse(text).or_else(|| as_the_service(text));
    read.filter(|duration| duration.as_nanos() % SignedDuration::from_mins(1).as_nanos() == 0).ok_or_else(
        || {
            ClientError::Usage(format!(
                "invalid duration {text:?}: write whole minutes, hours, days or weeks, such as 90m, 2h, 3d, \
             1d12h, 1w, P1DT12H"
            ))
        },
    )
}

/// Parses a duration like the service does: `P1DT4H`, `1d 4h`. A day has 24 hours. Months are rejected, since
/// their length varies.
fn as_the_service(text: &str) -> Option<SignedDuration> {
    // `10:00:00` is a time of day here, not a duration.
    let span: Span = text.trim().parse().ok().filter(|_| !text.contains(':'))?;
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    (!duration.is_negative()).then_some(duration)
}

/// Start of the minute. The service resolves `now` the same way.
pub(crate) fn minute(instant: Timestamp) -> Timestamp {
    let seconds = instant.as_second();
    Timestamp::from_second(seconds - seconds.rem_euclid(60)).unwrap_or(instant)
}

/// Parses a date in a response: `2030-01-02T10:00:00.000000`, which is in UTC, or `2030-01-02T10:00:00Z`.
pub(crate) fn of_answer(text: &str) -> Option<Timestamp> {
    let civil = |text: &str| text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok();
    text.parse().ok().or_else(|| civil(text).map(|zoned| zoned.timestamp()))
}

/// Formats a date in a response. Text that isn't a date is returned unchanged.
pub(crate) fn shown(text: &str, zone: &TimeZone) -> String {
    of_answer(text).map_or_else(|| text.to_owned(), |instant| show(instant, zone))
}

/// Like [`shown`], to the second.
pub(crate) fn shown_seconds(text: &str, zone: &TimeZone) -> String {
    of_answer(text).map_or_else(|| text.to_owned(), |instant| show_seconds(instant, zone))
}

/// Formats an instant to the minute, with its offset if clocks show that time twice.
pub(crate) fn show(instant: Timestamp, zone: &TimeZone) -> String {
    shown_as(instant, zone, "%Y-%m-%d %H:%M")
}

fn shown_as(instant: Timestamp, zone: &TimeZone, format: &str) -> String {
    let zoned = instant.to_zoned(zone.clone());
    let twice = zone.to_ambiguous_timestamp(zoned.datetime()).is_ambiguous();
    let offset = if twice { zoned.strftime("%:z").to_string() } else { String::new() };
    format!("{}{offset}", zoned.strftime(format))
}

/// Like [`show`], to the second.
pub(crate) fn show_seconds(instant: Timestamp, zone: &TimeZone) -> String {
    shown_as(instant, zone, "%Y-%m-%d %H:%M:%S")
}

/// Formats an instant relative to `now`: only the time if it's on the same day, with the weekday in the six
/// days after it, otherwise with the date.
pub(crate) fn show_brief(instant: Timestamp, now: Timestamp, zone: &TimeZone, seconds: bool) -> String {
    let day = |instant: Timestamp| instant.to_zoned(zone.clone()).date();
    let days = day(now).until(day(instant)).map_or(i32::MAX, |span| span.get_days());
    let time = if seconds { "%H:%M:%S" } else { "%H:%M" };
    match days {
        0 => shown_as(instant, zone, time),
        1..=6 => shown_as(instant, zone, &format!("%a {time}")),
        _ => shown_as(instant, zone, &format!("%Y-%m-%d {time}")),
    }
}

/// Converts dates in a message of the service to `zone`. It recognizes `2030-01-02T10:00:00.000000` and
/// `2030-01-02 10:00 UTC`.
pub(crate) fn with_local_dates(text: &str, zone: &TimeZone) -> String {
    const OF_ANSWER: usize = "2030-01-02T10:00:00.000000".len();
    const OF_MESSAGE: usize = "2030-01-02 10:00 UTC".len();
    let mut local = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let begins = next.is_ascii_digit() && !local.ends_with(|c: char| c.is_ascii_alphanumeric());
        let dated = |length: usize, suffix: &str| {
            let date = rest.get(..length).filter(|_| begins)?.strip_suffix(suffix)?;
            (date.as_bytes()[4] == b'-').then(|| of_answer(date)).flatten().map(|instant| (instant, length))
        };
        let found = dated(OF_ANSWER, "").or_else(|| dated(OF_MESSAGE, " UTC"));
        let step = found.map_or(next.len_utf8(), |(_, length)| length);
        match found {
            Some((instant, _)) => {
                local.push_str(&instant.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M %Z").to_string());
            }
            None => local.push(next),
        }
        rest = &rest[step..];
    }
    local
}

/// Describes the time zone of displayed times: `UTC`, `local time (Europe/Rome)`.
pub(crate) fn zone_name(zone: &TimeZone) -> String {
    match zone.iana_name() {
        Some("UTC" | "Etc/UTC") => "UTC".to_owned(),
        Some(name) => format!("local time ({name})"),
        None if *zone == TimeZone::UTC => "UTC".to_owned(),
        None => "local time".to_owned(),
    }
}

/// Formats a duration in its two largest units: `3d`, `2h 30m`.
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
mod tests;
