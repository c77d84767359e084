//! The iallocator protocol: the message that `hail` reads and the line that it prints.
//!
//! [`parse`] turns a message into [`ClusterData`](crate::data::ClusterData) and a [`Request`] with resolved
//! names, so errors in a message are found before any placement is tried. The answer is a [`Response`].
//!
//! Two dialects are supported: Ganeti's since 2.5, and protocol version 2 as documented by Ganeti 2.1. In
//! version 2, groups are optional and have only a name and an allocation policy, and there is a
//! `multi-evacuate` request.

mod dialect;
mod error;
mod groups;
mod instances;
mod legacy;
mod message;
mod nodes;
mod reader;
mod request;
mod respond;
#[cfg(test)]
mod tests;

pub use crate::json::Complaint;
pub use dialect::Dialect;
pub use error::{Owner, ProtocolError};
pub use message::{Message, parse};
pub use request::{AllocateRequest, EvacuateMode, Request};
pub use respond::{Evacuation, Moved, Response, ResultValue, failure, success};
