//! What can be wrong with a message. Texts begin as the reference's do; where those do not say which part of
//! the message is meant, a path in parentheses follows.

use std::fmt;

use cluster::LookupError;
use thiserror::Error;

/// Why a message cannot be answered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// Not JSON, or not an object.
    #[error("Parsing input IAllocator message: {0}")]
    Syntax(String),
    /// A value is missing or is not what it should be.
    #[error("{}", data_text(owner, path, complaint))]
    Data {
        /// The object that holds the value.
        owner: Owner,
        /// Where the object is, as `nodes/NAME`; empty for the message itself.
        path: String,
        /// What is wrong in it.
        complaint: Complaint,
    },
    /// A node is in a group that is not listed.
    #[error("Unknown group '{group}' for node {node}")]
    UnknownGroup {
        /// The group's UUID as given.
        group: String,
        /// The node.
        node: String,
    },
    /// An instance is on a node that is not listed.
    #[error("Unknown node '{node}' for instance {instance}")]
    UnknownNode {
        /// The node's name as given.
        node: String,
        /// The instance.
        instance: String,
    },
    /// An instance is on no node.
    #[error("empty node list for instance {0}")]
    NoNodes(String),
    /// The request names an instance that is not listed.
    #[error("Unknown instance '{0}'")]
    UnknownInstance(String),
    /// The request names something that does not exist, or exists more than once.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// The request's type is none of those defined.
    #[error("Invalid request type '{0}'")]
    RequestType(String),
}

/// The object that a bad value was found in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The message itself.
    Message,
    /// The request.
    Request,
    /// The group of that UUID.
    Group(String),
    /// The node of that name.
    Node(String),
    /// The instance of that name, existing or requested.
    Instance(String),
    /// Not named in the text; only the path says where.
    Unnamed,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message => f.write_str("invalid iallocator message: "),
            Self::Request => f.write_str("invalid request dict: "),
            Self::Group(uuid) => write!(f, "invalid data for group '{uuid}': "),
            Self::Node(name) => write!(f, "invalid data for node '{name}': "),
            Self::Instance(name) => write!(f, "invalid data for instance '{name}': "),
            Self::Unnamed => Ok(()),
        }
    }
}

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
    #[error("Invalid input, expected array")]
    NotArray,
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
    pub(super) fn missing(key: &'static str) -> Self {
        Self::Missing { key, present: Vec::new() }
    }

    pub(super) fn field(key: &'static str, inner: Self) -> Self {
        Self::Field { key, inner: Box::new(inner) }
    }

    /// Those complaints about something deeper that the reference prints without saying where.
    fn anonymous(&self) -> Option<&Self> {
        match self {
            Self::NotObject | Self::NotArray | Self::NotName => Some(self),
            Self::Field { key: "nics", inner } => Some(inner.innermost_field()),
            // A disk's own key stands in place of the key of the list.
            Self::Field { inner, .. } | Self::Element { inner, .. } => inner.anonymous(),
            _ => None,
        }
    }

    fn innermost_field(&self) -> &Self {
        match self {
            Self::Element { inner, .. } => inner.innermost_field(),
            other => other,
        }
    }

    /// The complaint as it is printed after the owner's name.
    fn printed(&self) -> &Self {
        match self {
            Self::Field { key: "disks" | "ndparams", inner } | Self::Element { inner, .. } => inner.printed(),
            other => other,
        }
    }

    /// The keys down to the value, for the path in a text.
    fn trail(&self, path: &mut String) {
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

fn data_text(owner: &Owner, path: &str, complaint: &Complaint) -> String {
    if let (Owner::Instance(name), Complaint::Field { key: "nics", inner }) = (owner, complaint)
        && *inner.innermost_field() == Complaint::NicMode
    {
        return format!("invalid NIC mode in instance {name}");
    }
    let mut full = path.to_owned();
    complaint.trail(&mut full);
    match complaint.anonymous() {
        Some(inner) => format!("{inner} ({full})"),
        None if *owner == Owner::Unnamed => format!("{} ({full})", complaint.printed()),
        None => format!("{owner}{}", complaint.printed()),
    }
}

fn quoted<S: AsRef<str>>(keys: &[S]) -> String {
    keys.iter().map(|k| format!("{:?}", k.as_ref())).collect::<Vec<_>>().join(",")
}

/// A complaint that does not know yet which object it is about.
#[derive(Debug)]
pub(super) struct Flaw {
    /// Whether the reference leaves the object unnamed.
    pub(super) unnamed: bool,
    /// What is wrong.
    pub(super) complaint: Complaint,
}

impl Flaw {
    pub(super) fn unnamed(mut self) -> Self {
        self.unnamed = true;
        self
    }
}

impl From<Complaint> for Flaw {
    fn from(complaint: Complaint) -> Self {
        Self { unnamed: false, complaint }
    }
}
