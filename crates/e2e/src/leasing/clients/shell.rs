//! The two stock shells, which have the same commands under different names.

use std::cell::RefCell;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use anyhow::{Context, Result, bail, ensure};
use chores::python::Python;
use serde_json::{Value, json};

/// Loads a shell and runs its commands.
const SHELLS: &str = include_str!("../../../leasing/shells.py");

/// A stock shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Commands such as `blazar lease-create`.
    Blazar,
    /// Commands such as `openstack reservation lease create`.
    OpenStack,
}

impl Kind {
    pub const ALL: [Self; 2] = [Self::Blazar, Self::OpenStack];

    pub fn program(self) -> &'static str {
        match self {
            Self::Blazar => "blazar",
            Self::OpenStack => "openstack",
        }
    }

    /// Words of a command, given `blazar`'s name for it.
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

/// A shell with preloaded modules, because loading takes the most time. Each command still runs in its own
/// process.
#[derive(Debug)]
pub struct Loaded {
    kind: Kind,
    child: Child,
    pipes: RefCell<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Loaded {
    /// Loads a shell in an environment without the caller's settings.
    pub fn new(kind: Kind, python: &Python, home: &Path) -> Result<Self> {
        let script = home.join("shells.py");
        fs::write(&script, SHELLS).with_context(|| format!("cannot write {}", script.display()))?;
        let mut program = python.program("python", home);
        program.arg(script).arg(kind.program()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = program.spawn().context("cannot run python")?;
        let pipes = child.stdin.take().zip(child.stdout.take()).context("no pipes")?;
        Ok(Self { kind, child, pipes: RefCell::new((pipes.0, BufReader::new(pipes.1))) })
    }

    /// The shell, with login options.
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
        // The process has nothing to finish.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A shell with login options.
#[derive(Clone, Debug)]
pub struct Shell<'a> {
    pub kind: Kind,
    loaded: &'a Loaded,
    login: Vec<String>,
}

/// Outcome of a command.
#[derive(Clone, Debug)]
pub struct Ran {
    line: String,
    status: i64,
    stdout: String,
    stderr: String,
}

impl Shell<'_> {
    /// All words of a command, including login options, given `blazar`'s name for it.
    pub fn words(&self, command: &str, arguments: &[&str]) -> Vec<String> {
        let arguments = arguments.iter().map(|&word| word.to_owned());
        self.login.iter().cloned().chain(self.kind.words(command)).chain(arguments).collect()
    }

    /// Runs a command, given `blazar`'s name for it.
    pub fn run(&self, command: &str, arguments: &[&str]) -> Result<Ran> {
        let words = self.kind.words(command).join(" ");
        let line = format!("{} {words} {}", self.kind.program(), arguments.join(" "));
        let ran = self.loaded.run(&self.words(command, arguments)).with_context(|| format!("'{line}'"))?;
        Ok(Ran { line, ..ran })
    }

    /// Runs a command that must succeed, and returns its output.
    pub fn text(&self, command: &str, arguments: &[&str]) -> Result<String> {
        let ran = self.run(command, arguments)?;
        ensure!(ran.status == 0, "{}", ran.described("succeed"));
        Ok(ran.stdout)
    }

    /// Runs a command that must succeed, and parses its output as JSON.
    pub fn json(&self, command: &str, arguments: &[&str]) -> Result<Value> {
        let text = self.text(command, &[arguments, &["-f", "json"]].concat())?;
        // The output of a creation starts with a sentence.
        let start = text.find(['{', '[']).with_context(|| format!("{command} prints no JSON: {text}"))?;
        serde_json::from_str(&text[start..]).with_context(|| format!("{command} prints no JSON: {text}"))
    }

    /// Runs a command that must succeed, and parses its output as a JSON array.
    pub fn list(&self, command: &str, arguments: &[&str]) -> Result<Vec<Value>> {
        match self.json(command, arguments)? {
            Value::Array(items) => Ok(items),
            other => bail!("{command} prints no list: {other}"),
        }
    }

    /// Runs a command that must fail, with an error that contains `with`.
    pub fn refused(&self, command: &str, arguments: &[&str], with: &str) -> Result<()> {
        let ran = self.run(command, arguments)?;
        ensure!(ran.status != 0, "{}", ran.described("fail"));
        ensure!(ran.stderr.contains(with), "{}", ran.described(&format!("say '{with}'")));
        Ok(())
    }
}

impl Ran {
    /// Exit status, or the negative number of the signal that ended the command.
    pub fn status(&self) -> i64 {
        self.status
    }

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
