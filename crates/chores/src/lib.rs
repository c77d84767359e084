//! Shared parts of the crates of chores: `xtask`, `bench`, `e2e`, `differential` and `advisories`.
//!
//! - [`program`] and [`arguments`]: the `main` function of a program, and its command line.
//! - [`places`]: paths of the checkout and of the reference material. It builds our programs, and installs
//!   Debian packages that a chore needs.
//! - [`run`] and [`python`]: running programs. [`run::Executable`] is the program under test, ours or the
//!   reference.
//! - [`cases`] and [`tally`]: named checks, and counts of checks.
//! - [`stages`]: stages of `cargo xtask test`, also those that other programs run.
//! - [`console`], [`listening`], [`processor`], [`random`]: the web console's build, fake servers, processor
//!   times, seeded random numbers.
//!
//! A program passes its help and a dispatch function to [`program::main`]. A chore takes its options from
//! [`arguments::Arguments`] and gets the program under test from [`places::ours`], unless `--ours` names one.
//! It runs its checks with [`cases::Cases::check`] and ends with [`tally::Tally::conclude`], which fails if a
//! check failed or too little was checked.
//!
//! No crate of chores depends on a crate that it tests, so that a fault there can't hide itself;
//! `tests/independence.rs` checks that.
//!
//! To start reading, see [`cases`] and [`stages`].

pub mod arguments;
pub mod cases;
pub mod console;
pub mod listening;
pub mod places;
pub mod processor;
pub mod program;
pub mod python;
pub mod random;
pub mod run;
pub mod stages;
pub mod tally;
