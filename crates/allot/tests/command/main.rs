//! The command as it is run from a shell.

mod balancing;
mod daemon;
mod execution;
mod leasing;
mod personality;
mod questions;
mod shell;
mod status;
