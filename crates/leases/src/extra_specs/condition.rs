//! What a value of an extra spec demands of a capability: Nova's operators (CLS-06).

use std::borrow::Cow;

use super::error::ExtraSpecError;
use crate::attributes::Attribute;
use crate::requirement::{Number, Operator};

/// What a capability must be.
#[derive(Clone, Debug)]
pub(super) enum Condition {
    /// Exactly that text: there is no operator.
    Text(String),
    /// A number in that relation to another. Only `==`, `!=`, `>=` and `<=` are made: Nova has no others.
    Number(Operator, Number),
    /// Text in that relation to another, in the order of its characters.
    Ordered(Operator, String),
    /// Text with that in it, or a list with that among it.
    Contains(String),
    /// Text with each of these in it, or a list with all of these among it.
    ContainsAll(Vec<String>),
    /// One of these.
    OneOf(Vec<String>),
    /// Nothing is: an operator stands alone.
    Never,
}

/// What a host has of a capability.
#[derive(Clone, Debug)]
pub(super) enum Capability<'a> {
    Text(Cow<'a, str>),
    List(&'a [Attribute]),
}

impl<'a> Capability<'a> {
    /// Of an attribute. One that has parts itself has no value.
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
    /// Reads a value. Its first word says how to compare, if it is an operator; else the whole value is meant. An
    /// operator that compares with one thing takes the next word, and what follows that counts for nothing, as in
    /// Nova.
    pub(super) fn read(key: &str, value: &str) -> Result<Self, ExtraSpecError> {
        let mut words = value.split_whitespace();
        let Some(operator) = words.next() else { return Ok(Self::Text(value.to_owned())) };
        let operand = words.next();
        let number = |operator| operand.map_or(Ok(Self::Never), |word| numeric(key, operator, word));
        let ordered = |operator| operand.map_or(Self::Never, |word| Self::Ordered(operator, word.to_owned()));
        Ok(match operator {
            "==" => number(Operator::Equal)?,
            "!=" => number(Operator::NotEqual)?,
            // Nova's `=` is no equality.
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
            // Every second word is a value; what stands between them is the operator again.
            "<or>" => match operand {
                None => Self::Never,
                Some(first) => Self::OneOf(owned(std::iter::once(first).chain(words.skip(1).step_by(2)))),
            },
            _ => Self::Text(value.to_owned()),
        })
    }

    /// Whether the capability is as demanded.
    pub(super) fn holds(&self, capability: &Capability<'_>) -> bool {
        match (self, capability) {
            (Self::Contains(word), _) => capability.contains(word),
            (Self::ContainsAll(words), _) => words.iter().all(|word| capability.contains(word)),
            (Self::Never, _) | (_, Capability::List(_)) => false,
            (Self::Text(text), Capability::Text(has)) => has == text,
            // What is no number is in no relation to one.
            (Self::Number(operator, number), Capability::Text(has)) => {
                Number::read(has).is_some_and(|has| operator.holds(has.compared_with(*number)))
            }
            (Self::Ordered(operator, text), Capability::Text(has)) => {
                operator.holds(has.as_ref().cmp(text.as_str()))
            }
            (Self::OneOf(texts), Capability::Text(has)) => texts.iter().any(|text| has == text),
        }
    }

    /// With how many values it compares.
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
