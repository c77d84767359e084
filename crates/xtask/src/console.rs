//! `cargo xtask console`: builds the web console for the next build of the service, and runs its tests in a
//! browser, which are a stage of `cargo xtask test`.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use chores::arguments::Arguments;
use chores::console::{build, directory, install, prepare, with_service};
use chores::places::{self, target};
use chores::run::{Executable, must_run};
use chores::tally::{Tally, report_failure};
use serde_json::Value;

pub fn main(mut arguments: Arguments) -> Result<()> {
    let schema = arguments.switch("--schema");
    let tests = arguments.switch("--test");
    let bless = arguments.switch("--bless");
    let ours = arguments.text("--ours")?.map(Executable::new);
    arguments.finish()?;
    if schema {
        let ours = ours.map_or_else(places::ours, Ok)?;
        return write_schema(&ours);
    }
    build()?;
    if tests || bless {
        let ours = ours.map_or_else(places::ours, Ok)?;
        return run(&ours, bless)?.conclude("console");
    }
    eprintln!(
        "The console is in {}; the next build of allot takes it in.",
        directory().join("dist").display()
    );
    Ok(())
}

/// Generates the types of the API's bodies from the service's OpenAPI document.
fn write_schema(ours: &Executable) -> Result<()> {
    install()?;
    must_run(with_service(ours, &["scripts/schema.mjs"]).stdout(std::io::stderr()))
}

/// Runs the tests: unit tests, then tests in a browser against this program.
pub fn check(ours: &Executable) -> Result<Tally> {
    run(ours, false)
}

fn run(ours: &Executable, bless: bool) -> Result<Tally> {
    prepare()?;
    install()?;
    // The build checks the types of tests too, but is skipped if only tests have changed.
    let mut types = Command::new("node");
    types.args(["node_modules/typescript/bin/tsc", "--noEmit"]).current_dir(directory());
    must_run(types.stdin(Stdio::null()))?;
    let report = target().join("console.json");
    let mut command = with_service(
        ours,
        &["node_modules/vitest/vitest.mjs", "run", "--reporter=default", "--reporter=json"],
    );
    command.arg(format!("--outputFile={}", report.display()));
    if bless {
        command.env("ALLOT_BLESS", "1");
    }
    let _ = fs::remove_file(&report);
    // The exit status isn't checked: the report has all failures.
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    let written = fs::read_to_string(&report)
        .with_context(|| format!("the tests of the console broke off ({status}): no report"))?;
    tally(&serde_json::from_str(&written)?)
}

/// Counts each test in vitest's report as a check.
fn tally(report: &Value) -> Result<Tally> {
    let mut tally = Tally::default();
    let files =
        report["testResults"].as_array().context("the report of the console's tests has no results")?;
    for file in files {
        let tests = file["assertionResults"].as_array().map_or(&[][..], Vec::as_slice);
        for test in tests {
            match test["status"].as_str() {
                Some("passed") => tally.passed += 1,
                status => {
                    tally.failed += 1;
                    let messages = test["failureMessages"].as_array().map_or(&[][..], Vec::as_slice);
                    let message = messages.iter().find_map(Value::as_str).unwrap_or("no message");
                    let shown: String = message.lines().take(12).collect::<Vec<_>>().join("\n    ");
                    let name = test["fullName"].as_str().unwrap_or("a test");
                    report_failure(format!("console: {name}: {}: {shown}", status.unwrap_or("?")));
                }
            }
        }
        // A file that could not be loaded has no tests.
        if tests.is_empty() {
            tally.failed += 1;
            let message = file["message"].as_str().unwrap_or("no message");
            report_failure(format!("console: {}: {message}", file["name"].as_str().unwrap_or("a file")));
        }
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_test_of_the_report_is_counted_and_a_file_without_tests_has_failed() {
        let report = json!({"testResults": [
            {"name": "a", "assertionResults": [
                {"status": "passed", "fullName": "x"},
                {"status": "failed", "fullName": "y", "failureMessages": ["no\nmore"]},
                {"status": "skipped", "fullName": "z", "failureMessages": []},
            ]},
            {"name": "b", "assertionResults": [], "message": "it cannot be loaded"},
        ]});
        assert_eq!(tally(&report).unwrap(), Tally { passed: 1, failed: 3, skipped: 0 });
        assert!(tally(&json!({})).is_err());
    }
}
