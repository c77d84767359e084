//! The plain HTTP requests of Blazar's tempest plugin, rewritten for gabbi, against an empty service.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use chores::python::Python;
use chores::run::Executable;
use chores::tally::{Tally, report_failure};

use super::fleet::MACHINES;
use super::server::Launch;

/// Test files, in this order: each expects an empty service.
const FILES: [(&str, &str); 3] = [
    ("leases", include_str!("../../leasing/gabbi/leases.yaml")),
    ("hosts", include_str!("../../leasing/gabbi/hosts.yaml")),
    ("allocations", include_str!("../../leasing/gabbi/allocations.yaml")),
];

pub fn run(ours: &Executable) -> Result<Tally> {
    let python = Python::ready()?;
    let directory = tempfile::tempdir()?;
    let server = Launch::new(ours, directory.path()).start()?;
    let prefix = format!("{}/v1", server.url());
    let mut tally = Tally::default();
    for (name, content) in FILES {
        let file = directory.path().join(format!("{name}.yaml"));
        std::fs::write(&file, content).with_context(|| format!("cannot write {}", file.display()))?;
        let mut gabbi: Command = python.program("gabbi-run", directory.path());
        gabbi.env("TOKEN", "notused").env("MACHINE", MACHINES[0]).args([&prefix, "--"]).arg(&file);
        let output = gabbi.output().context("cannot run gabbi-run")?;
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let of_file = counted(name, content, &said)?;
        ensure!(
            output.status.success() == (of_file.failed == 0),
            "gabbi-run ended otherwise than it says:\n{said}"
        );
        if of_file.failed > 0 {
            report_failure(format!("gabbi, {name}:\n{}", said.trim_end()));
        }
        tally += of_file;
    }
    Ok(tally)
}

/// Counts the tests of a file that gabbi reports as passed. Tests that it doesn't report count as failed.
fn counted(file: &str, content: &str, said: &str) -> Result<Tally> {
    let mut tally = Tally::default();
    let names = content.lines().filter_map(|line| line.strip_prefix("- name: "));
    for name in names {
        let reported = format!(".{file}_{}", name.replace(' ', "_"));
        tally.count(said.lines().any(|line| line.contains('✓') && line.trim_end().ends_with(&reported)));
    }
    ensure!(tally.passed + tally.failed > 0, "no tests in the file");
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_gabbi_does_not_report_as_passed_counts_as_failed() {
        let file = "tests:\n- name: one thing\n- name: another\n- name: a third\n";
        let said = "... ✓ gabbi-runner.x_one_thing\n... ✗ gabbi-runner.x_another\n";
        assert_eq!(counted("x", file, said).unwrap(), Tally { passed: 1, failed: 2, skipped: 0 });
        assert!(counted("x", "tests: []", said).is_err());
    }
}
