//! The cluster of the lab, and what is asked of it.

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
    /// Where the cluster lives; short, since the paths of sockets are bounded.
    pub root: PathBuf,
    pub scripts: PathBuf,
    /// Links to our binary, one per program.
    links: PathBuf,
    started: Instant,
}

/// What a command on the master node did.
#[derive(Debug)]
pub struct Ran {
    /// Exit status; none if a signal ended it.
    pub status: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
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

    /// Says what comes next.
    pub fn tell(&self, what: &str) {
        println!("[{:4} s] {what}", self.started.elapsed().as_secs());
        // The captures of iallocator requests are named after it; absent before the cluster is up.
        let _ = fs::write(self.root.join("label"), what.replace([' ', '/'], "_"));
    }

    /// Our link of that name, as the cluster's nodes see it.
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

    /// Runs a command on the master node that must succeed; what it printed.
    pub fn must(&self, words: &[&str]) -> Result<String> {
        let ran = self.ran(words)?;
        if ran.status != Some(0) {
            bail!("{} failed ({:?}):\n{}{}", words.join(" "), ran.status, ran.stdout, ran.stderr);
        }
        Ok(ran.stdout)
    }

    /// One field of an instance.
    pub fn instance(&self, field: &str, name: &str) -> Result<String> {
        let text = self.must(&["gnt-instance", "list", "--no-headers", "-o", field, name])?;
        Ok(text.trim().to_owned())
    }

    /// Writes a file where commands on the nodes find it; its path.
    pub fn file(&self, name: &str, content: &str) -> Result<String> {
        let path = self.root.join(name);
        write(&path, content)?;
        Ok(path.to_string_lossy().into_owned())
    }

    /// An empty directory where programs on the nodes may write; its path.
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
