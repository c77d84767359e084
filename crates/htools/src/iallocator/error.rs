//! Errors in messages. Texts begin like the reference's. If those don't say which part of the message is
//! wrong, a path in parentheses follows.

use std::fmt;

use cluster::LookupError;
use thiserror::Error;

use crate::json::Complaint;

/// Error in a message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// Not JSON, or not an object.
    #[error("Parsing input IAllocator message: {0}")]
    Syntax(String),
    /// A value is missing or invalid.
    #[error("{}", data_text(owner, path, complaint))]
    Data {
        owner: Owner,
        /// Path of the object, such as `nodes/NAME`; empty for the message itself.
        path: String,
        complaint: Complaint,
    },
    /// A node's group is not listed.
    #[error("Unknown group '{group}' for node {node}")]
    UnknownGroup {
        /// The group's UUID as given.
        group: String,
        node: String,
    },
    /// An instance's node is not listed.
    #[error("Unknown node '{node}' for instance {instance}")]
    UnknownNode {
        /// The node's name as given.
        node: String,
        instance: String,
    },
    /// An instance's list of nodes is empty.
    #[error("empty node list for instance {0}")]
    NoNodes(String),
    /// The request names an instance that is not listed.
    #[error("Unknown instance '{0}'")]
    UnknownInstance(String),
    /// The request names a record that doesn't exist, or several.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    #[error("Invalid request type '{0}'")]
    RequestType(String),
}

/// The object with the invalid value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    Message,
    Request,
    /// A group, by UUID.
    Group(String),
    /// A node, by name.
    Node(String),
    /// An existing or requested instance, by name.
    Instance(String),
    /// Omitted from the text: only the path locates the value.
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
