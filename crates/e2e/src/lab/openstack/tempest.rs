//! Runs Tempest: Blazar's own acceptance tests (blazar-tempest-plugin), and the installation that other parts
//! use for their plugins.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use chores::cases::Cases;
use chores::places;
use chores::run::{Executable, must_run, write};

use super::cloud::People;
use super::{Lab, empty, site};
use crate::lab::scripts;

/// Python packages, in versions that work together.
const PACKAGES: [&str; 3] = ["tempest==47.0.0", "blazar-tempest-plugin==0.19.0", "setuptools>=77,<81"];

/// Port of a gateway. The API tests expect `http://127.0.0.1/` with the paths of `DevStack`'s Apache.
const GATEWAY: &str = "80";

/// Number of tests: 22 of the API, one of concurrent requests, and seven scenarios.
const TESTS: usize = 30;

/// Tempest in its own Python environment, configured for the cloud.
pub struct Tempest<'a> {
    lab: &'a Lab,
    environment: PathBuf,
    /// Settings that the lab's script has written.
    settings: String,
}

impl<'a> Tempest<'a> {
    /// Installs Tempest, unless an earlier run has installed it.
    pub fn install(lab: &'a Lab) -> Result<Self> {
        let environment = lab.root.join("venv-tempest");
        if !environment.join("bin/python").is_file() {
            must_run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        }
        // Needs no network if all packages are installed.
        must_run(install(lab, &environment).args(PACKAGES))?;
        // The script expects the environment in its own directory.
        let link = lab.scripts.join("venv-tempest");
        if !link.is_symlink() {
            std::os::unix::fs::symlink(&environment, link).context("no link")?;
        }
        lab.script("tempest-up", &[&lab.state.display().to_string()])?;
        let mut tempest = Self { lab, environment, settings: String::new() };
        let file = tempest.file();
        tempest.settings = fs::read_to_string(&file).with_context(|| format!("no {}", file.display()))?;
        Ok(tempest)
    }

    /// Installs our own plugin as well.
    pub fn with_ours(self) -> Result<Self> {
        let package = self.lab.root.join("allot-tempest-package");
        scripts::copy(&places::root().join("contrib/tempest"), &package)?;
        let mut install = install(self.lab, &self.environment);
        install.args(["--no-deps", "--no-build-isolation", "--reinstall-package", "allot-tempest-plugin"]);
        must_run(install.arg(package))?;
        Ok(self)
    }

    /// Adds sections to the script's settings. Sections of earlier calls are dropped.
    pub fn configure(&self, sections: &str) -> Result<()> {
        write(&self.file(), format!("{}\n{sections}", self.settings).as_bytes())
    }

    /// Runs the tests with names that match `pattern`. Exactly `tests` of these must pass, and no test can
    /// fail. Writes Tempest's output to `log`.
    pub fn run(&self, pattern: &str, tests: usize, log: &Path) -> Result<()> {
        let mut tempest = Command::new(self.environment.join("bin/tempest"));
        tempest.args(["run", "--config-file", "etc/tempest.conf", "--concurrency", "1", "--regex", pattern]);
        tempest.current_dir(self.lab.state.join("tempest")).env("no_proxy", "127.0.0.1");
        let output = tempest.output().context("cannot run tempest")?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        write(log, said.as_bytes())?;
        let passed = said.lines().filter(|line| line.trim_end().ends_with("... ok")).count();
        let tells = |line: &&str| line.contains("... FAILED") || line.contains("Error: ");
        let failed: Vec<&str> = said.lines().filter(tells).collect();
        let all = output.status.success() && passed == tests;
        ensure!(all, "{passed} of {tests}, {failed:#?}: {}", log.display());
        Ok(())
    }

    fn file(&self) -> PathBuf {
        self.lab.state.join("tempest/etc/tempest.conf")
    }
}

/// Start of a command that installs packages into the environment.
fn install(lab: &Lab, environment: &Path) -> Command {
    let mut install = Command::new(lab.program("uv"));
    install.args(["pip", "install", "-q", "-p"]).arg(environment.join("bin/python"));
    install
}

/// A child process that is killed on drop.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        // Errors are ignored: the process can have ended on its own.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs all tests of blazar-tempest-plugin, one after another.
pub fn run(cases: &mut Cases, lab: &Lab, ours: &Executable, people: &People) -> Result<()> {
    lab.tell("Tempest");
    let tempest = Tempest::install(lab)?;
    let directory = lab.root.join("allot-tempest");
    empty(&directory)?;
    let server = site::launch(lab, ours, &directory, people, "keystone")?.start()?;
    let mut gateway = Command::new("python3");
    gateway.arg(lab.scripts.join("gateway.py")).args([GATEWAY, &lab.port.to_string()]);
    let gateway = Ends(gateway.stdout(Stdio::null()).spawn().context("no gateway")?);
    lab.tell("blazar-tempest-plugin");
    cases.check("Blazar's own acceptance tests pass", || {
        tempest.run("blazar_tempest_plugin", TESTS, &directory.join("tempest.txt"))
    });
    drop(gateway);
    cases.check("the service shuts down cleanly", || site::ends_well(server));
    Ok(())
}
