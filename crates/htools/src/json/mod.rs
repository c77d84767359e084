//! JSON as Ganeti writes it, in requests and in documents of its remote API.
//!
//! This crate has its own reader because error texts name keys, the order of keys matters, and requests are
//! large (see [`cursor`]).

mod complaint;
mod cursor;
mod hashing;
mod keys;
mod policy;
mod read;
pub(crate) mod write;

pub use complaint::Complaint;
pub(crate) use complaint::{Flaw, quoted};
pub(crate) use cursor::{Cursor, Syntax};
pub(crate) use hashing::Hashing;
pub(crate) use keys::{Step, complete};
pub(crate) use policy::Hypervisor;
pub(crate) use read::{
    Both, Dict, Json, Read, Record, Slot, document, each, fill, fill_record, from_value, json_record, record,
};
