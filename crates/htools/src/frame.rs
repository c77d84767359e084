//! What all programs do alike: read the command line, run, say what went wrong.

use std::fmt::Display;

use crate::io::{FAILURE, Io};
use crate::options::{self, Options, Program};

/// Runs a program; returns the exit status, which `body` does too.
///
/// An error is told, unless `unread` says that it is the reader who went away: then nobody is left to tell.
pub(crate) fn run<E: Display>(
    program: Program,
    args: &[String],
    io: &mut Io<'_>,
    body: impl FnOnce(&Options, &mut Io<'_>) -> Result<u8, E>,
    unread: impl FnOnce(&E) -> bool,
) -> u8 {
    let options = match options::parse(program, args) {
        Ok(options) => options,
        Err(stop) => return stop.print(io),
    };
    placement::limit_threads(options.threads);
    body(&options, io).unwrap_or_else(|error| {
        if !unread(&error) {
            let _ = writeln!(io.err, "Error: {error}");
        }
        FAILURE
    })
}
