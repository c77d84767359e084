//! Reading and writing numbers like the reference (HT-numbers).
//!
//! Files, options and specifications share the syntax of Haskell's `read`. Output is rounded on a number's
//! shortest decimal digits, not on its binary value.

use thiserror::Error;

/// A text isn't a number. `what` names the origin of the text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NumberError {
    /// The text doesn't start with a number.
    #[error("{what}: cannot parse string '{text}'")]
    Unreadable { what: String, text: String },
    /// More text follows the number.
    #[error("{what}: leftover characters when parsing '{text}': '{rest}'")]
    Leftover {
        what: String,
        text: String,
        /// Text after the number.
        rest: String,
    },
}

/// Parses all of `text` as an integer. Integers beyond 64 bits wrap.
pub fn read_int(what: &str, text: &str) -> Result<i64, NumberError> {
    // Nearly all numbers in files are this simple, and a file can have hundreds of thousands.
    if (1..=18).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit()) {
        return Ok(text.bytes().fold(0, |sum, b| sum * 10 + i64::from(b - b'0')));
    }
    complete(what, text, int_prefix(text))
}

/// Parses all of `text` as a floating-point number. Numbers out of range become infinite or zero.
pub fn read_float(what: &str, text: &str) -> Result<f64, NumberError> {
    complete(what, text, number_prefix(text, literal_to_float, |x| -x))
}

/// The integer at the start of `text`, and the rest of the text.
pub fn int_prefix(text: &str) -> Option<(i64, &str)> {
    number_prefix(text, literal_to_int, i64::wrapping_neg)
}

fn complete<T>(what: &str, text: &str, prefix: Option<(T, &str)>) -> Result<T, NumberError> {
    let error = |rest: Option<&str>| {
        let (what, text) = (what.to_owned(), text.to_owned());
        match rest {
            Some(rest) => NumberError::Leftover { what, text, rest: rest.to_owned() },
            None => NumberError::Unreadable { what, text },
        }
    };
    match prefix {
        Some((value, "")) => Ok(value),
        Some((_, rest)) => Err(error(Some(rest))),
        None => Err(error(None)),
    }
}

