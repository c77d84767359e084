//! Ganeti's htools: formats, options and programs around the decisions in [`placement`].
//!
//! Programs read a cluster from a file, from Ganeti's daemons or from a description of a simulated cluster,
//! and print or save results in the reference's formats. `hbal`, `hsqueeze` and `harep` can also submit jobs
//! to a master daemon. Decisions, such as the choice of a node, are made in [`placement`].
//!
//! ```text
//! text, iallocator, simulate ─┐
//! rapi, luxi ─────────────────┴─► ClusterData ──load──► Cluster ──placement──► moves ──► lines, files, jobs
//! ```
//!
//! - [`options`] defines the command lines of all programs in one table, from which parser and help are
//!   derived.
//! - [`source`] turns options into a cluster. Every format yields [`data::ClusterData`], the plain values
//!   that `cluster` loads.
//! - Each program is a module with a `run` function that returns the exit status: [`hail`] answers placement
//!   requests ([`iallocator`]), [`hbal`] balances a group, [`harep`] repairs instances, [`hspace`] computes
//!   capacity, [`hcheck`] and [`hinfo`] report on a cluster, [`hroller`] schedules reboots, [`hsqueeze`]
//!   finds nodes to power off, and [`hscan`] saves clusters.
//! - [`commands`] prints shell commands for moves, and [`opcode`] has the operations of jobs.
//!
//! Programs use only the standard streams in [`io::Io`], so that tests run them like a shell does. There are
//! two exceptions: the answer to a signal while jobs run, and the progress line on a terminal.
//!
//! Start reading at [`hbal`], then follow [`source::load`].

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
