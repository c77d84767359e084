//! The reservation API on the wire, as its clients know it.
//!
//! Types here are written and read as JSON and are nothing else: requests are read leniently where clients are
//! known to be sloppy and strictly everywhere else, then turned into the domain's terms; answers are made from
//! the store's records. Section numbers refer to the specification of the leasing side.

#![warn(clippy::print_stderr, clippy::print_stdout)]

pub mod v1;
