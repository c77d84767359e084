//! Errors in single values of a document. Texts begin like the reference's.

use thiserror::Error;

/// Error in a value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Complaint {
    /// Not of the named JSON type.
    #[error("Unable to read {0}")]
    Kind(&'static str),
    /// Not an object.
    #[error("not an object")]
    NotObject,
    /// Not a list, where a list of objects is expected.
    #[error("Invalid input, expected array but got {found}")]
    NotArray {
        /// The value found, as the reference prints it.
        found: String,
    },
    /// An element of a list of names isn't a string.
    #[error("Wrong JSON type")]
    NotName,
    /// Not a string, where one of a type's names is expected.
    #[error("Can't parse value for '{0}': Unable to read String")]
    NotWord(&'static str),
    /// A string that isn't one of a type's names.
    #[error("Invalid string value for type {kind}: {word:?}")]
    Word { kind: &'static str, word: String },
    /// Unknown mode of a network interface.
    #[error("invalid NIC mode")]
    NicMode,
    #[error("key '{key}' not found, object contains only [{}]", quoted(present))]
    Missing {
        key: &'static str,
        /// Keys of the object, in their order.
        present: Vec<String>,
    },
    /// The object has keys that aren't allowed.
    #[error("Superfluous dictionary keys: [{}], but only [{}] allowed.", quoted(found), quoted(allowed))]
    Superfluous {
        /// The disallowed keys, sorted.
        found: Vec<String>,
        /// The allowed keys, sorted.
        allowed: Vec<&'static str>,
    },
    /// Invalid value of a key.
    #[error("key '{key}': {inner}")]
    Field { key: &'static str, inner: Box<Complaint> },
    /// Invalid value of a key in an instance policy.
    #[error("Can't parse value for '{key}': {inner}")]
    PolicyField { key: &'static str, inner: Box<Complaint> },
    /// Invalid element of a list.
    #[error("{inner}")]
    Element {
        /// Position, from 0.
        index: usize,
        inner: Box<Complaint>,
    },
}

impl Complaint {
    pub(crate) fn missing(key: &'static str) -> Self {
        Self::Missing { key, present: Vec::new() }
    }

    pub(crate) fn not_array() -> Self {
        Self::NotArray { found: String::new() }
    }

    pub(crate) fn field(key: &'static str, inner: Self) -> Self {
        Self::Field { key, inner: Box::new(inner) }
    }

    /// The inner complaint, if the reference prints it without its location.
    pub(crate) fn anonymous(&self) -> Option<&Self> {
        match self {
            Self::NotObject | Self::NotArray { .. } | Self::NotName => Some(self),
            Self::Field { key: "nics", inner } => Some(inner.innermost_field()),
            // The key of a disk replaces the key of the list.
            Self::Field { inner, .. } | Self::Element { inner, .. } => inner.anonymous(),
            _ => None,
        }
    }

    pub(crate) fn innermost_field(&self) -> &Self {
        match self {
            Self::Element { inner, .. } => inner.innermost_field(),
            other => other,
        }
    }

    /// The part of the complaint that is printed after the owner's name.
    pub(crate) fn printed(&self) -> &Self {
        match self {
            Self::Field { inner, .. } if matches!(**inner, Self::Kind(_)) => self,
            Self::Field { key: "disks" | "ndparams" | "beparams", inner } | Self::Element { inner, .. } => {
                inner.printed()
            }
            other => other,
        }
    }

    /// Appends the keys and positions that lead to the value.
    pub(crate) fn trail(&self, path: &mut String) {
        match self {
            Self::Field { key, inner } | Self::PolicyField { key, inner } => {
                push_step(path, key);
                inner.trail(path);
            }
            Self::Element { index, inner } => {
                push_step(path, &index.to_string());
                inner.trail(path);
            }
            _ => {}
        }
    }
}

fn push_step(path: &mut String, step: &str) {
    if !path.is_empty() {
        path.push('/');
    }
    path.push_str(step);
}

/// Quoted words, separated by commas.
pub(crate) fn quoted<S: AsRef<str>>(words: &[S]) -> String {
    words.iter().map(|word| format!("{:?}", word.as_ref())).collect::<Vec<_>>().join(",")
}

/// A complaint whose object isn't known yet.
#[derive(Debug)]
pub(crate) struct Flaw {
    /// Whether the reference omits the object's name.
    pub(crate) unnamed: bool,
    pub(crate) complaint: Complaint,
}

impl Flaw {
    pub(crate) fn unnamed(mut self) -> Self {
        self.unnamed = true;
        self
    }
}

impl From<Complaint> for Flaw {
    fn from(complaint: Complaint) -> Self {
        Self { unnamed: false, complaint }
    }
}
