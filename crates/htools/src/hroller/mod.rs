//! `hroller`: groups nodes that may be rebooted together.

use crate::io::{FAILURE, Io};

/// Runs the program; returns its exit status.
pub fn run(_args: &[String], io: &mut Io<'_>) -> u8 {
    let _ = writeln!(io.err, "Error: `hroller` is not available in this version");
    FAILURE
}
