//! The iallocator protocol: the message that `hail` reads and the line that it answers.
//!
//! [`parse`] turns a message into [`ClusterData`] and a [`Request`] whose names are resolved already, so that
//! whatever is wrong with a message is found before any placement is tried. The answer is a [`Response`].
//!
//! Two dialects are understood: the one of Ganeti since 2.5, and protocol version 2 as Ganeti 2.1 documented
//! it, whose groups have a name and an allocation policy only, if there are any, and which asks for `multi-evacuate`.

mod error;
mod groups;
mod instances;
mod legacy;
mod message;
mod nodes;
mod request;
mod respond;
#[cfg(test)]
mod tests;

pub use crate::json::Complaint;
pub use error::{Owner, ProtocolError};
pub use message::parse;
pub use request::{AllocateRequest, EvacuateMode, Request};
pub use respond::{Evacuation, Moved, Response, ResultValue, failure, success};

use crate::data::ClusterData;

/// Everything that a message says.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The cluster as it is.
    pub data: ClusterData,
    /// What is asked.
    pub request: Request,
    /// The dialect that the message is written in.
    pub dialect: Dialect,
}

/// Which dialect of the protocol a message is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Ganeti 2.5 and later; what is missing is an error.
    Current,
    /// Protocol version 2 of Ganeti 2.1; what that protocol did not have is assumed. It is recognized by a message
    /// without `nodegroups`, by groups and nodes that have nothing newer, or by a request for `multi-evacuate`.
    Version2,
}
