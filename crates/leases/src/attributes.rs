//! Structured properties. The text of some properties, mainly `cpu_info`, describes several values, which can
//! have parts in turn. Extra specs can name each part (CLS-06).
//!
//! The service parses the text, because it knows the format. A host carries the result beside the text.

use std::collections::BTreeMap;

/// A parsed property value, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// A word, number or boolean. Booleans are `True` and `False`, as in all properties.
    Text(String),
    /// Several values.
    List(Vec<Self>),
    /// Named parts.
    Parts(BTreeMap<String, Self>),
}

/// Parsed properties of a host by name. Plain text properties are absent.
#[derive(Clone, Debug, Default)]
pub struct Attributes(BTreeMap<String, Attribute>);

impl Attributes {
    pub fn new(properties: impl IntoIterator<Item = (String, Attribute)>) -> Self {
        Self(properties.into_iter().collect())
    }

    pub fn of(&self, property: &str) -> Option<&Attribute> {
        self.0.get(property)
    }

    /// Follows a path of part names into a property.
    pub fn part(&self, property: &str, path: &[String]) -> Option<&Attribute> {
        let mut found = self.of(property)?;
        for name in path {
            let Attribute::Parts(parts) = found else { return None };
            found = parts.get(name)?;
        }
        Some(found)
    }
}

/// Attributes follow from the texts of properties, so hosts with equal texts are equal.
impl PartialEq for Attributes {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Attributes {}
