//! The program of the chores that compare the reference with ours.

use std::process::ExitCode;

fn main() -> ExitCode {
    differential::main()
}
