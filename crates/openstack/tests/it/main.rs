//! The client with clouds that only pretend.

mod cloud;
mod logging_in;
mod recorded;
mod services;
mod validating;
