//! Several services on one PostgreSQL, each with a line of its own to it, and machines that all of them hand over.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use chores::run::Executable;
use scratch_postgres::ScratchPostgres;
use serde_json::json;
use tempfile::TempDir;

use super::proxy::Proxy;
use crate::leasing::hooks::{Hooks, machine};
use crate::leasing::http::Caller;
use crate::leasing::server::{Launch, Server, free_address};

/// What services are called.
pub const NAMES: [&str; 3] = ["one", "two", "three"];
/// A step that a service left undone is another's after that long.
pub const STEP_TIME: Duration = Duration::from_secs(8);
/// A service that is well again serves within that time, however busy the machine is.
const PATIENCE: Duration = Duration::from_mins(2);
/// What leases of nothing are called, which are made to see whether a service works.
const PROBE: &str = "to see whether it works";
/// How long one answer is waited for meanwhile; then the service is asked again.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// The services, and what they share.
#[derive(Debug)]
pub struct Cluster {
    pub replicas: Vec<Replica>,
    pub hooks: Hooks,
    pub postgres: ScratchPostgres,
    _directory: TempDir,
}

/// A service.
#[derive(Debug)]
pub struct Replica {
    pub name: &'static str,
    /// Its address, without the `/v1`. It stays the same when the service is started again.
    pub url: String,
    /// Its line to the database.
    pub proxy: Proxy,
    launch: Launch,
    server: Option<Server>,
}

impl Cluster {
    /// Starts everything, and takes so many machines on.
    pub fn start(ours: &Executable, machines: usize) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let hooks = Hooks::new(directory.path(), machines)?;
        let postgres = ScratchPostgres::start().map_err(|error| anyhow!(error))?;
        postgres.run("CREATE DATABASE allot").map_err(|error| anyhow!(error))?;
        let replica = |name| Replica::start(name, ours, directory.path(), &hooks, &postgres);
        // One after the other: the first makes the schema.
        let replicas = NAMES.into_iter().map(replica).collect::<Result<Vec<_>>>()?;
        let cluster = Self { replicas, hooks, postgres, _directory: directory };
        for id in 1..=machines {
            cluster.caller(id)?.post("/v1/os-hosts", &json!({"name": machine(id)}))?.expect(201)?;
        }
        Ok(cluster)
    }

    /// A client of one of the services.
    pub fn caller(&self, number: usize) -> Result<&Caller> {
        let replica = &self.replicas[number % self.replicas.len()];
        Ok(replica.server.as_ref().with_context(|| format!("{} does not run", replica.name))?.caller())
    }

    /// Addresses of the services.
    pub fn urls(&self) -> Vec<String> {
        self.replicas.iter().map(|replica| replica.url.clone()).collect()
    }

    /// Waits until every service can change something.
    pub fn until_all_work(&self) -> Result<()> {
        self.replicas.iter().try_for_each(Replica::until_it_works)
    }

    /// Nobody is told of leases whose making was not answered, so they are deleted before leases are judged.
    pub fn delete_probes(&self) -> Result<()> {
        delete_probes(self.caller(0)?)
    }

    /// What the services said last, for a complaint.
    pub fn last_lines(&self) -> String {
        let servers =
            self.replicas.iter().filter_map(|replica| Some((replica.name, replica.server.as_ref()?)));
        let said: Vec<_> =
            servers.map(|(name, server)| format!("{name}:\n{}", server.last_lines())).collect();
        said.join("\n")
    }
}

impl Replica {
    fn start(
        name: &'static str,
        ours: &Executable,
        directory: &Path,
        hooks: &Hooks,
        postgres: &ScratchPostgres,
    ) -> Result<Self> {
        let proxy = Proxy::before(postgres.socket())?;
        let listen = free_address()?;
        let step_time = format!("{}s", STEP_TIME.as_secs());
        let launch = Launch::new(ours, directory)
            .with_hooks(hooks)
            .with_name(name)
            .at(&listen)
            .with_database(&format!("postgres://postgres@{}/allot", proxy.address()))
            .with(["--limits-step-time", &step_time, "--log-level", "info,server=warn"]);
        let server = Some(launch.start()?);
        Ok(Self { name, url: format!("http://{listen}"), proxy, launch, server })
    }

    /// Ends it as a power cut would.
    pub fn kill(&mut self) -> Result<()> {
        self.server.take().map_or(Ok(()), Server::kill)
    }

    /// Tells it to stop, and waits until it has done so, and well.
    pub fn stop(&mut self) -> Result<()> {
        let server = self.server.take().with_context(|| format!("{} does not run", self.name))?;
        let status = server.stop()?;
        ensure!(status.success(), "{} was told to stop, and ended with {status}", self.name);
        Ok(())
    }

    /// How many steps it has given up because its claim of them was over, since it was first started. What it
    /// had called for them it killed.
    pub fn steps_given_up(&self) -> usize {
        let said = self.launch.said();
        ["no answer in time", "claim lost, step given up"].iter().map(|why| said.matches(why).count()).sum()
    }

    /// Starts it again, unless it runs.
    pub fn start_again(&mut self) -> Result<()> {
        if self.server.is_none() {
            self.server = Some(self.launch.start()?);
        }
        Ok(())
    }

    /// Waits until it can change something: a lease of nothing is made and deleted.
    fn until_it_works(&self) -> Result<()> {
        let caller = Caller::impatient(&self.url, ANSWER_LIMIT)?;
        let started = Instant::now();
        loop {
            let made_and_deleted = caller
                .post("/v1/leases", &of_nothing())
                .and_then(|answer| answer.expect(201))
                .and_then(|_| delete_probes(&caller));
            let Err(error) = made_and_deleted else { return Ok(()) };
            if started.elapsed() > PATIENCE {
                bail!("{} does not work after {} s: {error:#}", self.name, PATIENCE.as_secs());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Deletes leases of nothing that were made to see whether a service works, also those whose making was not answered.
fn delete_probes(caller: &Caller) -> Result<()> {
    for lease in caller.leases()?.iter().filter(|lease| lease["name"] == PROBE) {
        let id = lease["id"].as_str().context("no id")?;
        let answer = caller.delete(&format!("/v1/leases/{id}"))?;
        // Another service may have been asked to delete it as well.
        ensure!([204, 404].contains(&answer.status), "a lease of nothing was not deleted: {answer:?}");
    }
    Ok(())
}

/// A lease far ahead that keeps nobody from anything.
fn of_nothing() -> serde_json::Value {
    let start = crate::leasing::date::Minute::now().plus(60 * 24 * 100);
    json!({"name": PROBE, "start_date": start.sent(), "end_date": start.plus(1).sent(),
           "reservations": []})
}
