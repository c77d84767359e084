//! Ganeti's placement tools: formats, options and programs, deciding with [`placement`].
//!
//! This crate reads files and sockets, prints, and submits jobs; where anything goes is decided in [`placement`].
//! Each format turns into the plain values of [`data::ClusterData`] at the edge, and each program is one module
//! with one `run` function.

pub mod commands;
pub mod data;
pub mod dynu;
pub mod environment;
mod execute;
mod frame;
pub mod hail;
pub mod harep;
pub mod hbal;
pub mod hcheck;
pub mod hinfo;
pub mod hroller;
pub mod hscan;
pub mod hspace;
pub mod hsqueeze;
mod http;
pub mod iallocator;
pub mod io;
mod json;
mod live;
pub mod luxi;
mod machine;
pub mod mond;
pub mod number;
pub mod opcode;
pub mod options;
pub mod progress;
pub mod rapi;
pub mod report;
pub mod saving;
pub mod simulate;
pub mod source;
pub mod table;
pub mod tables;
pub mod text;
pub mod units;
