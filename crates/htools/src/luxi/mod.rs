//! Ganeti's local protocol: JSON messages over a Unix socket, each ended by one byte (formats spec §3.3).
//!
//! [`Client`] is one connection. What is asked over it is in the modules of those who ask.

mod client;

pub use client::{Client, LuxiError};
