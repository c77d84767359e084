//! The store in one SQLite file.
//!
//! There is one writer, so that commits come one after another, and a few readers beside it. The schema
//! (`migrations/`) refuses what must not be, whoever writes; what is done here is to put rows in an order in
//! which nothing that is allowed is refused, and to find words for what is.
//!
//! A commit is acknowledged when it is on the disk (write-ahead log, synchronised in full).
//!
//! Queries are checked against the schema when this crate is compiled, by what `.sqlx` says of it;
//! `cargo xtask sqlx-prepare` writes that after a change.

#![warn(clippy::print_stderr, clippy::print_stdout)]

mod archive;
mod backup;
mod changes;
mod check;
mod columns;
mod commit;
mod connection;
mod documents;
mod error;
mod expiry;
mod feed;
mod file;
mod journal;
mod load;
mod log;
mod occupancy;
mod open;
mod open_error;
mod origin;
mod power;
mod refusals;
mod size;
mod sqlite_store;
mod steps;
#[cfg(test)]
mod tests;
mod tokens;
mod usage;
mod view;
mod whole;

pub use self::backup::{BackupError, backup};
pub use self::check::{CheckError, Checked, check};
pub use self::file::open_to_others;
pub use self::open_error::OpenError;
pub use self::sqlite_store::SqliteStore;
pub use self::whole::{Staged, migrate};
