//! `hspace`: says how many instances fit.

use crate::io::{FAILURE, Io};

/// Runs the program; returns its exit status.
pub fn run(_args: &[String], io: &mut Io<'_>) -> u8 {
    let _ = writeln!(io.err, "Error: `hspace` is not available in this version");
    FAILURE
}
