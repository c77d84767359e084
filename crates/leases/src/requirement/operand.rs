//! Operands: the values that properties are compared with.

use std::cmp::Ordering;

/// A value in an expression. It is parsed as a number once and not for every host, because its length is
/// chosen by clients.
#[derive(Clone, Debug)]
pub struct Operand {
    text: String,
    number: Option<Number>,
}

/// A decimal number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    /// Exact, because serial numbers exceed the precision of a binary64.
    Whole(i128),
    Fraction(f64),
}

impl Operand {
    pub(super) fn new(text: String) -> Self {
        let number = Number::read(&text);
        Self { text, number }
    }

    pub fn is_number(&self) -> bool {
        self.number.is_some()
    }

    /// Whether the property equals this value.
    pub fn equals(&self, property: &str) -> bool {
        self.compared_with(property).is_eq()
    }

    /// The original text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Ordering of the property relative to this value: numeric if both are numbers, otherwise as text.
    ///
    /// Blazar always compares capabilities as text, which puts 10 before 8 (W17).
    pub(super) fn compared_with(&self, property: &str) -> Ordering {
        self.compared_with_number(property, self.number.and_then(|_| Number::read(property)))
    }

    /// Like [`compared_with`](Self::compared_with), for a property already parsed as a number.
    pub(super) fn compared_with_number(&self, property: &str, number: Option<Number>) -> Ordering {
        match number.zip(self.number) {
            Some((property, own)) => property.compared_with(own),
            None => property.cmp(&self.text),
        }
    }
}

impl From<&str> for Operand {
    fn from(text: &str) -> Self {
        Self::new(text.to_owned())
    }
}

/// The number is derived from the text.
impl PartialEq for Operand {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Operand {}

impl Number {
    /// Parses decimal numbers only. Words that Rust parses as numbers, such as `inf`, are text here.
    pub(crate) fn read(text: &str) -> Option<Self> {
        if let Ok(whole) = text.parse() {
            return Some(Self::Whole(whole));
        }
        let decimal = |c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-' | 'e' | 'E');
        if !text.chars().all(decimal) {
            return None;
        }
        text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Self::Fraction)
    }

    /// Ordering of two numbers. Exact if both are whole.
    pub(crate) fn compared_with(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => a.cmp(&b),
            (a, b) => a.rounded().total_cmp(&b.rounded()),
        }
    }

    fn rounded(self) -> f64 {
        // Adding 0.0 makes "-0.0" equal to "0".
        match self {
            Self::Whole(number) => number as f64,
            Self::Fraction(number) => number + 0.0,
        }
    }
}
