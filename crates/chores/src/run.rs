//! Running programs: the program under test, ours or the reference, and commands that must succeed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// An executable that acts as all of Ganeti's tools.
#[derive(Clone, Debug)]
pub struct Executable {
    pub path: PathBuf,
    /// Options that precede all others.
    pub extra: Vec<String>,
}

impl Executable {
    /// `path` can be relative. It is made absolute, because the program is run in other directories.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let given = path.into();
        Self { path: std::path::absolute(&given).unwrap_or(given), extra: Vec::new() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A command that acts as `program`: selected by a subcommand for `allot`, otherwise by the variable
    /// `HTOOLS`.
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

/// Writes a file. An error names its path.
pub fn write(path: &Path, content: &[u8]) -> Result<()> {
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

/// Runs a command with inherited streams. It must exit successfully.
pub fn must_run(command: &mut Command) -> Result<()> {
    let described = format!("{command:?}");
    let status = command.status().with_context(|| format!("cannot run {described}"))?;
    if !status.success() {
        bail!("{described} failed ({status})");
    }
    Ok(())
}

/// Runs a command and returns its standard output. It must exit successfully.
pub fn output_of(command: &mut Command) -> Result<String> {
    let described = format!("{command:?}");
    let output = command.output().with_context(|| format!("cannot run {described}"))?;
    if !output.status.success() {
        bail!("{described} failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
