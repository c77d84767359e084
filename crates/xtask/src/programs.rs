//! Chores that are separate programs. The code that compares, tests and measures is in crates of its own, so
//! that other chores don't have to wait for their build.

use std::env;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use chores::places;

/// A program with the name of its crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Known faults of dependencies.
    Advisories,
    /// The reference and ours on the same input.
    Differential,
    /// The leasing service as a process, and real peers.
    E2e,
    /// Cost of the programs, and quality of their answers.
    Bench,
}

impl Program {
    pub const ALL: [Self; 4] = [Self::Advisories, Self::Differential, Self::E2e, Self::Bench];

    fn name(self) -> &'static str {
        match self {
            Self::Advisories => "advisories",
            Self::Differential => "differential",
            Self::E2e => "e2e",
            Self::Bench => "bench",
        }
    }

    /// Path of the development build.
    pub fn path(self) -> PathBuf {
        places::development_build(self.name())
    }

    /// Builds the program, which takes minutes the first time.
    pub fn build(self) -> Result<()> {
        if !self.path().exists() {
            eprintln!("Building {}; the first time this takes some minutes.", self.name());
        }
        places::build(&[self.name()])
    }

    /// Builds the program, and returns a command that runs it.
    pub fn command(self) -> Result<Command> {
        self.build()?;
        Ok(Command::new(self.path()))
    }

    /// Replaces this process by the program, so that Ctrl-C reaches only that, and its exit status becomes
    /// ours. It gets our name as `argv[0]`, so that its errors are reported as `xtask`'s.
    pub fn become_it(self, words: impl IntoIterator<Item = String>) -> Result<()> {
        let mut command = self.command()?;
        command.args(words).arg0(env::args_os().next().unwrap_or_default());
        Err(command.exec()).with_context(|| format!("cannot run {command:?}"))
    }
}

pub fn build_all() -> Result<()> {
    places::build(&Program::ALL.map(Program::name))
}
