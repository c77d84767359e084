//! `hcheck`: says whether balancing is needed.

use crate::io::{FAILURE, Io};

/// Runs the program; returns its exit status.
pub fn run(_args: &[String], io: &mut Io<'_>) -> u8 {
    let _ = writeln!(io.err, "Error: `hcheck` is not available in this version");
    FAILURE
}
