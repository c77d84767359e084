//! The command line (HT-options).
//!
//! One table (module `table`) defines all options. The parser, value checks, `--help` and `--help-completion`
//! are derived from it.

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

use placement::Search;

use self::table::Flag;
use crate::io::{FAILURE, Io, SUCCESS, USAGE};

/// Early end of a program: its output and exit status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    pub stdout: String,
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

/// Parses a command line without the program's name.
///
/// Errors in syntax come first, then errors in values, then requests for help, then surplus arguments. `hail`
/// and `hscan` check their arguments themselves.
///
/// # Errors
///
/// The program must end with the output and exit status of [`Stop`], which includes requests for help.
pub fn parse(program: Program, args: &[String]) -> Result<Options, Stop> {
    parse_beside(Options::default(), program, args)
}

/// Like [`parse`], with `defaults` for options that are not given.
pub fn parse_beside(defaults: Options, program: Program, args: &[String]) -> Result<Options, Stop> {
    let line = getopt::scan(program, args);
    if !line.errors.is_empty() {
        let text = format!("Command line error: {}\n{}", line.errors, help::usage(program));
        return Err(Stop::complaint(text, USAGE));
    }
    let mut options = Options { positional: line.positional, ..defaults };
    for (flag, value) in &line.flags {
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
    if let Some(text) = without_effect(&options, &line.flags) {
        return Err(Stop::complaint(format!("Error: {text}\n"), FAILURE));
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

/// Complaint about an option of ours that the others leave without effect.
fn without_effect(options: &Options, given: &[(&Flag, Option<String>)]) -> Option<String> {
    match options.search {
        Search::Exact => {
            let (flag, _) = given.iter().find(|(flag, _)| flag.needs_deep_search())?;
            Some(format!("--{} needs --search=deep", flag.long))
        }
        Search::Deep if options.repair_only => {
            Some("--repair-only has no deep search, leave out --search=deep".to_owned())
        }
        Search::Deep => None,
    }
}

#[cfg(test)]
mod tests;

impl Stop {
    /// Prints the output and returns the exit status.
    pub fn print(&self, io: &mut Io<'_>) -> u8 {
        let printed = io.out.write_all(self.stdout.as_bytes()).and(io.err.write_all(self.stderr.as_bytes()));
        if printed.is_ok() { self.status } else { FAILURE }
    }
}
