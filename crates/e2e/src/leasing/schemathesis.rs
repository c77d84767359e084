//! Sends generated requests to every operation in the service's API document (`/openapi.json`).
//!
//! The requests are the same in every run of the same versions. Answers must not be server errors, and their
//! status, content type and body must match the document.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use chores::python::Python;
use chores::run::Executable;
use chores::tally::{Tally, report_failure};
use serde_json::{Value, json};

use super::fleet::{ADDRESSES, MACHINES, NETWORK};
use super::http::{Caller, text};
use super::server::{Launch, Server};

/// Checks of every answer.
const CHECKS: &str =
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";
/// Maximum number of random requests per operation, in addition to those for boundaries of its schema.
const EXAMPLES: u32 = 15;
const SEED: u32 = 1;

/// Runs the stage: first with generated identifiers, which mostly don't exist, then with identifiers of
/// existing objects.
pub fn run(ours: &Executable) -> Result<Tally> {
    let python = Python::ready()?;
    let directory = tempfile::tempdir()?;
    // Generated requests wait for notifications and follow changes for as long as the limits allow.
    let short = ["--limits-notification-wait", "1s", "--limits-stream-time", "1s"];
    let launch = Launch::new(ours, directory.path()).with(short);
    let mut server = launch.start()?;
    let mut tally = valid(&python, server.caller(), directory.path())?;
    tally += generated(&python, &mut server, directory.path(), None)?;
    let existing = things(server.caller())?;
    std::fs::write(directory.path().join("schemathesis.toml"), existing).context("cannot write a file")?;
    // Without DELETE, because later requests need the objects.
    tally += generated(&python, &mut server, directory.path(), Some("DELETE"))?;
    Ok(tally)
}

/// Checks the API document with an independent validator.
fn valid(python: &Python, caller: &Caller, home: &Path) -> Result<Tally> {
    let file = home.join("openapi.json");
    let document = caller.get("/openapi.json")?.expect(200)?;
    std::fs::write(&file, document.to_string()).context("cannot write a file")?;
    let mut command = python.program("openapi-spec-validator", home);
    let output = command.arg(&file).output().context("cannot run openapi-spec-validator")?;
    let mut tally = Tally::default();
    tally.count(output.status.success());
    if !output.status.success() {
        let said = [output.stdout, output.stderr].concat();
        report_failure(format!("openapi-spec-validator: {}", String::from_utf8_lossy(&said)));
    }
    Ok(tally)
}

/// Sends generated requests for all methods but `except`. If all pass, counts the operations.
fn generated(python: &Python, server: &mut Server, home: &Path, except: Option<&str>) -> Result<Tally> {
    let operations = operations(&server.caller().get("/openapi.json")?.expect(200)?, except);
    ensure!(operations > 0, "the description names no operations");
    let mut command = python.program("schemathesis", home);
    command.args(["run", &format!("{}/openapi.json", server.url()), "--url", server.url()]);
    command.args(["--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--continue-on-failure"]);
    command.args(["--max-examples", &EXAMPLES.to_string(), "--seed", &SEED.to_string()]);
    command.args(["--suppress-health-check", "all", "--request-timeout", "30", "--warnings", "off"]);
    command.args(except.iter().flat_map(|method| ["--exclude-method", method]));
    let output = command.output().context("cannot run schemathesis")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let passed = output.status.success();
    if !passed {
        report_failure(format!("{}{}", said.trim_end(), String::from_utf8_lossy(&output.stderr)));
    }
    // The service must survive the requests.
    server.wait_until_ready()?;
    if let Some(summary) = said.lines().rev().find(|line| line.contains("generated")) {
        println!("schemathesis: {}", summary.trim());
    }
    let failed = usize::from(!passed);
    Ok(Tally { passed: if passed { operations } else { 0 }, failed, skipped: 0 })
}

/// Creates an object of each kind, and returns their identifiers as parameters for schemathesis.
fn things(caller: &Caller) -> Result<String> {
    // Statuses are ignored: earlier generated requests can have created some of these objects.
    caller.post("/v1/os-hosts", &json!({"name": MACHINES[0], "rack": "r1"}))?;
    caller
        .post("/v1/flavors", &json!({"id": "small", "name": "small", "vcpus": 1, "ram": 512, "disk": 1}))?;
    caller.post(
        "/v1/floatingips",
        &json!({"floating_network_id": NETWORK, "floating_ip_address": ADDRESSES[0]}),
    )?;
    let lease = json!({"name": "there", "start_date": "2040-01-01 00:00", "end_date": "2040-01-02 00:00",
                       "reservations": [{"resource_type": "physical:host", "min": 1, "max": 1,
                                         "hypervisor_properties": "", "resource_properties": ""}]});
    caller.post("/v1/leases", &lease)?.expect(201)?;
    let first = |path: &str, list: &str| -> Result<String> {
        let answer = caller.get(path)?.expect(200)?;
        text(&answer[list][0], "id").map(str::to_owned)
    };
    Ok(format!(
        "[parameters]\n\"path.lease_id\" = {:?}\n\"path.host_id\" = {:?}\n\"path.floatingip_id\" = {:?}\n\
         \"path.flavor_id\" = \"small\"\n\"path.name\" = \"rack\"\n",
        first("/v1/leases", "leases")?,
        first("/v1/os-hosts", "hosts")?,
        first("/v1/floatingips", "floatingips")?,
    ))
}

/// Number of operations in the document, without operations of the method `except`.
fn operations(document: &Value, except: Option<&str>) -> usize {
    const METHODS: [&str; 6] = ["get", "post", "put", "patch", "delete", "head"];
    let methods: Vec<&str> = METHODS
        .into_iter()
        .filter(|&method| except.is_none_or(|except| !except.eq_ignore_ascii_case(method)))
        .collect();
    let paths = document["paths"].as_object().into_iter().flatten();
    paths.map(|(_, path)| methods.iter().filter(|&&method| path.get(method).is_some()).count()).sum()
}
