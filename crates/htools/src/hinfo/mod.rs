//! `hinfo`: describes a cluster.

use crate::io::{FAILURE, Io};

/// Runs the program; returns its exit status.
pub fn run(_args: &[String], io: &mut Io<'_>) -> u8 {
    let _ = writeln!(io.err, "Error: `hinfo` is not available in this version");
    FAILURE
}
