//! `cargo xtask lab clients`: Heat's resources, the dashboard's API module and python-chi against the
//! service. They pull in several hundred packages, so no stage of `cargo xtask test` runs them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use chores::arguments::Arguments;
use chores::cases::Cases;
use chores::places;
use chores::python::Python;
use chores::run::Executable;
use serde_json::{Value, json};

use crate::leasing::clients::logins::{PASSWORD, with_keystone_and_tokens};
use crate::leasing::clients::values::same;
use crate::leasing::fleet::MACHINES;

/// A client's Keystone login; user and project are in the domain `default`.
#[derive(Clone, Copy, Debug)]
pub struct Login<'a> {
    /// Keystone's URL.
    pub url: &'a str,
    pub user: &'a str,
    pub password: &'a str,
    pub project: &'a str,
}

/// A client and its Python environment. `program` exercises the client and prints its observations as JSON.
struct Client {
    name: &'static str,
    environment: &'static str,
    requirements: &'static str,
    program: &'static str,
    /// Checks the program's output, given the host name it was run with.
    check: fn(&Value, &str) -> Result<()>,
}

const OPENSTACK: &str = include_str!("../../lab/clients/openstack.txt");
const CHI: &str = include_str!("../../lab/clients/chi.txt");

const CLIENTS: [Client; 3] = [
    Client {
        name: "Heat makes, reads and deletes hosts and leases",
        environment: "python-openstack",
        requirements: OPENSTACK,
        program: include_str!("../../lab/clients/heat_resources.py"),
        check: heat,
    },
    Client {
        name: "all functions of the dashboard's api module work",
        environment: "python-openstack",
        requirements: OPENSTACK,
        program: include_str!("../../lab/clients/dashboard.py"),
        check: dashboard,
    },
    Client {
        name: "python-chi leases a host, finds the lease, and deletes it",
        environment: "python-chi",
        requirements: CHI,
        program: include_str!("../../lab/clients/chi.py"),
        check: chi,
    },
];

pub fn main(mut arguments: Arguments) -> Result<()> {
    let ours = arguments.text("--ours")?;
    arguments.finish()?;
    let ours = ours.map_or_else(places::ours, |path| Ok(Executable::new(path)))?;
    let mut cases = Cases::new("heavy clients");
    for (client, machine) in CLIENTS.iter().zip(MACHINES) {
        let directory = tempfile::tempdir()?;
        let server = with_keystone_and_tokens(&ours, directory.path())?;
        let url = format!("{}/identity/v3", server.url());
        let login = Login { url: &url, user: "tester", password: PASSWORD, project: "tests" };
        client.check(&mut cases, login, machine, directory.path())?;
    }
    cases.tally().conclude("lab clients")
}

/// Runs Heat and the dashboard against a service that they find in the catalog. They register the host
/// `machine` and delete it again, so the service must have no hosts at the start.
pub fn of_openstack(cases: &mut Cases, login: Login<'_>, machine: &str) -> Result<()> {
    for client in CLIENTS.iter().filter(|client| client.requirements == OPENSTACK) {
        client.check(cases, login, machine, tempfile::tempdir()?.path())?;
    }
    Ok(())
}

impl Client {
    fn check(&self, cases: &mut Cases, login: Login<'_>, machine: &str, directory: &Path) -> Result<()> {
        let python = Python::with(self.environment, self.requirements)?;
        cases.check(self.name, || {
            let script = directory.join("client.py");
            fs::write(&script, self.program).context("cannot write a file")?;
            let Login { url, user, password, project } = login;
            let mut program = python.program("python", directory);
            let output = program.arg(&script).args([url, user, password, project, machine]).output()?;
            ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            // The last line is the result: libraries can print lines before it.
            let said = String::from_utf8_lossy(&output.stdout);
            let seen: Value = serde_json::from_str(said.lines().last().unwrap_or_default())?;
            (self.check)(&seen, machine)
        });
        Ok(())
    }
}

fn heat(seen: &Value, machine: &str) -> Result<()> {
    same(&seen["host"], &json!(["COMPLETE", machine, "COMPLETE"]))?;
    for (name, title) in [("reserved", "from heat"), ("room", "room from heat")] {
        let lease = &seen[name];
        same(&json!([lease[0], lease[3]]), &json!(["COMPLETE", "COMPLETE"]))?;
        same(&json!([lease[2]["name"], lease[2]["degraded"]]), &json!([title, false]))?;
    }
    let events = seen["reserved"][2]["events"].as_array().context("events")?;
    ensure!(
        events.iter().any(|event| event["event_type"] == "timeout"),
        "it isn't a best-effort lease: {seen}"
    );
    Ok(())
}

fn dashboard(seen: &Value, machine: &str) -> Result<()> {
    same(&seen["created"], &json!(machine))?;
    same(&json!([seen["capabilities"][0], seen["capabilities"][1]]), &json!(["yes", "r1"]))?;
    same(&seen["leases"], &json!(["from the dashboard"]))?;
    same(&seen["lease"], &json!(["renamed", "PENDING", false, "2040-01-02T10:00:00.000000"]))?;
    let booked = json!([["2040-01-01T09:00:00+00:00", "2040-01-02T10:00:00+00:00"]]);
    same(&seen["calendar"], &json!([[machine], booked]))?;
    same(&json!([seen["allocations"], seen["left"], seen["hosts"]]), &json!([[true], 0, []]))
}

fn chi(seen: &Value, _machine: &str) -> Result<()> {
    same(&json!([seen["active"], seen["id"]]), &json!(["ACTIVE", true]))?;
    same(&seen["lease"], &json!(["from chi", "ACTIVE", 1, []]))?;
    same(&json!([seen["leases"], seen["left"]]), &json!([["from chi"], []]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_one_environment_want_the_same() {
        for one in &CLIENTS {
            let other = CLIENTS.iter().find(|other| other.environment == one.environment);
            assert_eq!(other.map(|other| other.requirements), Some(one.requirements));
        }
    }
}
