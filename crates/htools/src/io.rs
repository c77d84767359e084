//! Standard streams of a program, replaceable so that tests run programs like a shell does.

use std::io::{Read, Write};

/// Standard input, output and error.
pub struct Io<'a> {
    pub stdin: &'a mut dyn Read,
    /// Standard output, for results.
    pub out: &'a mut dyn Write,
    /// Standard error, for everything else.
    pub err: &'a mut dyn Write,
}

/// Exit status of a successful run.
pub const SUCCESS: u8 = 0;
/// Exit status for an error in the input, an option's value or the environment.
pub const FAILURE: u8 = 1;
/// Exit status for an invalid command line.
pub const USAGE: u8 = 2;
