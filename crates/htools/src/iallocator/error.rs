//! What can be wrong with a message. Texts begin as the reference's do; where those do not say which part of
//! the message is meant, a path in parentheses follows.

use std::fmt;

use cluster::LookupError;
use thiserror::Error;

use crate::json::Complaint;

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
