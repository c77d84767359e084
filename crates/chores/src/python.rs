//! Third-party programs written in Python, in virtual environments under the target directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::places;

/// Packages for stages of `cargo xtask test`, with pinned versions: stock clients, gabbi and schemathesis,
/// and for the message bus the library that OpenStack's services read notifications with. They are in this
/// crate because they are installed before the first stage runs, by a program that has none of the stages.
const REQUIREMENTS: &str = include_str!("../python/requirements.txt");
const MESSAGE_BUS: &str = include_str!("../python/message_bus.txt");

/// A virtual environment.
#[derive(Clone, Debug)]
pub struct Python {
    directory: PathBuf,
}

impl Python {
    /// The environment for stages of `cargo xtask test`.
    pub fn ready() -> Result<Self> {
        Self::with("python", REQUIREMENTS)
    }

    /// The environment for the stage `message bus`.
    pub fn for_message_bus() -> Result<Self> {
        Self::with("message-bus", MESSAGE_BUS)
    }

    /// An environment with these packages. It is created if it doesn't exist or has other requirements.
    pub fn with(name: &str, requirements: &str) -> Result<Self> {
        let python = Self { directory: places::target().join(name) };
        let stamp = python.directory.join("requirements.txt");
        if fs::read_to_string(&stamp).is_ok_and(|made_for| made_for == requirements) {
            return Ok(python);
        }
        python.make(requirements)?;
        // Last, so that an interrupted installation is repeated.
        fs::write(&stamp, requirements).with_context(|| format!("cannot write {}", stamp.display()))?;
        Ok(python)
    }

    /// A program of the environment, shielded from the caller's settings.
    pub fn program(&self, name: &str, home: &Path) -> Command {
        let mut command = Command::new(self.directory.join("bin").join(name));
        command.env_clear().env("HOME", home).current_dir(home);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("LC_ALL", "C.UTF-8").env("COLUMNS", "200").env("PYTHONWARNINGS", "ignore");
        command.stdin(Stdio::null());
        command
    }

    fn make(&self, requirements: &str) -> Result<()> {
        places::need_program("python3", "python3")?;
        if self.directory.exists() {
            fs::remove_dir_all(&self.directory)
                .with_context(|| format!("cannot remove {}", self.directory.display()))?;
        }
        println!("installing Python packages in {}", self.directory.display());
        let made = Command::new("python3").args(["-m", "venv"]).arg(&self.directory).output();
        let made = made.context("cannot run python3")?;
        if !made.status.success() {
            let said = String::from_utf8_lossy(&made.stdout);
            let said = last_line(&said);
            bail!("python3 cannot make an environment (Debian: apt-get install python3-venv): {said}");
        }
        let wanted = self.directory.join("wanted.txt");
        fs::write(&wanted, requirements).with_context(|| format!("cannot write {}", wanted.display()))?;
        let mut install = Command::new(self.directory.join("bin/pip"));
        install.args(["install", "--quiet", "--disable-pip-version-check", "--requirement"]).arg(&wanted);
        let installed = install.output().context("cannot run pip of the new environment")?;
        if !installed.status.success() {
            let said = String::from_utf8_lossy(&installed.stderr);
            bail!("Python packages could not be installed from the registry: {}", last_line(&said));
        }
        Ok(())
    }
}

/// Last line that isn't empty.
fn last_line(text: &str) -> &str {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no reason given")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_requirement_is_held_fast() {
        let lines = REQUIREMENTS
            .lines()
            .chain(MESSAGE_BUS.lines())
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        for line in lines {
            let (name, version) = line.split_once("==").unwrap_or_default();
            assert!(!name.is_empty() && version.starts_with(|c: char| c.is_ascii_digit()), "{line}");
        }
    }

    #[test]
    fn the_reason_of_a_failure_is_its_last_line() {
        assert_eq!(last_line("WARNING: a\nERROR: no network\n\n"), "ERROR: no network");
        assert_eq!(last_line("\n"), "no reason given");
    }
}
