//! The lab's cluster, and commands on its nodes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use chores::places;
use chores::run::{Executable, must_run};

use crate::lab::scripts;

/// The cluster, seen from its master node.
#[derive(Debug)]
pub struct Lab {
    /// The cluster's directory. Short, because socket paths have a maximum length.
    pub root: PathBuf,
    pub scripts: PathBuf,
    /// Directory of links to our binary, one per program.
    links: PathBuf,
    started: Instant,
}

/// Outcome of a command on the master node.
#[derive(Debug)]
pub struct Ran {
    /// `None` if a signal ended the command.
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Lab {
    pub fn prepare(shared: &Path, ours: &Executable) -> Result<Self> {
        let lab = Self {
            root: PathBuf::from("/tmp/glab"),
            scripts: places::target().join("lab/ganeti"),
            links: places::target().join("lab/links"),
            started: Instant::now(),
        };
        scripts::copy(&shared.join("labs/ganeti"), &lab.scripts)?;
        fs::create_dir_all(&lab.links)?;
        must_run(Command::new(&ours.path).arg("install-links").arg(&lab.links))?;
        Ok(lab)
    }

    pub fn script(&self, name: &str, arguments: &[&str]) -> Result<()> {
        must_run(Command::new(self.scripts.join(name)).args(arguments))
    }

    /// Prints the next step, and labels captures with it.
    pub fn tell(&self, what: &str) {
        println!("[{:4} s] {what}", self.started.elapsed().as_secs());
        // Captures of iallocator requests are named after this file. The directory doesn't exist before the
        // cluster is up.
        let _ = fs::write(self.root.join("label"), what.replace([' ', '/'], "_"));
    }

    /// Path of our link `name` on the cluster's nodes.
    pub fn program(&self, name: &str) -> String {
        self.links.join(name).to_string_lossy().into_owned()
    }

    /// Runs a command on the master node.
    pub fn ran(&self, words: &[&str]) -> Result<Ran> {
        let mut command = Command::new(self.scripts.join("glab"));
        command.arg("node1").args(words).stdin(std::process::Stdio::null());
        let output = command.output().with_context(|| format!("cannot run {}", words.join(" ")))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Ran { status: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) })
    }

    /// Runs a command that must succeed on the master node, and returns its standard output.
    pub fn must(&self, words: &[&str]) -> Result<String> {
        let ran = self.ran(words)?;
        if ran.status != Some(0) {
            bail!("{} failed ({:?}):\n{}{}", words.join(" "), ran.status, ran.stdout, ran.stderr);
        }
        Ok(ran.stdout)
    }

    pub fn instance(&self, field: &str, name: &str) -> Result<String> {
        let text = self.must(&["gnt-instance", "list", "--no-headers", "-o", field, name])?;
        Ok(text.trim().to_owned())
    }

    /// Writes a file that commands on the nodes can read, and returns its path.
    pub fn file(&self, name: &str, content: &str) -> Result<String> {
        let path = self.root.join(name);
        write(&path, content)?;
        Ok(path.to_string_lossy().into_owned())
    }

    /// Creates or empties a directory that programs on the nodes can write to, and returns its path.
    pub fn empty_directory(&self, name: &str) -> Result<PathBuf> {
        let path = self.root.join(name);
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        fs::create_dir_all(&path)?;
        Ok(path)
    }
}

pub fn write(path: &Path, content: &str) -> Result<()> {
    chores::run::write(path, content.as_bytes())
}
