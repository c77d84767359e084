//! Running programs: the reference and ours under one name or another, and commands that must succeed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// An executable that plays the programs.
#[derive(Clone, Debug)]
pub struct Executable {
    /// Where it is.
    pub path: PathBuf,
    /// Options that go before all others.
    pub extra: Vec<String>,
}

impl Executable {
    /// The executable at `path`, which may be relative: it is run in other directories.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let given = path.into();
        Self { path: std::path::absolute(&given).unwrap_or(given), extra: Vec::new() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A command that plays `program`: by subcommand if it is `allot`, else by the `HTOOLS` variable.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(&self.path);
        if self.path.file_stem().is_some_and(|name| name == "allot") {
            command.arg(program).env_remove("HTOOLS");
        } else {
            command.env("HTOOLS", program);
        }
        command.env("LC_ALL", "C.UTF-8").args(&self.extra);
        command
    }
}

/// Writes a file, naming it if that fails.
pub fn write(path: &Path, content: &[u8]) -> Result<()> {
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

/// Runs a command with inherited streams; an error if it fails.
pub fn must_run(command: &mut Command) -> Result<()> {
    let described = format!("{command:?}");
    let status = command.status().with_context(|| format!("cannot run {described}"))?;
    if !status.success() {
        bail!("{described} failed ({status})");
    }
    Ok(())
}

/// Runs a command and returns what it printed; an error if it fails.
pub fn output_of(command: &mut Command) -> Result<String> {
    let described = format!("{command:?}");
    let output = command.output().with_context(|| format!("cannot run {described}"))?;
    if !output.status.success() {
        bail!("{described} failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