/// A number literal without its sign.
enum Literal<'a> {
    /// Digits in base 2^`bits`, without their prefix.
    Power { bits: u32, digits: &'a str },
    /// Decimal digits. `plain` if it has neither a fraction nor an exponent.
    Decimal { text: &'a str, plain: bool },
    /// A word, such as `NaN`.
    Word(&'a str),
}

/// `[blanks] ( literal | - literal | "(" number [blanks] ")" )`
fn number_prefix<T>(
    text: &str,
    convert: fn(&Literal<'_>) -> Option<T>,
    negate: fn(T) -> T,
) -> Option<(T, &str)> {
    let mut rest = text.trim_start();
    let mut depth = 0_usize;
    while let Some(inner) = rest.strip_prefix('(') {
        depth += 1;
        rest = inner.trim_start();
    }
    let negated = rest.strip_prefix('-');
    let (literal, mut rest) = literal(negated.unwrap_or(rest).trim_start())?;
    let value = convert(&literal)?;
    for _ in 0..depth {
        rest = rest.trim_start().strip_prefix(')')?;
    }
    Some((if negated.is_some() { negate(value) } else { value }, rest))
}

fn literal(text: &str) -> Option<(Literal<'_>, &str)> {
    let first = text.chars().next()?;
    if first.is_alphabetic() {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '\'').unwrap_or(text.len());
        return Some((Literal::Word(&text[..end]), &text[end..]));
    }
    for (prefixes, bits) in [(["0x", "0X"], 4), (["0o", "0O"], 3)] {
        if let Some(body) = prefixes.iter().find_map(|p| text.strip_prefix(p)) {
            let end = body.find(|c: char| !c.is_digit(1 << bits)).unwrap_or(body.len());
            if end > 0 {
                return Some((Literal::Power { bits, digits: &body[..end] }, &body[end..]));
            }
        }
    }
    let whole = digits_end(text, 0)?;
    let fraction = text[whole..].starts_with('.').then(|| digits_end(text, whole + 1)).flatten();
    let mantissa = fraction.unwrap_or(whole);
    let exponent = text[mantissa..].starts_with(['e', 'E']).then(|| {
        let signed = text[mantissa + 1..].starts_with(['+', '-']);
        digits_end(text, mantissa + 1 + usize::from(signed))
    });
    let end = exponent.flatten().unwrap_or(mantissa);
    Some((Literal::Decimal { text: &text[..end], plain: end == whole }, &text[end..]))
}

/// End of the run of decimal digits that starts at `start`; `None` if the run is empty.
fn digits_end(text: &str, start: usize) -> Option<usize> {
    let count = text[start..].bytes().take_while(u8::is_ascii_digit).count();
    (count > 0).then_some(start + count)
}

fn literal_to_int(literal: &Literal<'_>) -> Option<i64> {
    let (digits, base) = match literal {
        Literal::Power { bits, digits } => (*digits, 1_u32 << bits),
        Literal::Decimal { text, plain: true } => (*text, 10),
        _ => return None,
    };
    let values = digits.chars().filter_map(|c| c.to_digit(base));
    Some(values.fold(0_i64, |sum, d| sum.wrapping_mul(i64::from(base)).wrapping_add(i64::from(d))))
}

fn literal_to_float(literal: &Literal<'_>) -> Option<f64> {
    match literal {
        Literal::Power { bits, digits } => Some(power_digits_to_float(*bits, digits)),
        Literal::Decimal { text, .. } => text.parse().ok(),
        Literal::Word("NaN") => Some(f64::NAN),
        Literal::Word("Infinity") => Some(f64::INFINITY),
        Literal::Word(_) => None,
    }
}

/// Correctly rounded: digits beyond 120 bits become a sticky bit and a scale.
fn power_digits_to_float(bits: u32, digits: &str) -> f64 {
    let (mut value, mut scale) = (0_u128, 0_i32);
    for digit in digits.chars().filter_map(|c| c.to_digit(1 << bits)) {
        if value >> 120 == 0 {
            value = (value << bits) | u128::from(digit);
        } else {
            value |= u128::from(digit != 0);
            scale = scale.saturating_add(bits as i32);
        }
    }
    value as f64 * 2_f64.powi(scale)
}

/// Shortest decimal digits that read back as the same finite number: 0.d1d2d3... * 10^`exponent`.
///
/// The reference also requires that the digits lie strictly inside the interval that reads back. The two
/// differ only if the digits are an exact tie, such as 10^23, far beyond any size, ratio or score.
struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i32,
}

impl Decimal {
    /// Digits of `x`. `Err` is the text of a number that isn't finite.
    fn of(x: f64) -> Result<Self, &'static str> {
        if x.is_nan() {
            return Err("NaN");
        }
        if x.is_infinite() {
            return Err(if x > 0.0 { "Infinity" } else { "-Infinity" });
        }
        let text = format!("{:e}", x.abs());
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits = mantissa.bytes().filter(u8::is_ascii_digit).map(|b| b - b'0').collect();
        // Zero has one digit before the point, and counts as 0.0 * 10^0.
        let exponent = if x == 0.0 { 0 } else { exponent.parse::<i32>().unwrap_or(0) + 1 };
        Ok(Self { negative: x.is_sign_negative(), digits, exponent })
    }

    /// Whether the reference omits the exponent where it has the choice: for 0, and from 0.1 to below 10^7.
    fn is_moderate(&self) -> bool {
        (0..=7).contains(&self.exponent)
    }

    /// Rounds to `count` digits, half to even. Returns true if that adds a leading 1.
    fn round(&mut self, count: usize) -> bool {
        if count >= self.digits.len() {
            self.digits.resize(count, 0);
            return false;
        }
        let even = count == 0 || self.digits[count - 1].is_multiple_of(2);
        let tail = &self.digits[count..];
        let half = tail[0] == 5 && tail[1..].iter().all(|d| *d == 0);
        let up = tail[0] >= 5 && !(half && even);
        self.digits.truncate(count);
        if up {
            for digit in self.digits.iter_mut().rev() {
                if *digit < 9 {
                    *digit += 1;
                    return false;
                }
                *digit = 0;
            }
            self.digits.insert(0, 1);
        }
        up
    }

    fn write(&self, whole: &[u8], fraction: &[u8], out: &mut String) {
        if self.negative {
            out.push('-');
        }
        push_digits(out, if whole.is_empty() { &[0] } else { whole });
        if !fraction.is_empty() {
            out.push('.');
            push_digits(out, fraction);
        }
    }
}

fn push_digits(out: &mut String, digits: &[u8]) {
    out.extend(digits.iter().map(|d| char::from(b'0' + d)));
}

