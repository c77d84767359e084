//! The two stock shells. They have the same commands under different names.

use std::cell::RefCell;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use anyhow::{Context, Result, bail, ensure};
use chores::python::Python;
use serde_json::{Value, json};

/// What loads a shell.
const SHELLS: &str = include_str!("../../../leasing/shells.py");

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

/// A shell whose modules are loaded, which takes longest. Each command is a process of its own all the same.
#[derive(Debug)]
pub struct Loaded {
    kind: Kind,
    child: Child,
    pipes: RefCell<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Loaded {
    /// Loads a shell that finds nothing of the caller's settings.
    pub fn new(kind: Kind, python: &Python, home: &Path) -> Result<Self> {
        let script = home.join("shells.py");
        fs::write(&script, SHELLS).with_context(|| format!("cannot write {}", script.display()))?;
        let mut program = python.program("python", home);
        program.arg(script).arg(kind.program()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = program.spawn().context("cannot run python")?;
        let pipes = child.stdin.take().zip(child.stdout.take()).context("no pipes")?;
        Ok(Self { kind, child, pipes: RefCell::new((pipes.0, BufReader::new(pipes.1))) })
    }

    /// The shell, with options that log in.
    pub fn with_login(&self, login: &[&str]) -> Shell<'_> {
        Shell { kind: self.kind, loaded: self, login: login.iter().map(|&word| word.to_owned()).collect() }
    }

    fn run(&self, arguments: &[String]) -> Result<Ran> {
        let (to, from) = &mut *self.pipes.borrow_mut();
        writeln!(to, "{}", json!(arguments))?;
        let mut line = String::new();
        from.read_line(&mut line)?;
        let answer: Value = serde_json::from_str(&line).context("the shell broke off")?;
        let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        let status = answer["status"].as_i64().context("no status")?;
        Ok(Ran { line: String::new(), status, stdout: text("stdout"), stderr: text("stderr") })
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // It has nothing to finish.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A shell that is logged in.
#[derive(Clone, Debug)]
pub struct Shell<'a> {
    /// Which.
    pub kind: Kind,
    loaded: &'a Loaded,
    login: Vec<String>,
}

/// What a command left behind.
#[derive(Clone, Debug)]
pub struct Ran {
    line: String,
    status: i64,
    stdout: String,
    stderr: String,
}

impl Shell<'_> {
    /// All words of a command, by `blazar`'s name for it.
    pub fn words(&self, command: &str, arguments: &[&str]) -> Vec<String> {
        let arguments = arguments.iter().map(|&word| word.to_owned());
        self.login.iter().cloned().chain(self.kind.words(command)).chain(arguments).collect()
    }

    /// Runs a command, by `blazar`'s name for it.
    pub fn run(&self, command: &str, arguments: &[&str]) -> Result<Ran> {
        let words = self.kind.words(command).join(" ");
        let line = format!("{} {words} {}", self.kind.program(), arguments.join(" "));
        let ran = self.loaded.run(&self.words(command, arguments)).with_context(|| format!("'{line}'"))?;
        Ok(Ran { line, ..ran })
    }

    /// Runs a command that is to succeed; what it prints.
    pub fn text(&self, command: &str, arguments: &[&str]) -> Result<String> {
        let ran = self.run(command, arguments)?;
        ensure!(ran.status == 0, "{}", ran.described("succeed"));
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
        ensure!(ran.status != 0, "{}", ran.described("fail"));
        ensure!(ran.stderr.contains(with), "{}", ran.described(&format!("say '{with}'")));
        Ok(())
    }
}

impl Ran {
    /// Exit status; of a signal, its negative number.
    pub fn status(&self) -> i64 {
        self.status
    }

    /// Standard error.
    pub fn stderr(&self) -> &str {
        &self.stderr
    }

    fn described(&self, wanted: &str) -> String {
        let Self { line, status, stdout, stderr } = self;
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
