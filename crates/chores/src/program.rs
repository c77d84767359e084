//! The `main` function of a program of chores: prints its help, and errors as one line.

use std::env;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use crate::arguments::Arguments;

/// Prints the help if it is requested, otherwise runs `dispatch`.
pub fn main(help: &str, dispatch: impl FnOnce(Arguments) -> Result<()>) -> ExitCode {
    let mut words = env::args();
    // The name that the caller used: this program can run chores for another one, `xtask`.
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
