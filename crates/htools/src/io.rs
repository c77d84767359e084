//! The standard streams of a program, so that programs run in tests as they run in a shell.

use std::io::{Read, Write};

/// Standard input, output and error.
pub struct Io<'a> {
    /// Standard input.
    pub stdin: &'a mut dyn Read,
    /// Results.
    pub out: &'a mut dyn Write,
    /// Everything else.
    pub err: &'a mut dyn Write,
}

/// Exit status: success.
pub const SUCCESS: u8 = 0;
/// Exit status: the input, an option's value or the environment is wrong.
pub const FAILURE: u8 = 1;
/// Exit status: the command line is wrong.
pub const USAGE: u8 = 2;
