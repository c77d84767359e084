//! What all programs do alike: read the command line, run, say what went wrong.

use std::fmt::Display;
use std::io::ErrorKind;

use crate::environment;
use crate::io::{FAILURE, Io};
use crate::options::{self, Options, Program};

/// Runs a program; returns the exit status, which `body` does too.
///
/// An error is told, unless `unread` says that standard output cannot be written: that is for whoever made the stream
/// to tell, since it may become known only when the stream is flushed.
pub(crate) fn run<E: Display>(
    program: Program,
    args: &[String],
    io: &mut Io<'_>,
    body: impl FnOnce(&Options, &mut Io<'_>) -> Result<u8, E>,
    unread: impl FnOnce(&E) -> bool,
) -> u8 {
    let rule = environment::initial_n1();
    let mut defaults = Options::default();
    if let Ok(Some(rule)) = rule {
        defaults.n1_initial = rule;
    }
    let options = match options::parse_beside(defaults, program, args) {
        Ok(options) => options,
        Err(stop) => return stop.print(io),
    };
    // Told only now: it does not keep anybody from reading the help.
    if let Err(error) = rule {
        let _ = writeln!(io.err, "Error: {error}");
        return FAILURE;
    }
    placement::limit_threads(options.threads);
    let status = body(&options, io).unwrap_or_else(|error| {
        if !unread(&error) {
            let _ = writeln!(io.err, "Error: {error}");
        }
        FAILURE
    });
    // What `hcheck` found, for one, is no answer unless it can be read.
    match io.out.flush() {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => FAILURE,
        _ => status,
    }
}
