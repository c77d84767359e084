//! The program of the chores `leasing`, `lab` and `soak leases`.

use std::process::ExitCode;

fn main() -> ExitCode {
    e2e::main()
}
