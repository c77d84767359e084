//! What a stage is: a name, and who runs it how.

use std::path::PathBuf;

use anyhow::Result;
use chores::run::Executable;
use chores::stages::Outcome;

use crate::programs::Program;

/// What runs stages, and what is tested.
#[derive(Clone, Debug)]
pub struct Programs {
    /// This one, `xtask`.
    pub this: PathBuf,
    pub ours: Executable,
}

/// How a stage is run.
#[derive(Clone, Copy)]
pub enum Check {
    /// A command that succeeds or fails.
    Command(fn() -> Result<()>),
    /// Many checks.
    Checks(fn(&Executable) -> Result<Outcome>),
    /// Many checks of another program, which knows the stage by its name.
    Of(Program),
}

/// A part of the run that can be run by itself.
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
