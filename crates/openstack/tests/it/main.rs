//! Tests of the client with stubs of clouds.

mod cloud;
mod logging_in;
mod recorded;
mod services;
mod validating;
