//! What a stage is: a name, how it is run, and what comes of it.

use anyhow::Result;

use crate::run::Executable;
use crate::tally::Tally;

/// What is compared.
#[derive(Clone, Debug)]
pub struct Programs {
    pub ours: Executable,
    pub reference: Executable,
}

/// What came of a stage.
#[derive(Debug)]
pub enum Outcome {
    Counted(Tally),
    /// It could not be run, and why.
    Skipped(&'static str),
}

/// How a stage is run.
#[derive(Clone, Copy)]
pub enum Check {
    /// A command that succeeds or fails.
    Command(fn() -> Result<()>),
    /// Many checks.
    Counted(fn(&Programs) -> Result<Outcome>),
    /// Many checks of the leasing service.
    Leasing(fn(&Executable) -> Result<Tally>),
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

pub const fn counted(name: &'static str, check: fn(&Programs) -> Result<Outcome>) -> Stage {
    Stage { name, check: Check::Counted(check) }
}
