//! What a property is compared with.

use std::cmp::Ordering;

/// A value in an expression. What number it is, if it is one, is found out once and not for every host: clients
/// choose how long it is.
#[derive(Clone, Debug)]
pub struct Operand {
    text: String,
    number: Option<Number>,
}

/// A decimal number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    /// Exact: serial numbers are longer than a binary64 is.
    Whole(i128),
    Fraction(f64),
}

impl Operand {
    pub(super) fn new(text: String) -> Self {
        let number = Number::read(&text);
        Self { text, number }
    }

    /// Whether it is a number.
    pub fn is_number(&self) -> bool {
        self.number.is_some()
    }

    /// Whether a property has this value.
    pub fn equals(&self, property: &str) -> bool {
        self.compared_with(property).is_eq()
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How a property stands to it: by number where both are numbers, else by text.
    ///
    /// Blazar compares capabilities as text always, so that 10 comes before 8 (W17).
    pub(super) fn compared_with(&self, property: &str) -> Ordering {
        self.compared_with_number(property, self.number.and_then(|_| Number::read(property)))
    }

    /// The same of a property that is that number, if it is one.
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

/// The number follows from the text.
impl PartialEq for Operand {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Operand {}

impl Number {
    /// Decimal numbers only: the words that Rust reads as numbers, such as `inf`, are text here.
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

    /// How it stands to another: exactly, if both are whole.
    pub(crate) fn compared_with(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => a.cmp(&b),
            (a, b) => a.rounded().total_cmp(&b.rounded()),
        }
    }

    fn rounded(self) -> f64 {
        // 0.0 is added so that "-0.0" equals "0".
        match self {
            Self::Whole(number) => number as f64,
            Self::Fraction(number) => number + 0.0,
        }
    }
}
