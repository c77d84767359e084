//! Chores that are programs of their own: what compares, tests and measures the programs is in crates of its own, which the
//! other chores do not wait for.

use std::env;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use chores::places;

/// The program of a crate, which has the crate's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Known faults of dependencies.
    Advisories,
    /// The reference and ours on the same input.
    Differential,
    /// The leasing service as a process, real peers.
    E2e,
    /// What the programs cost.
    Bench,
}

impl Program {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Advisories, Self::Differential, Self::E2e, Self::Bench];

    fn name(self) -> &'static str {
        match self {
            Self::Advisories => "advisories",
            Self::Differential => "differential",
            Self::E2e => "e2e",
            Self::Bench => "bench",
        }
    }

    /// Where it is once it is built.
    pub fn path(self) -> PathBuf {
        places::development_build(self.name())
    }

    /// Builds it, which takes minutes the first time.
    pub fn build(self) -> Result<()> {
        if !self.path().exists() {
            eprintln!("Building {}; the first time this takes some minutes.", self.name());
        }
        places::build(&[self.name()])
    }

    /// Runs it, built from what is there.
    pub fn command(self) -> Result<Command> {
        self.build()?;
        Ok(Command::new(self.path()))
    }

    /// Becomes it, so that Ctrl-C reaches it and nobody else, and its exit status is ours. It is called as we are, so that
    /// its errors are `xtask`'s.
    pub fn become_it(self, words: impl IntoIterator<Item = String>) -> Result<()> {
        let mut command = self.command()?;
        command.args(words).arg0(env::args_os().next().unwrap_or_default());
        Err(command.exec()).with_context(|| format!("cannot run {command:?}"))
    }
}

/// Builds all of them.
pub fn build_all() -> Result<()> {
    places::build(&Program::ALL.map(Program::name))
}
