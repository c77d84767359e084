//! The reservation API on the wire: bodies of requests and answers as Blazar's clients know them, in JSON.
//!
//! - [`v1`] is the only version so far, which is Blazar's.
//! - [`v1::LeaseRequest`], [`v1::LeaseUpdate`] and the other types named `…Request` read bodies of requests.
//!   They are lenient where clients are known to be sloppy, and strict everywhere else.
//! - [`v1::Lease`], [`v1::Host`] and the other types of answers are made from the store's records.
//! - [`v1::body`] has the bodies that `openapi.json` describes. Our own command uses them as a client. A test
//!   compares their fields with those that the readers accept.
//! - [`v1::RequestError`] has Blazar's texts and statuses, and a hint where a text doesn't help enough.
//! - [`v1::Limits`] has the operator's limits for the parts of a request.
//!
//! For `POST /leases`, the server checks the size of the body's parts with [`v1::Limits::check`].
//! [`v1::LeaseRequest::read`] turns the body into the domain's terms, from the crate `leases`. The service
//! admits and stores the lease, and its record becomes a [`v1::Lease`] for the answer.
//!
//! A client can always send back a lease as it read it: fields with unchanged values are ignored. Unknown
//! fields are rejected, except in reservations. There they are ignored, as in Blazar.
//!
//! Identifiers such as API-lease, CLS-10 or W8 are explained in `docs/reference/features.md`. Start reading
//! at `v1/lease_request.rs`, and at `v1/fields.rs` for the rules that all readers share.

#![warn(clippy::print_stderr, clippy::print_stdout)]

pub mod v1;
