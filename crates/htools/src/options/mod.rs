//! The command line (HT-options).
//!
//! One table (module `table`) says which options there are; the parser, the checks of values, `--help` and
//! `--help-completion` all come from it.

mod getopt;
mod help;
mod program;
mod settings;
mod table;
mod values;

pub use help::{OptionHelp, described, version_text};
pub use program::Program;
pub use settings::Options;
pub(crate) use values::initial_n1;
pub use values::{AllocSpec, FieldSelection, LuxiSocket, PrintCommands, Priority, ValueError};

use crate::io::{FAILURE, Io, SUCCESS, USAGE};

/// The program ends before it has begun: what to print, and how to exit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// For standard output.
    pub stdout: String,
    /// For standard error.
    pub stderr: String,
    /// Exit status.
    pub status: u8,
}

impl Stop {
    fn answer(stdout: String) -> Self {
        Self { stdout, stderr: String::new(), status: SUCCESS }
    }

    fn complaint(stderr: String, status: u8) -> Self {
        Self { stdout: String::new(), stderr, status }
    }
}

/// Reads a command line (without the program's name).
///
/// Mistakes in syntax come first, then mistakes in values, then requests for help, then arguments where none
/// are taken. The arguments of `hail` and `hscan` are theirs to check.
pub fn parse(program: Program, args: &[String]) -> Result<Options, Stop> {
    parse_beside(Options::default(), program, args)
}

/// As [`parse`], with these values for options that are not given.
pub fn parse_beside(defaults: Options, program: Program, args: &[String]) -> Result<Options, Stop> {
    let line = getopt::scan(program, args);
    if !line.errors.is_empty() {
        let text = format!("Command line error: {}\n{}", line.errors, help::usage(program));
        return Err(Stop::complaint(text, USAGE));
    }
    let mut options = Options { positional: line.positional, ..defaults };
    for (flag, value) in line.flags {
        (flag.effect)(&mut options, value.as_deref()).map_err(|error| {
            let text = format!("Error while parsing command line arguments:\n{error}\n");
            Stop::complaint(text, FAILURE)
        })?;
    }
    if options.help {
        return Err(Stop::answer(help::usage(program)));
    }
    if options.version {
        return Err(Stop::answer(help::version(program)));
    }
    if options.help_completion {
        return Err(Stop::answer(help::completion(program)));
    }
    match program {
        Program::Hail | Program::Hscan => {}
        _ if options.positional.is_empty() => {}
        Program::Harep => {
            let text = "Error: this program doesn't take any arguments.\n".to_owned();
            return Err(Stop::complaint(text, FAILURE));
        }
        _ => {
            let text = "Error: This program doesn't take any arguments.\n".to_owned();
            return Err(Stop::complaint(text, FAILURE));
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests;

impl Stop {
    /// Prints it; returns the exit status.
    pub fn print(&self, io: &mut Io<'_>) -> u8 {
        let printed = io.out.write_all(self.stdout.as_bytes()).and(io.err.write_all(self.stderr.as_bytes()));
        if printed.is_ok() { self.status } else { FAILURE }
    }
}
