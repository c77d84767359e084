//! Generated requests against every address of the API's own description.
//!
//! They are the same in every run of the same versions. What is asked of answers: no failure of the server, and
//! status, type and body as the document says.

use anyhow::{Context, Result, ensure};

use super::python::Python;
use super::server::Launch;
use crate::run::Executable;
use crate::tally::Tally;

/// What is asked of every answer.
const CHECKS: &str =
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";
/// Generated requests of an operation, besides those that its schema's corners give.
const EXAMPLES: u32 = 10;
const SEED: u32 = 1;

/// Runs the stage.
pub fn run(ours: &Executable) -> Result<Tally> {
    let python = Python::ready()?;
    let directory = tempfile::tempdir()?;
    // Generated requests would wait for notifications as long as they are let.
    let launch = Launch::new(ours, directory.path()).with(["--limits-notification-wait", "1s"]);
    let server = launch.start()?;
    let document = server.caller().get("/openapi.json")?.expect(200)?;
    let operations = operations(&document);
    ensure!(operations > 0, "the document names no operations");
    let mut command = python.program("schemathesis", directory.path());
    command.args(["run", &format!("{}/openapi.json", server.url()), "--url", server.url()]);
    command.args(["--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--continue-on-failure"]);
    command.args(["--max-examples", &EXAMPLES.to_string(), "--seed", &SEED.to_string()]);
    command.args(["--suppress-health-check", "all", "--request-timeout", "30", "--warnings", "off"]);
    let output = command.output().context("cannot run schemathesis")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let passed = output.status.success();
    if !passed {
        println!("{}{}", said.trim_end(), String::from_utf8_lossy(&output.stderr));
    }
    // The service is to be there afterwards, whatever it was sent.
    let alive = server.caller().get("/readyz").is_ok_and(|answer| answer.status == 200);
    ensure!(alive, "the service does not answer after it:\n{}", server.last_lines());
    if let Some(summary) = said.lines().rev().find(|line| line.contains("generated")) {
        println!("schemathesis: {}", summary.trim());
    }
    Ok(if passed {
        Tally { passed: operations, failed: 0, skipped: 0 }
    } else {
        Tally { passed: 0, failed: 1, skipped: 0 }
    })
}

/// How many operations the description names.
fn operations(document: &serde_json::Value) -> usize {
    const METHODS: [&str; 6] = ["get", "post", "put", "patch", "delete", "head"];
    let paths = document["paths"].as_object().into_iter().flatten();
    paths.map(|(_, path)| METHODS.iter().filter(|&&method| path.get(method).is_some()).count()).sum()
}
