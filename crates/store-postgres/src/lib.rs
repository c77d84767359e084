//! A store in PostgreSQL, for any number of services that share it.
//!
//! The triggers and constraints of the schema (`migrations/`) enforce the rules for every program that
//! writes. This crate takes locks in an order that prevents deadlocks, writes rows in an order in which no
//! allowed commit is rejected, and translates rejections into [`CommitError`](store::CommitError).
//! Transactions are retried a few times if they collide, or if the connection breaks before the commit.
//!
//! ```text
//! lock request key, leases, hosts, addresses ──► leases release ──► hosts and addresses come and go
//!     ──► leases take ──► revision (one row, so commits take turns) ──► NOTIFY ──► other services
//! ```
//!
//! - [`PostgresStore`] is the store. [`PostgresStore::open`] also updates the schema.
//! - [`Servers`] is the address of one or several servers. The store uses the server that takes writes, and
//!   follows when that changes.
//!
//! Revisions become visible in order, so a service that has read one has seen all changes before it.
//!
//! Queries are checked against the schema at compile time, with the help of `.sqlx`. Run `cargo xtask
//! sqlx-prepare` after changing a query or the schema.
//!
//! Start reading at `postgres_store.rs` and `commit/mod.rs`.

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
