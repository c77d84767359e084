//! Common frame of all programs: reads the command line, runs the program, reports errors.

use std::fmt::Display;
use std::io::ErrorKind;

use crate::environment;
use crate::io::{FAILURE, Io};
use crate::options::{self, Options, Program};

/// Runs a program and returns its exit status, which is that of `body` unless an error occurs.
///
/// The error is printed, unless `unread` returns true because standard output cannot be written. The creator
/// of the stream reports that case, because it can surface as late as the final flush.
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
    // Reported only now, so that `--help` works with an invalid setting.
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
    // A status such as that of `hcheck` is only valid if the output was written.
    match io.out.flush() {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => FAILURE,
        _ => status,
    }
}
