//! The two stock shells. They have the same commands under different names.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::leasing::python::Python;

/// A stock shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `blazar lease-create`
    Blazar,
    /// `openstack reservation lease create`
    OpenStack,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Blazar, Self::OpenStack];

    /// The program.
    pub fn program(self) -> &'static str {
        match self {
            Self::Blazar => "blazar",
            Self::OpenStack => "openstack",
        }
    }

    /// A command's words, from `blazar`'s name for it.
    fn words(self, command: &str) -> Vec<String> {
        match self {
            Self::Blazar => vec![command.to_owned()],
            Self::OpenStack => {
                let renamed = command.replace("-update", "-set");
                let words = renamed.split('-').map(str::to_owned);
                std::iter::once("reservation".to_owned()).chain(words).collect()
            }
        }
    }
}

/// A shell that is logged in.
#[derive(Clone, Debug)]
pub struct Shell {
    /// Which.
    pub kind: Kind,
    python: Python,
    home: PathBuf,
    login: Vec<String>,
}

/// What a command left behind.
#[derive(Clone, Debug)]
pub struct Ran {
    line: String,
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Shell {
    /// A shell that logs in with those options.
    pub fn new(kind: Kind, python: &Python, home: PathBuf, login: &[&str]) -> Self {
        let login = login.iter().map(|&word| word.to_owned()).collect();
        Self { kind, python: python.clone(), home, login }
    }

    /// Runs a command, by `blazar`'s name for it.
    pub fn run(&self, command: &str, arguments: &[&str]) -> Result<Ran> {
        let mut program: Command = self.python.program(self.kind.program(), &self.home);
        program.args(&self.login).args(self.kind.words(command)).args(arguments);
        let line =
            format!("{} {} {}", self.kind.program(), self.kind.words(command).join(" "), arguments.join(" "));
        let output = program.output().with_context(|| format!("cannot run {line}"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Ran {
            line,
            status: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        })
    }

    /// Runs a command that is to succeed; what it prints.
    pub fn text(&self, command: &str, arguments: &[&str]) -> Result<String> {
        let ran = self.run(command, arguments)?;
        ensure!(ran.status == Some(0), "{}", ran.described("succeed"));
        Ok(ran.stdout)
    }

    /// The same with the output as JSON.
    pub fn json(&self, command: &str, arguments: &[&str]) -> Result<Value> {
        let text = self.text(command, &[arguments, &["-f", "json"]].concat())?;
        // A sentence goes before the answer to a creation.
        let start = text.find(['{', '[']).with_context(|| format!("{command} prints no JSON: {text}"))?;
        serde_json::from_str(&text[start..]).with_context(|| format!("{command} prints no JSON: {text}"))
    }

    /// The same for a list.
    pub fn list(&self, command: &str, arguments: &[&str]) -> Result<Vec<Value>> {
        match self.json(command, arguments)? {
            Value::Array(items) => Ok(items),
            other => bail!("{command} prints no list: {other}"),
        }
    }

    /// Runs a command that is to fail, and to say that.
    pub fn refused(&self, command: &str, arguments: &[&str], with: &str) -> Result<()> {
        let ran = self.run(command, arguments)?;
        ensure!(ran.status.is_some_and(|status| status != 0), "{}", ran.described("fail"));
        ensure!(ran.stderr.contains(with), "{}", ran.described(&format!("say '{with}'")));
        Ok(())
    }
}

impl Ran {
    /// Exit status.
    pub fn status(&self) -> Option<i32> {
        self.status
    }

    /// Standard error.
    pub fn stderr(&self) -> &str {
        &self.stderr
    }

    fn described(&self, wanted: &str) -> String {
        let Self { line, status, stdout, stderr } = self;
        let status = status.map_or("a signal".to_owned(), |status| status.to_string());
        format!("'{line}' should {wanted}; it ended with {status}\n{stdout}{stderr}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_the_names_of_the_shell() {
        assert_eq!(Kind::Blazar.words("host-property-set"), ["host-property-set"]);
        assert_eq!(Kind::OpenStack.words("host-property-set"), ["reservation", "host", "property", "set"]);
        assert_eq!(Kind::OpenStack.words("lease-update"), ["reservation", "lease", "set"]);
    }
}
