//! The store in PostgreSQL, for any number of services that share it.
//!
//! The schema (`migrations/`) refuses what must not be, whoever writes; what is done here is to take locks in an
//! order in which nobody waits forever, to put rows in an order in which nothing that is allowed is refused, and
//! to find words for what is. A transaction that was in the way of another, or whose connection broke before it
//! was to be committed, is tried again a few times.
//!
//! Of several servers, the one that takes writes is used ([`Servers`]); which one that is may change.
//!
//! Queries are checked against the schema when this crate is compiled, by what `.sqlx` says of it;
//! `cargo xtask sqlx-prepare` writes that after a change.

#![warn(clippy::print_stderr, clippy::print_stdout)]

mod archive;
mod attempt;
mod changes;
mod columns;
mod commit;
mod documents;
mod error;
mod expiry;
mod feed;
mod hints;
mod journal;
mod load;
mod occupancy;
mod open;
mod pool;
mod postgres_store;
mod power;
mod refusals;
mod servers;
mod size;
mod steps;
mod tokens;
mod usage;

pub use self::open::{OpenError, SchemaState};
pub use self::postgres_store::PostgresStore;
pub use self::servers::{AddressError, NoServer, Servers};
