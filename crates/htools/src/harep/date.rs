//! Dates in human-readable form.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Formats a time, in seconds since 1970, in the system's time zone: `Wed May 18 03:33:20 UTC 2033`.
pub(super) fn local(time: i64) -> String {
    in_zone(time, TimeZone::try_system().unwrap_or(TimeZone::UTC))
}

fn in_zone(time: i64, zone: TimeZone) -> String {
    match Timestamp::from_second(time) {
        Ok(timestamp) => timestamp.to_zoned(zone).strftime("%a %b %e %H:%M:%S %Z %Y").to_string(),
        // Out of the calendar's range.
        Err(_) => format!("{time} s after 1970"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_one_digit_are_padded() {
        assert_eq!(in_zone(1_999_000_000, TimeZone::UTC), "Fri May  6 13:46:40 UTC 2033");
        assert_eq!(in_zone(2_000_000_000, TimeZone::UTC), "Wed May 18 03:33:20 UTC 2033");
    }

    #[test]
    fn zones_have_their_own_hours_and_names() {
        let zone = TimeZone::posix("EST5EDT,M3.2.0,M11.1.0").unwrap();
        assert_eq!(in_zone(2_000_000_000, zone.clone()), "Tue May 17 23:33:20 EDT 2033");
        assert_eq!(in_zone(1_960_000_000, zone), "Mon Feb  9 23:26:40 EST 2032");
    }

    #[test]
    fn times_beyond_all_calendars_are_numbers() {
        assert_eq!(in_zone(i64::MAX, TimeZone::UTC), "9223372036854775807 s after 1970");
    }
}
