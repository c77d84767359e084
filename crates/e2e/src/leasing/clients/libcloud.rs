//! Apache Libcloud, which lists leases and hosts.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use chores::cases::Cases;
use chores::python::Python;
use chores::run::Executable;
use chores::tally::Tally;
use serde_json::{Value, json};

use super::logins::{PASSWORD, TOKEN, with_keystone_and_tokens};
use super::values::same;
use crate::leasing::fleet::MACHINES;
use crate::leasing::http::Caller;

/// Logs in at the given URL, and prints the listed leases and hosts as JSON.
const SCRIPT: &str = include_str!("../../../leasing/libcloud_lists.py");

pub fn run(ours: &Executable, python: &Python) -> Result<Tally> {
    let mut cases = Cases::new("clients, libcloud");
    let directory = tempfile::tempdir()?;
    let server = with_keystone_and_tokens(ours, directory.path())?;
    let script = directory.path().join("libcloud_lists.py");
    std::fs::write(&script, SCRIPT).context("cannot write a file")?;
    cases.check("libcloud logs in and lists leases and hosts", || {
        let caller = Caller::new(server.url())?.with_token(TOKEN);
        caller.post("/v1/os-hosts", &json!({"name": MACHINES[0]}))?.expect(201)?;
        let reservation = json!({"resource_type": "physical:host", "min": 1, "max": 1,
            "hypervisor_properties": "", "resource_properties": ""});
        let lease = json!({"name": "listed", "start_date": "2040-01-01 00:00", "end_date": "2040-01-02 00:00",
            "reservations": [reservation], "events": []});
        let made = caller.post("/v1/leases", &lease)?.expect(201)?;
        let mut program: Command = python.program("python", directory.path());
        let output = program.arg(&script).args([server.url(), "tester", PASSWORD, "tests"]).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let listed: Value = serde_json::from_slice(&output.stdout)?;
        same(&listed["leases"], &json!([[made["lease"]["id"], "listed", made["lease"]["status"]]]))?;
        same(&listed["hosts"], &json!([MACHINES[0]]))
    });
    Ok(cases.tally())
}
