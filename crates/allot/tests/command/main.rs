//! Tests of the command as it's run from a shell.

mod access;
mod balancing;
mod checks;
mod daemon;
mod databases;
mod dead_nodes;
mod documents;
mod execution;
mod first_minutes;
mod hostile_service;
mod killed;
mod leasing;
mod log;
mod negotiating;
mod output;
mod people;
mod personality;
mod placement;
mod questions;
mod reload;
mod service;
mod shell;
mod status;
mod users;
mod verbs;