/// Formats a number with exactly `decimals` decimals.
pub fn fixed(x: f64, decimals: usize) -> String {
    let mut number = match Decimal::of(x) {
        Ok(number) => number,
        Err(word) => return word.to_owned(),
    };
    if number.exponent < 0 {
        let zeros = vec![0; number.exponent.unsigned_abs() as usize];
        number.digits.splice(0..0, zeros);
        number.exponent = 0;
    }
    let whole = number.exponent as usize;
    let whole = whole + usize::from(number.round(whole + decimals));
    let mut out = String::with_capacity(whole + decimals + 3);
    number.write(&number.digits[..whole], &number.digits[whole..], &mut out);
    out
}

/// Formats a number with six decimals, and with an exponent unless it's zero or from 0.1 to below 10^7.
pub fn general6(x: f64) -> String {
    let mut number = match Decimal::of(x) {
        Ok(number) => number,
        Err(word) => return word.to_owned(),
    };
    if number.is_moderate() {
        return fixed(x, 6);
    }
    let mut exponent = number.exponent - 1;
    if number.round(7) {
        exponent += 1;
        number.digits.truncate(7);
    }
    exponential(&number, exponent)
}

/// Formats a number with all its digits, and with an exponent unless it's zero or from 0.1 to below 10^7.
pub fn show(x: f64) -> String {
    match Decimal::of(x) {
        Ok(mut number) if !number.is_moderate() => {
            if number.digits.len() == 1 {
                number.digits.push(0);
            }
            exponential(&number, number.exponent - 1)
        }
        _ => plain(x),
    }
}

fn exponential(number: &Decimal, exponent: i32) -> String {
    let mut out = String::new();
    number.write(&number.digits[..1], &number.digits[1..], &mut out);
    out.push('e');
    out.push_str(&exponent.to_string());
    out
}

