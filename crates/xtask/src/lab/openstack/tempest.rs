//! blazar-tempest-plugin: the acceptance tests of Blazar's own project.

use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::cloud::People;
use super::{Lab, empty, site};
use crate::leasing::cases::Cases;
use crate::run::{Executable, must_run};

/// The packages, in versions that go together.
const PACKAGES: [&str; 3] = ["tempest==47.0.0", "blazar-tempest-plugin==0.19.0", "setuptools<81"];

/// The tests of the API insist on `http://127.0.0.1/` with the paths of an Apache of `DevStack`'s.
const GATEWAY: &str = "80";

/// How many tests there are: 22 of the API, one of many requests at once, and seven scenarios.
const TESTS: usize = 30;

/// A program that ends with this value.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs them all, one after the other.
pub fn run(cases: &mut Cases, lab: &Lab, ours: &Executable, people: &People) -> Result<()> {
    lab.tell("Tempest");
    let environment = lab.root.join("venv-tempest");
    if !environment.join("bin/tempest").is_file() {
        must_run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        let mut install = Command::new(lab.program("uv"));
        install.args(["pip", "install", "-q", "-p"]).arg(environment.join("bin/python")).args(PACKAGES);
        must_run(&mut install)?;
    }
    // The script expects it beside itself.
    std::os::unix::fs::symlink(&environment, lab.scripts.join("venv-tempest")).context("no link")?;
    lab.script("tempest-up", &[&lab.state.display().to_string()])?;
    let directory = lab.root.join("allot-tempest");
    empty(&directory)?;
    let server = site::launch(lab, ours, &directory, people, "keystone")?.start()?;
    let mut gateway = Command::new("python3");
    gateway.arg(lab.scripts.join("gateway.py")).args([GATEWAY, &lab.port.to_string()]);
    let gateway = Ends(gateway.stdout(Stdio::null()).spawn().context("no gateway")?);
    lab.tell("blazar-tempest-plugin");
    cases.check("Blazar's own acceptance tests pass", || {
        let mut tempest = Command::new(environment.join("bin/tempest"));
        tempest.args(["run", "--config-file", "etc/tempest.conf", "--concurrency", "1"]);
        tempest.args(["--regex", "blazar_tempest_plugin"]).current_dir(lab.state.join("tempest"));
        let output = tempest.output().context("cannot run tempest")?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let log = directory.join("tempest.txt");
        crate::run::write(&log, said.as_bytes())?;
        let told = |text: &str| said.lines().filter(|line| line.trim_end().ends_with(text)).count();
        let (passed, log) = (told("... ok"), log.display());
        let failed: Vec<&str> = said.lines().filter(|line| line.contains("... FAILED")).collect();
        ensure!(output.status.success() && passed == TESTS, "{passed} of {TESTS}, {failed:#?}: {log}");
        Ok(())
    });
    drop(gateway);
    cases.check("the service ends as it should", || site::ends_well(server));
    Ok(())
}
