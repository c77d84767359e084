//! A cloud with many hosts and future leases. The requests are the same in every run.

use std::path::Path;

use anyhow::{Context, Result, bail};
use chores::places::cargo;
use chores::random::Random;
use chores::run::output_of;
use e2e::leasing::acknowledged::whole_hosts;
use e2e::leasing::date::Minute;
use e2e::leasing::http::{Answer, Caller, text};
use futures::StreamExt as _;
use futures::stream;
use reqwest::Method;
use serde_json::{Value, json};

/// Number of capabilities of each host.
const CAPABILITIES: usize = 30;
/// Number of concurrent requests while the cloud is filled.
const AT_ONCE: usize = 8;
/// Hours until the first lease starts: so far ahead that no lease starts during a measurement.
const AHEAD_HOURS: i64 = 30 * 24;
const YEAR_HOURS: i64 = 365 * 24;
/// Number of years in which small leases start.
const YEARS: i64 = 4;
/// Refused requests per accepted one above which the cloud counts as full.
const REFUSALS: usize = 4;

/// Generator of requests for a cloud.
#[derive(Debug)]
pub struct Cloud {
    hosts: usize,
    random: Random,
    origin: Minute,
}

impl Cloud {
    pub fn new(hosts: usize) -> Self {
        Self { hosts, random: Random::new(1), origin: Minute::now().plus(AHEAD_HOURS * 60) }
    }

    /// Earliest start of the generated leases.
    pub fn origin(&self) -> Minute {
        self.origin
    }

    /// Number of hosts.
    pub fn hosts(&self) -> usize {
        self.hosts
    }

    /// Registers all machines as hosts, each with its capabilities.
    pub fn take_on_hosts(&self, caller: &Caller) -> Result<()> {
        let host = |id: usize| {
            let mut host = json!({"id": id.to_string()});
            for capability in 0..CAPABILITIES {
                host[format!("capability{capability}")] = json!((id % (capability + 2)).to_string());
            }
            host
        };
        for answer in together(caller, "/v1/os-hosts", (1..=self.hosts).map(host)) {
            answer?.expect(201)?;
        }
        Ok(())
    }

    /// Inserts leases of a single host for some hours directly into the database. Very many fit. The service
    /// must be stopped and have no leases. Creating them with requests would take longer than the
    /// measurement.
    pub fn enter(&self, database: &Path, leases: usize) -> Result<()> {
        let mut example = cargo();
        example
            .args(["run", "--quiet", "--package", "store-sqlite", "--example", "fill", "--"])
            .arg(database);
        example.args([leases.to_string(), self.origin.instant().as_second().to_string(), YEARS.to_string()]);
        output_of(&mut example).map(drop)
    }

    /// Requests leases until `leases` requests are accepted.
    pub fn fill(&mut self, caller: &Caller, leases: usize) -> Result<()> {
        let (mut accepted, mut refused) = (0, 0);
        while accepted < leases {
            let requests: Vec<Value> = (0..(leases - accepted).min(1000)).map(|_| self.lease()).collect();
            for answer in together(caller, "/v1/leases", requests) {
                match answer? {
                    Answer { status: 201, .. } => accepted += 1,
                    answer if answer.is_shortage() => refused += 1,
                    answer => bail!("a lease was answered with {}", answer.status),
                }
            }
            if refused > REFUSALS * (accepted + 1000) {
                bail!("only {accepted} of {leases} leases fit on {} hosts", self.hosts);
            }
        }
        Ok(())
    }

    /// Requests leases of some hosts that start now and last for some days.
    pub fn begin(&mut self, caller: &Caller, leases: usize) -> Result<()> {
        let lease = |_| {
            let hosts = self.random.between(1, 3) as usize;
            let end = Minute::now().plus(60 * self.random.between(48, 24 * 20));
            json!({"name": "measured", "start_date": "now", "end_date": end.sent(),
                   "reservations": [whole_hosts(hosts, hosts)]})
        };
        let requests: Vec<Value> = (0..leases).map(lease).collect();
        together(caller, "/v1/leases", requests).into_iter().try_for_each(|answer| {
            let answer = answer?;
            if answer.is_shortage() { Ok(()) } else { answer.expect(201).map(drop) }
        })
    }

    /// A typical lease: some hosts, in some cases with a certain capability, or some instances.
    pub fn lease(&mut self) -> Value {
        let reservation = if self.random.chance(33) {
            json!({"resource_type": "virtual:instance", "vcpus": 4, "memory_mb": 8192, "disk_gb": 20,
                   "amount": self.random.between(1, 20), "affinity": null, "resource_properties": ""})
        } else {
            let hosts = self.random.between(1, 8) as usize;
            let wanted = format!(r#"["==", "$capability2", "{}"]"#, self.random.below(4));
            let wanted = if self.random.chance(33) { wanted } else { String::new() };
            let mut reservation = whole_hosts(hosts, hosts);
            reservation["resource_properties"] = json!(wanted);
            reservation
        };
        let hours = self.random.between(1, 168);
        self.of(&reservation, YEAR_HOURS, hours)
    }

    /// A lease that needs 60 to 95 % of all hosts or of all hosts with a capability, so it is usually
    /// refused.
    pub fn wide_lease(&mut self) -> Value {
        let share = self.random.between(60, 95) as usize;
        let (all, wanted) = if self.random.chance(50) {
            (self.hosts, String::new())
        } else {
            (self.hosts / 4, format!(r#"["==", "$capability2", "{}"]"#, self.random.below(4)))
        };
        let hosts = (all * share / 100).max(1);
        let mut reservation = whole_hosts(hosts, hosts);
        reservation["resource_properties"] = json!(wanted);
        let hours = self.random.between(1, 168);
        self.of(&reservation, YEAR_HOURS, hours)
    }

    /// A lease of a single host for some hours.
    pub fn small_lease(&mut self) -> Value {
        let hours = self.random.between(1, 24);
        self.of(&whole_hosts(1, 1), YEARS * YEAR_HOURS, hours)
    }

    fn of(&mut self, reservation: &Value, within_hours: i64, hours: i64) -> Value {
        let start = self.origin.plus(60 * self.random.between(0, within_hours));
        json!({"name": "measured", "start_date": start.sent(), "end_date": start.plus(60 * hours).sent(),
               "reservations": [reservation]})
    }
}

/// Sends requests, [`AT_ONCE`] at a time, and returns the answers in order of arrival.
pub fn together(caller: &Caller, path: &str, bodies: impl IntoIterator<Item = Value>) -> Vec<Result<Answer>> {
    let http = caller.http();
    let send = |body: Value| async move { http.send(Method::POST, path, Some(&body)).await };
    caller.wait(stream::iter(bodies).map(send).buffer_unordered(AT_ONCE).collect())
}

/// Identifier of the lease in an answer.
pub fn id(answer: &Value) -> Result<String> {
    text(&answer["lease"], "id").map(str::to_owned).context("no lease in the answer")
}
