//! Properties with parts. The text of some properties, above all of `cpu_info`, describes several things, and those
//! may have parts again; extra specs can name each (CLS-06).
//!
//! Reading such text is the service's, which knows the format. A host carries what was read beside the text.

use std::collections::BTreeMap;

/// What a text describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// A word, a number, or true or false (as `True` and `False`, like all properties).
    Text(String),
    /// Several things.
    List(Vec<Self>),
    /// Parts with names.
    Parts(BTreeMap<String, Self>),
}

/// What the texts of a host's properties describe, by the names of the properties. Properties that are nothing but
/// text are absent.
#[derive(Clone, Debug, Default)]
pub struct Attributes(BTreeMap<String, Attribute>);

impl Attributes {
    /// Of these properties.
    pub fn new(properties: impl IntoIterator<Item = (String, Attribute)>) -> Self {
        Self(properties.into_iter().collect())
    }

    /// What that property describes.
    pub fn of(&self, property: &str) -> Option<&Attribute> {
        self.0.get(property)
    }

    /// The part of a property that is found by going down these names.
    pub fn part(&self, property: &str, path: &[String]) -> Option<&Attribute> {
        let mut found = self.of(property)?;
        for name in path {
            let Attribute::Parts(parts) = found else { return None };
            found = parts.get(name)?;
        }
        Some(found)
    }
}

/// They follow from the texts, so hosts that have the same texts are equal.
impl PartialEq for Attributes {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Attributes {}
