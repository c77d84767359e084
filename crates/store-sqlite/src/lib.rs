//! A store in one SQLite file, for one service.
//!
//! There is one writer, so commits are serialized, and a few connections for reading. The triggers and
//! constraints of the schema (`migrations/`) enforce the rules for every program that writes. This crate
//! writes rows in an order in which no allowed commit is rejected, and translates rejections into
//! [`CommitError`](store::CommitError).
//!
//! ```text
//! commit ──► leases release ──► hosts and addresses come and go ──► leases take ──► revision
//! ```
//!
//! - [`SqliteStore`] is the store. A lock file next to the database keeps other services out. The lock ends
//!   with the process.
//! - [`backup()`] copies a database and [`check()`] inspects it, whether a service has it open or not.
//!   [`migrate`] updates the schema in a copy that replaces the file.
//! - [`Staged`] is a new database that appears in its place only when it is complete.
//!
//! A commit is acknowledged once it is on the disk (write-ahead log, `synchronous = FULL`), and only if the
//! files weren't replaced and the log wasn't truncated or overwritten.
//!
//! Queries are checked against the schema at compile time, with the help of `.sqlx`. Run `cargo xtask
//! sqlx-prepare` after changing a query or the schema.
//!
//! Start reading at `sqlite_store.rs` and `commit/mod.rs`.

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

pub use self::backup::{BackupError, Copied, backup};
pub use self::check::{CheckError, Checked, check};
pub use self::file::open_to_others;
pub use self::open_error::OpenError;
pub use self::sqlite_store::SqliteStore;
pub use self::whole::{Staged, migrate};
