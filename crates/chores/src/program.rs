//! How a program of chores begins and ends: with its help, and with an error in one line.

use std::env;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use crate::arguments::Arguments;

/// Does what the command line says, or prints the help.
pub fn main(help: &str, dispatch: impl FnOnce(Arguments) -> Result<()>) -> ExitCode {
    let mut words = env::args();
    // As whoever started it calls it: it may do the chores of another program.
    let name = words.next().unwrap_or_default();
    let mut arguments = Arguments::new(words);
    if arguments.switch("--help") || arguments.switch("-h") {
        print!("{help}");
        return ExitCode::SUCCESS;
    }
    match dispatch(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let name = Path::new(&name).file_name().unwrap_or_default();
            eprintln!("{}: {error:#}", name.display());
            ExitCode::FAILURE
        }
    }
}