/// Formats a number with all its digits and at least one decimal, but no exponent.
pub fn plain(x: f64) -> String {
    match Decimal::of(x) {
        Ok(number) => {
            let decimals = number.digits.len() as i32 - number.exponent;
            fixed(x, decimals.max(1) as usize)
        }
        Err(word) => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn integers_are_read_like_the_reference_does() {
        let check = |text: &str, expect: Result<i64, &str>| {
            assert_eq!(read_int("W", text).map_err(|e| e.to_string()), expect.map_err(str::to_owned));
        };
        for (text, value) in [
            ("0", 0),
            (" 12", 12),
            ("007", 7),
            ("999999999999999999", 999_999_999_999_999_999),
            ("-5", -5),
            ("- 5", -5),
            ("(900)", 900),
            ("( ( -9 ) )", -9),
            ("0x100", 256),
            ("-0XfF", -255),
            ("0o17", 15),
            ("18446744073709551617", 1),
            ("9223372036854775808", i64::MIN),
            ("-9223372036854775808", i64::MIN),
        ] {
            check(text, Ok(value));
        }
        for text in ["", " ", "+5", "9e2", "1.0", "x", "(5", "-(5)", "--5", "NaN", ".5", "٣"] {
            check(text, Err(&format!("W: cannot parse string '{text}'")));
        }
        for (text, rest) in
            [("12MB", "MB"), ("1 ", " "), ("0b11", "b11"), ("1_000", "_000"), ("0x", "x"), ("1.", ".")]
        {
            check(text, Err(&format!("W: leftover characters when parsing '{text}': '{rest}'")));
        }
    }

    #[test]
    fn floats_are_read_like_the_reference_does() {
        let check = |text: &str, expect: Result<f64, &str>| match (read_float("W", text), expect) {
            (Ok(value), Ok(expect)) => assert_eq!(value.to_bits(), expect.to_bits(), "{text}"),
            (value, expect) => assert_eq!(value.map_err(|e| e.to_string()), expect.map_err(str::to_owned)),
        };
        for (text, value) in [
            ("1000", 1000.0),
            ("1000.5", 1000.5),
            ("1e3", 1000.0),
            ("1E+3", 1000.0),
            ("-2.5", -2.5),
            ("0x10", 16.0),
            ("0x1000000000000000000000000000000000000000", 2_f64.powi(156)),
            ("Infinity", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("NaN", f64::NAN),
            ("1e999", f64::INFINITY),
            ("1e-99999999999999999999", 0.0),
            ("(- 1.5)", -1.5),
        ] {
            check(text, Ok(value));
        }
        for text in [".5", "+1", "", "inf", "NaNs", "-.5"] {
            check(text, Err(&format!("W: cannot parse string '{text}'")));
        }
        for (text, rest) in [("1.", "."), ("1e", "e"), ("1.5e+", "e+"), ("NaN.5", ".5")] {
            check(text, Err(&format!("W: leftover characters when parsing '{text}': '{rest}'")));
        }
    }

    #[test]
    fn numbers_are_written_like_the_reference_does() {
        let check = |text: String, expect: &str| assert_eq!(text, expect);
        for (x, decimals, expect) in [
            (0.165, 2, "0.16"),
            (0.155, 2, "0.16"),
            (0.145, 2, "0.14"),
            (0.025, 2, "0.02"),
            (0.12355, 4, "0.1236"),
            (2.5, 0, "2"),
            (3.5, 0, "4"),
            (0.5, 0, "0"),
            (0.51, 0, "1"),
            (9.5, 0, "10"),
            (99.996, 2, "100.00"),
            (0.0009, 3, "0.001"),
            (0.05, 1, "0.0"),
            (-0.2, 0, "-0"),
            (0.0, 8, "0.00000000"),
            (-0.0, 1, "-0.0"),
            (1e22, 1, "10000000000000000000000.0"),
            (1e-300, 3, "0.000"),
            (f64::NAN, 3, "NaN"),
            (f64::INFINITY, 3, "Infinity"),
            (f64::NEG_INFINITY, 3, "-Infinity"),
        ] {
            check(fixed(x, decimals), expect);
        }
        for (x, expect) in [
            (0.0, "0.000000"),
            (3.421_594, "3.421594"),
            (10.0, "10.000000"),
            (0.1, "0.100000"),
            (7.8125e-3, "7.812500e-3"),
            (1e-9, "1.000000e-9"),
            (1e7, "1.000000e7"),
            (9_999_999.0, "9999999.000000"),
            (123_456_789.0, "1.234568e8"),
            (99_999_999.9, "1.000000e8"),
            (f64::NAN, "NaN"),
        ] {
            check(general6(x), expect);
        }
        for (x, expect) in [
            (4.0, "4.0"),
            (0.1, "0.1"),
            (0.05, "5.0e-2"),
            (1e7, "1.0e7"),
            (12_345_678.9, "1.23456789e7"),
            (-0.05, "-5.0e-2"),
            (0.0, "0.0"),
            (f64::INFINITY, "Infinity"),
        ] {
            check(show(x), expect);
        }
        for (x, expect) in [
            (1.0, "1.0"),
            (0.05, "0.05"),
            (1e-7, "0.0000001"),
            (12_345_678.9, "12345678.9"),
            (1e8, "100000000.0"),
        ] {
            check(plain(x), expect);
        }
    }

    proptest! {
        #[test]
        fn every_way_of_writing_all_digits_reads_back(bits in any::<u64>()) {
            let x = f64::from_bits(bits);
            prop_assume!(x.is_finite());
            for text in [plain(x), show(x)] {
                prop_assert_eq!(read_float("W", &text).map(f64::to_bits), Ok(x.to_bits()));
            }
        }

        #[test]
        fn fixed_rounds_decimal_fractions_half_to_even(n in -1_000_000_000_i64..1_000_000_000) {
            // The shortest digits of n thousandths have at most three decimals.
            let x = n as f64 / 1000.0;
            let (whole, rest) = (n.abs() / 10, n.abs() % 10);
            let up = rest > 5 || (rest == 5 && whole % 2 == 1);
            let hundredths = whole + i64::from(up);
            let sign = if n < 0 { "-" } else { "" };
            prop_assert_eq!(fixed(x, 2), format!("{sign}{}.{:02}", hundredths / 100, hundredths % 100));
        }

        #[test]
        fn fixed_writes_integers_in_full(n in -9_007_199_254_740_992_i64..9_007_199_254_740_992) {
            prop_assert_eq!(fixed(n as f64, 0), n.to_string());
        }

        #[test]
        fn reading_never_fails_otherwise(text in "\\PC*") {
            let _ = read_int("W", &text);
            let _ = read_float("W", &text);
        }

        #[test]
        fn integers_read_back(n in any::<i64>()) {
            prop_assert_eq!(read_int("W", &n.to_string()), Ok(n));
        }
    }
}
