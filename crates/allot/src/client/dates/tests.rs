//! Times as they are read and shown.

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
fn an_end_on_the_weekday_of_the_start_is_noted() {
    let note =
        |start: &str, end: &str, days: i64| week_later(start, end, SignedDuration::from_hours(24 * days));
    let wanted = "the lease lasts 7d: --end tue is in the week after --start Tuesday";
    assert_eq!(note("Tuesday", "tue", 7).as_deref(), Some(wanted));
    assert!(note("tue 09:00", "tue 08:00", 7).is_some());
    assert!(note("tue 09:00", "tue 12:00", 0).is_none());
    assert!(note("tue", "wed", 8).is_none() && note("2030-01-01", "2030-01-08", 7).is_none());
}

#[test]
fn dates_are_brief_where_the_day_is_clear() {
    let brief = |text: &str| show_brief(at(text), at("2030-01-02T20:00:00Z"), &zone(), false);
    // Wednesday, 22:00 local time.
    assert_eq!(brief("2030-01-01T22:00:00Z"), "00:00");
    assert_eq!(brief("2030-01-02T21:59:00Z"), "23:59");
    assert_eq!(brief("2030-01-02T22:00:00Z"), "Thu 00:00");
    assert_eq!(brief("2030-01-08T21:59:00Z"), "Tue 23:59");
    // The following Wednesday and yesterday: a weekday alone would mean one of the coming days.
    assert_eq!(brief("2030-01-08T22:00:00Z"), "2030-01-09 00:00");
    assert_eq!(brief("2030-01-01T21:59:00Z"), "2030-01-01 23:59");
    let second = show_brief(at("2030-01-02T10:00:07Z"), at("2030-01-02T10:00:00Z"), &zone(), true);
    assert_eq!(second, "12:00:07");
}

#[test]
fn what_is_later_than_dates_can_be_is_said_to_be() {
    let said = |text: &str| {
        let read = When::parse(text, at("2030-01-02T10:20:30Z"), &zone());
        read.expect_err("too late").to_string()
    };
    for late in ["9999-12-31 23:58", "9999-12-31 00:01", "9999-12-31T23:58Z", "9999-12-31T23:58:00-08:00"] {
        assert!(said(late).contains("is later than the latest possible date"), "{late}: {}", said(late));
    }
    assert!(said("9999-13-31").contains("invalid time"));
    assert!(said("9999-12-31 25:00").contains("invalid time"));
    assert_eq!(wire("9999-12-01").as_deref(), Some("9999-11-30 22:00"));
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
        // Relative to Wednesday, 12:20 local time.
        ("2h", "2030-01-02 12:20"),
        ("1d12h", "2030-01-03 22:20"),
        ("13:00", "2030-01-02 11:00"),
        ("12:20", "2030-01-02 10:20"),
        ("9:00", "2030-01-03 07:00"),
        ("monday", "2030-01-06 22:00"),
        ("Tuesday 09:00", "2030-01-08 07:00"),
        ("wed 14:00", "2030-01-02 12:00"),
        ("wed", "2030-01-08 22:00"),
    ];
    for (text, wanted) in cases {
        assert_eq!(wire(text).as_deref(), Some(wanted), "{text}");
    }
}

#[test]
fn an_end_comes_after_the_start_and_a_report_looks_back() {
    let (now, start) = (at("2030-01-02T10:20:30Z"), at("2030-01-05T11:00:00Z"));
    for (text, end, past) in [
        ("13:00", "2030-01-06 11:00", Some("2030-01-01 11:00")),
        ("18:00", "2030-01-05 16:00", Some("2030-01-01 16:00")),
        ("monday", "2030-01-06 22:00", Some("2029-12-30 22:00")),
        ("wed 09:00", "2030-01-09 07:00", Some("2030-01-02 07:00")),
        ("+2h", "2030-01-02 12:20", Some("2030-01-02 12:20")),
        ("2h", "2030-01-02 12:20", None),
    ] {
        let read = When::parse_end(text, now, start, &zone()).ok().map(When::wire);
        assert_eq!(read.as_deref(), Some(end), "{text}");
        let read = When::parse_past(text, now, &zone()).ok().map(When::wire);
        assert_eq!(read.as_deref(), past, "{text}");
    }
}

#[test]
fn a_day_as_an_end_is_included() {
    let now = at("2030-01-02T10:20:30Z");
    let last = |text| When::parse_last(text, now, now, &zone()).map(When::wire).ok();
    for (text, end) in [
        ("2030-02-05", "2030-02-05 22:00"),
        ("today", "2030-01-02 22:00"),
        ("friday", "2030-01-04 22:00"),
        ("2030-02-05 00:00", "2030-02-04 22:00"),
        ("2030-02-05T00:00Z", "2030-02-05 00:00"),
        ("13:00", "2030-01-02 11:00"),
        ("+2d", "2030-01-04 10:20"),
        ("now", "now"),
    ] {
        assert_eq!(last(text).as_deref(), Some(end), "{text}");
    }
    let later = at("2030-03-01T10:00:00Z");
    for (text, end) in [("13:00", "2030-03-01 11:00"), ("monday", "2030-03-04 22:00")] {
        let last = When::parse_last(text, now, later, &zone()).map(When::wire);
        assert_eq!(last.ok().as_deref(), Some(end), "{text}");
    }
    let past = When::parse_past_end("2029-12-31", now, &zone()).map(When::wire);
    assert_eq!(past.ok().as_deref(), Some("2029-12-31 22:00"));
}

