//! Values of extra specs as conditions on capabilities, with Nova's operators (CLS-06).

use std::borrow::Cow;

use super::error::ExtraSpecError;
use crate::attributes::Attribute;
use crate::requirement::{Number, Operator};

/// A condition on a capability.
#[derive(Clone, Debug)]
pub(super) enum Condition {
    /// Equals the text; for values without an operator.
    Text(String),
    /// Numeric comparison. Only `==`, `!=`, `>=` and `<=` occur, because Nova has no other numeric operators.
    Number(Operator, Number),
    /// Comparison of texts by character order.
    Ordered(Operator, String),
    /// Text that contains the word, or a list with the word as an item.
    Contains(String),
    /// Text that contains each word, or a list with each word as an item.
    ContainsAll(Vec<String>),
    /// Equals one of the texts.
    OneOf(Vec<String>),
    /// Never true: an operator without operand.
    Never,
}

/// Value of a host's capability.
#[derive(Clone, Debug)]
pub(super) enum Capability<'a> {
    Text(Cow<'a, str>),
    List(&'a [Attribute]),
}

impl<'a> Capability<'a> {
    /// `None` for an attribute with parts: it has no value of its own.
    pub(super) fn of(attribute: &'a Attribute) -> Option<Self> {
        match attribute {
            Attribute::Text(text) => Some(Self::Text(Cow::Borrowed(text))),
            Attribute::List(items) => Some(Self::List(items)),
            Attribute::Parts(_) => None,
        }
    }

    fn contains(&self, word: &str) -> bool {
        match self {
            Self::Text(text) => text.contains(word),
            Self::List(items) => {
                items.iter().any(|item| matches!(item, Attribute::Text(text) if text == word))
            }
        }
    }
}

impl Condition {
    /// Parses the value of a spec. If its first word isn't an operator, the whole value is the text to match.
    /// Operators with a single operand take the next word and ignore the rest, as in Nova.
    pub(super) fn read(key: &str, value: &str) -> Result<Self, ExtraSpecError> {
        let mut words = value.split_whitespace();
        let Some(operator) = words.next() else { return Ok(Self::Text(value.to_owned())) };
        let operand = words.next();
        let number = |operator| operand.map_or(Ok(Self::Never), |word| numeric(key, operator, word));
        let ordered = |operator| operand.map_or(Self::Never, |word| Self::Ordered(operator, word.to_owned()));
        Ok(match operator {
            "==" => number(Operator::Equal)?,
            "!=" => number(Operator::NotEqual)?,
            // Nova's `=` means "at least".
            "=" | ">=" => number(Operator::GreaterOrEqual)?,
            "<=" => number(Operator::LessOrEqual)?,
            "s==" => ordered(Operator::Equal),
            "s!=" => ordered(Operator::NotEqual),
            "s<" => ordered(Operator::Less),
            "s<=" => ordered(Operator::LessOrEqual),
            "s>" => ordered(Operator::Greater),
            "s>=" => ordered(Operator::GreaterOrEqual),
            "<in>" => operand.map_or(Self::Never, |word| Self::Contains(word.to_owned())),
            "<all-in>" => match operand {
                None => Self::Never,
                Some(first) => Self::ContainsAll(owned(std::iter::once(first).chain(words))),
            },
            // Every second word is a value; the words between repeat the operator.
            "<or>" => match operand {
                None => Self::Never,
                Some(first) => Self::OneOf(owned(std::iter::once(first).chain(words.skip(1).step_by(2)))),
            },
            _ => Self::Text(value.to_owned()),
        })
    }

    pub(super) fn holds(&self, capability: &Capability<'_>) -> bool {
        match (self, capability) {
            (Self::Contains(word), _) => capability.contains(word),
            (Self::ContainsAll(words), _) => words.iter().all(|word| capability.contains(word)),
            (Self::Never, _) | (_, Capability::List(_)) => false,
            (Self::Text(text), Capability::Text(has)) => has == text,
            // Text that isn't a number fails every numeric comparison, including `!=`.
            (Self::Number(operator, number), Capability::Text(has)) => {
                Number::read(has).is_some_and(|has| operator.holds(has.compared_with(*number)))
            }
            (Self::Ordered(operator, text), Capability::Text(has)) => {
                operator.holds(has.as_ref().cmp(text.as_str()))
            }
            (Self::OneOf(texts), Capability::Text(has)) => texts.iter().any(|text| has == text),
        }
    }

    /// Number of values compared with, for the limit on all specs.
    pub(super) fn values(&self) -> usize {
        match self {
            Self::ContainsAll(words) | Self::OneOf(words) => words.len(),
            _ => 1,
        }
    }
}

fn numeric(key: &str, operator: Operator, word: &str) -> Result<Condition, ExtraSpecError> {
    let number = Number::read(word);
    let number = number.ok_or_else(|| ExtraSpecError::NoNumber(key.to_owned(), word.to_owned()))?;
    Ok(Condition::Number(operator, number))
}

fn owned<'a>(words: impl Iterator<Item = &'a str>) -> Vec<String> {
    words.map(str::to_owned).collect()
}
