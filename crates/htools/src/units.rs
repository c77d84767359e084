//! Sizes with units, as in specifications on the command line (HT-units).

use thiserror::Error;

use crate::number::int_prefix;

/// A text isn't a size.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnitError {
    /// The text doesn't start with an integer.
    #[error("Can't parse string '{0}'")]
    Unreadable(String),
    /// The integer is followed by an unknown unit.
    #[error("Unknown unit '{0}', use m, g or t (1024) or M, G or T (1000)")]
    UnknownUnit(String),
}

/// Bytes per decimal megabyte. A decimal megabyte is [`DECIMAL`] / [`BINARY`] = (1000/1024)^2 MiB.
const DECIMAL: i128 = 1_000_000;
/// Bytes per MiB.
const BINARY: i128 = 1_048_576;

/// Parses a size. The result is in MiB, truncated to a whole number.
pub fn parse(text: &str) -> Result<i64, UnitError> {
    let (count, rest) = int_prefix(text).ok_or_else(|| UnitError::Unreadable(text.to_owned()))?;
    let unit = rest.trim_start_matches(' ');
    let (numerator, denominator) = factor(unit).ok_or_else(|| UnitError::UnknownUnit(unit.to_owned()))?;
    // At most 2^63 * 10^12, which fits. The result wraps where the reference's does.
    Ok((i128::from(count) * numerator / denominator) as i64)
}

/// MiB per unit, as a fraction. Single letters are case-sensitive; longer names are not.
fn factor(unit: &str) -> Option<(i128, i128)> {
    let name = if unit.len() > 1 { unit.to_ascii_lowercase() } else { unit.to_owned() };
    Some(match name.as_str() {
        "" | "m" | "mib" => (1, 1),
        "g" | "gib" => (1024, 1),
        "t" | "tib" => (1024 * 1024, 1),
        "M" | "mb" => (DECIMAL, BINARY),
        "G" | "gb" => (DECIMAL * 1000, BINARY),
        "T" | "tb" => (DECIMAL * 1_000_000, BINARY),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes() {
        let check = |text: &str, expect: Result<i64, &str>| {
            assert_eq!(parse(text).map_err(|e| e.to_string()), expect.map_err(str::to_owned), "{text}");
        };
        for (text, value) in [
            ("10", 10),
            ("10 ", 10),
            ("10M", 9),
            ("1G", 953),
            ("100G", 95_367),
            ("1T", 953_674),
            ("10TB", 9_536_743),
            ("1t", 1_048_576),
            ("10 g", 10_240),
            ("10mIb", 10),
            ("10Mb", 9),
            ("0x10g", 16_384),
            ("-5g", -5120),
            ("(5)G", 4768),
            ("99999999999999999999g", 2_123_646_838_278_978_560),
        ] {
            check(text, Ok(value));
        }
        check("1.5", Err("Can't parse string '1.5'"));
        check("g", Err("Can't parse string 'g'"));
        for (text, unit) in [("10 kk", "kk"), ("10K", "K"), ("10gb ", "gb "), ("10\tg", "\tg")] {
            let unknown = format!("Unknown unit '{unit}', use m, g or t (1024) or M, G or T (1000)");
            check(text, Err(unknown.as_str()));
        }
    }

    proptest! {
        #[test]
        fn reading_never_fails_otherwise(text in "[-0-9() xgGmMtTiIbB]{0,12}") {
            let _ = parse(&text);
        }

        #[test]
        fn binary_units_are_multiples(n in -1_000_000_i64..1_000_000) {
            prop_assert_eq!(parse(&format!("{n}g")), Ok(n * 1024));
            prop_assert_eq!(parse(&format!("{n} TiB")), Ok(n * 1_048_576));
        }
    }
}
