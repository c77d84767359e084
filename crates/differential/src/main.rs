//! The program of the chores that compare the reference and ours.

use std::process::ExitCode;

fn main() -> ExitCode {
    differential::main()
}
