//! A stage of the tests: its name, and the program that runs it.

use std::path::PathBuf;

use anyhow::Result;
use chores::run::Executable;
use chores::stages::Outcome;

use crate::programs::Program;

/// The program that runs stages, and the program under test.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The running `xtask`.
    pub this: PathBuf,
    pub ours: Executable,
}

/// Kind of a stage.
#[derive(Clone, Copy)]
pub enum Check {
    /// A command that succeeds or fails.
    Command(fn() -> Result<()>),
    /// Many checks.
    Checks(fn(&Executable) -> Result<Outcome>),
    /// Many checks, run by another program that knows the stage by its name.
    Of(Program),
}

/// A part of the tests that can also run alone.
#[derive(Clone, Copy)]
pub struct Stage {
    pub name: &'static str,
    pub check: Check,
}

pub const fn command(name: &'static str, check: fn() -> Result<()>) -> Stage {
    Stage { name, check: Check::Command(check) }
}

pub const fn checks(name: &'static str, check: fn(&Executable) -> Result<Outcome>) -> Stage {
    Stage { name, check: Check::Checks(check) }
}

pub const fn of(program: Program, name: &'static str) -> Stage {
    Stage { name, check: Check::Of(program) }
}
