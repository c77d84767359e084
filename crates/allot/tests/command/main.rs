//! The command as it is run from a shell.

mod balancing;
mod personality;
mod shell;
mod status;
