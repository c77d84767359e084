//! Durations in text: `90s`, `30m`, `2h`, `3d`, `1w`, or several units together, as `1d12h`.

use jiff::SignedDuration;

/// About five thousand years. The sum of a date and such a duration can be out of range, but can't overflow.
const MOST_SECONDS: i64 = 5_000 * 366 * 24 * 3600;

/// Units, the largest first. A day has 24 hours.
const UNITS: [(char, i64); 5] = [('w', 7 * 24 * 3600), ('d', 24 * 3600), ('h', 3600), ('m', 60), ('s', 1)];

/// Parses a duration. `None` if the text isn't one, or if it's longer than `MOST_SECONDS`.
pub(crate) fn parse(text: &str) -> Option<SignedDuration> {
    let mut seconds: i64 = 0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let number: i64 = rest[..digits].parse().ok()?;
        let unit = rest[digits..].chars().next()?;
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
        seconds = seconds.checked_add(number.checked_mul(*factor)?)?;
        rest = &rest[digits + unit.len_utf8()..];
    }
    (seconds <= MOST_SECONDS).then(|| SignedDuration::from_secs(seconds))
}

/// Formats a duration in the largest unit that divides it, but not in weeks.
pub(crate) fn show(duration: SignedDuration) -> String {
    let mut units = UNITS.into_iter().filter(|(unit, _)| *unit != 'w');
    let whole = units.find_map(|(unit, _)| show_in(duration, unit));
    whole.filter(|_| !duration.is_zero()).unwrap_or_else(|| format!("{}s", duration.as_secs()))
}

/// Formats a duration in a given unit. `None` if it isn't a whole number of that unit.
pub(crate) fn show_in(duration: SignedDuration, unit: char) -> Option<String> {
    let (_, factor) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    let seconds = duration.as_secs();
    (seconds % factor == 0).then(|| format!("{}{unit}", seconds / factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_add_up() {
        let cases =
            [("90s", 90), ("30m", 1800), ("2h", 7200), ("1d12h", 36 * 3600), ("1w", 7 * 86_400), ("0s", 0)];
        for (text, seconds) in cases {
            assert_eq!(parse(text), Some(SignedDuration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_none() {
        for text in ["", "h", "2", "-1h", "1.5h", "2ü", "9999999999w", "99999999999999999999s", "1h 2m"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn durations_are_written_in_the_largest_unit_or_in_a_certain_one() {
        for text in ["0s", "90s", "30m", "2h", "36h", "7d", "36525d"] {
            assert_eq!(parse(text).map(show).as_deref(), Some(text));
        }
        let hour = SignedDuration::from_hours(1);
        assert_eq!((show_in(hour, 'm').as_deref(), show_in(hour, 'd')), (Some("60m"), None));
    }
}
