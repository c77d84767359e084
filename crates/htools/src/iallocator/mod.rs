//! The iallocator protocol: the message that `hail` reads and the line that it answers.
//!
//! [`parse`] turns a message into [`ClusterData`](crate::data::ClusterData) and a [`Request`] whose names are resolved
//! already, so that whatever is wrong with a message is found before any placement is tried. The answer is a
//! [`Response`].
//!
//! Two dialects are understood: the one of Ganeti since 2.5, and protocol version 2 as Ganeti 2.1 documented
//! it, whose groups have a name and an allocation policy only, if there are any, and which asks for `multi-evacuate`.

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