#[test]
fn times_that_clocks_leave_out_or_show_twice_are_told_apart() {
    let new_york = TimeZone::posix("EST5EDT,M3.2.0,M11.1.0").expect("a zone");
    let now = at("2027-01-01T00:00:00Z");
    let oddity = |text| {
        let taken = When::parse(text, now, &new_york).map_or(now, |when| when.instant(now));
        super::oddity(text, taken, now, &new_york).unwrap_or_default()
    };
    let gap = oddity("2027-03-14 02:30");
    assert!(gap.contains("skip") && gap.contains("using 2027-03-14 03:30"), "{gap}");
    let fold = oddity("2027-11-07 01:30");
    assert!(fold.contains("twice") && fold.contains("2027-11-07 01:30-04:00"), "{fold}");
    for text in ["2027-03-14 03:30", "2027-11-07 02:30", "now", "+2h", "2027-11-07 01:30-05:00", "soon"] {
        assert_eq!(oddity(text), "", "{text}");
    }
    let end = |text, start| {
        let taken = When::parse_end(text, now, at(start), &new_york).expect("a time").instant(now);
        super::oddity(text, taken, now, &new_york).unwrap_or_default()
    };
    let (spring, autumn) = ("2027-03-13T17:00:00Z", "2027-11-06T16:00:00Z");
    assert_eq!(end("02:30", spring), gap);
    assert_eq!(end("sun 02:30", spring), gap);
    assert_eq!(end("01:30", autumn), fold);
    assert_eq!(end("sun 01:30", autumn), fold);
    assert_eq!(end("02:30", autumn), "");
    assert_eq!(end("01:30", spring), "");
    let shown = |text| show(at(text), &new_york);
    assert_eq!(shown("2027-11-07T05:30:00Z"), "2027-11-07 01:30-04:00");
    assert_eq!(shown("2027-11-07T06:30:00Z"), "2027-11-07 01:30-05:00");
    assert_eq!(shown("2027-11-07T07:30:00Z"), "2027-11-07 02:30");
    assert_eq!(show_seconds(at("2027-11-07T05:30:07Z"), &new_york), "2027-11-07 01:30:07-04:00");
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
    for text in ["P1DT12H", "p1dt12h", "PT36H", "1d 12h", "2160 minutes"] {
        assert_eq!(duration(text).ok(), Some(SignedDuration::from_hours(36)), "{text}");
    }
    for text in
        ["30s", "PT30S", "PT1H0.5S", "soon", "10:00:00", "P1M", "1mo", "P1Y", "-P1D", "-1h", "P", "PT"]
    {
        let error = duration(text).expect_err(text).to_string();
        assert!(error.contains("whole minutes"), "{text}: {error}");
    }
}

#[test]
fn the_same_length_is_in_days_and_hours_of_the_calendar() {
    let berlin = TimeZone::get("Europe/Berlin").expect("a zone");
    let at = |text: &str| match When::parse(text, at("2027-01-02T10:20:30Z"), &berlin) {
        Ok(When::At(instant)) => instant,
        other => panic!("{text}: {other:?}"),
    };
    for (old_start, old_end, start, end) in [
        ("2027-03-26", "2027-03-29", "2027-04-02", "2027-04-05"),
        ("2027-04-02", "2027-04-05", "2027-03-26", "2027-03-29"),
        ("2027-10-29", "2027-11-01", "2027-11-05", "2027-11-08"),
        ("2027-03-26 09:00", "2027-03-28 17:00", "2027-04-02 09:00", "2027-04-04 17:00"),
        // Three days of 24 hours, as `--for 3d` makes them.
        ("2027-03-26 12:00", "2027-03-29 13:00", "2027-04-02 12:00", "2027-04-05 12:00"),
        ("2027-04-02 12:00", "2027-04-02 16:00", "2027-03-27 23:00", "2027-03-28 04:00"),
    ] {
        let found = end_of_same_length(at(old_start), at(old_end), at(start), &berlin);
        assert_eq!(found, Some(at(end)), "{old_start} to {old_end}, from {start}");
    }
}

#[test]
fn answers_are_shown_in_the_zone_asked_for() {
    assert_eq!(shown("2030-01-02T10:00:00.000000", &zone()), "2030-01-02 12:00");
    assert_eq!(shown("2030-01-02T10:00:00.000000", &TimeZone::UTC), "2030-01-02 10:00");
    for own in ["2030-01-02T10:00:00Z", "2030-01-02T10:00:00.25Z"] {
        assert_eq!(shown(own, &zone()), "2030-01-02 12:00", "{own}");
    }
    assert_eq!(shown("whenever", &zone()), "whenever");
    assert_eq!(zone_name(&TimeZone::UTC), "UTC");
}

#[test]
fn dates_in_texts_of_the_service_are_shown_in_the_zone() {
    let berlin = TimeZone::get("Europe/Berlin").expect("a zone");
    let local = |text| with_local_dates(text, &berlin);
    assert_eq!(local("2027-02-01T08:00:00.000000: Not enough"), "2027-02-01 09:00 CET: Not enough");
    assert_eq!(local("from 2026-07-01 12:05 UTC on, é"), "from 2026-07-01 14:05 CEST on, é");
    for same in
        ["2026-07-01 12:05", "x2026-07-01 12:05 UTC", "12026-07-01 12:05 UTC", "2026-13-01 12:05 UTC", ""]
    {
        assert_eq!(local(same), same);
    }
    assert_eq!(with_local_dates("2026-07-01 12:05 UTC", &TimeZone::UTC), "2026-07-01 12:05 UTC");
}

#[test]
fn lengths_have_two_units_at_most() {
    for (minutes, shown) in
        [(0, "0m"), (59, "59m"), (150, "2h 30m"), (3 * 24 * 60, "3d"), (24 * 60 + 61, "1d 1h")]
    {
        assert_eq!(length(SignedDuration::from_mins(minutes)), shown);
    }
}
