//! What can be wrong with one value of a document. Texts begin as the reference's do.

use thiserror::Error;

/// What is wrong with one value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Complaint {
    /// Not of the JSON type that is named.
    #[error("Unable to read {0}")]
    Kind(&'static str),
    /// Neither an object nor anything else with keys.
    #[error("not an object")]
    NotObject,
    /// Not a list, where one of objects is needed.
    #[error("Invalid input, expected array but got {found}")]
    NotArray {
        /// What is there instead.
        found: String,
    },
    /// A list of names holds something else.
    #[error("Wrong JSON type")]
    NotName,
    /// Not one of the names of a type; not even a string.
    #[error("Can't parse value for '{0}': Unable to read String")]
    NotWord(&'static str),
    /// Not one of the names of a type.
    #[error("Invalid string value for type {kind}: {word:?}")]
    Word {
        /// The type.
        kind: &'static str,
        /// The string found.
        word: String,
    },
    /// An interface's mode is unknown.
    #[error("invalid NIC mode")]
    NicMode,
    /// A key is missing.
    #[error("key '{key}' not found, object contains only [{}]", quoted(present))]
    Missing {
        /// The key.
        key: &'static str,
        /// The keys that are there, in their order.
        present: Vec<String>,
    },
    /// Keys are there that must not be.
    #[error("Superfluous dictionary keys: [{}], but only [{}] allowed.", quoted(found), quoted(allowed))]
    Superfluous {
        /// Those keys.
        found: Vec<String>,
        /// The keys that may be there, sorted.
        allowed: Vec<&'static str>,
    },
    /// The value of a key is wrong.
    #[error("key '{key}': {inner}")]
    Field {
        /// The key.
        key: &'static str,
        /// What is wrong with its value.
        inner: Box<Complaint>,
    },
    /// The value of a key within an instance policy is wrong.
    #[error("Can't parse value for '{key}': {inner}")]
    PolicyField {
        /// The key.
        key: &'static str,
        /// What is wrong with its value.
        inner: Box<Complaint>,
    },
    /// An element of a list is wrong.
    #[error("{inner}")]
    Element {
        /// Its position.
        index: usize,
        /// What is wrong with it.
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

    /// Those complaints about something deeper that the reference prints without saying where.
    pub(crate) fn anonymous(&self) -> Option<&Self> {
        match self {
            Self::NotObject | Self::NotArray { .. } | Self::NotName => Some(self),
            Self::Field { key: "nics", inner } => Some(inner.innermost_field()),
            // A disk's own key stands in place of the key of the list.
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

    /// The complaint as it is printed after the owner's name.
    pub(crate) fn printed(&self) -> &Self {
        match self {
            Self::Field { inner, .. } if matches!(**inner, Self::Kind(_)) => self,
            Self::Field { key: "disks" | "ndparams" | "beparams", inner } | Self::Element { inner, .. } => {
                inner.printed()
            }
            other => other,
        }
    }

    /// The keys down to the value, for the path in a text.
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

/// Words in quotes, with commas between them.
pub(crate) fn quoted<S: AsRef<str>>(words: &[S]) -> String {
    words.iter().map(|word| format!("{:?}", word.as_ref())).collect::<Vec<_>>().join(",")
}

/// A complaint that does not know yet which object it is about.
#[derive(Debug)]
pub(crate) struct Flaw {
    /// Whether the reference leaves the object unnamed.
    pub(crate) unnamed: bool,
    /// What is wrong.
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
