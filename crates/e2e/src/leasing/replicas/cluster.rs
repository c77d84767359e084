//! Several services on one PostgreSQL, each connected through its own proxy, and hosts that every service
//! hands over.

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

/// Names of the services.
pub const NAMES: [&str; 3] = ["one", "two", "three"];
/// Time after which another service can claim a step that a service left undone.
pub const STEP_TIME: Duration = Duration::from_secs(8);
/// Time until a recovered service must serve, even on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);
/// Name of leases without reservations that test whether a service works.
const PROBE: &str = "to see whether it works";
/// Timeout of a request while waiting for a service to work. It is repeated after that.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// The services, with their shared database and hosts.
#[derive(Debug)]
pub struct Cluster {
    pub replicas: Vec<Replica>,
    pub hooks: Hooks,
    pub postgres: ScratchPostgres,
    _directory: TempDir,
}

/// One of the services.
#[derive(Debug)]
pub struct Replica {
    pub name: &'static str,
    /// URL without `/v1`. It survives restarts.
    pub url: String,
    /// Its connection to the database.
    pub proxy: Proxy,
    launch: Launch,
    server: Option<Server>,
}

impl Cluster {
    /// Starts the database and all services, and registers `machines` hosts.
    pub fn start(ours: &Executable, machines: usize) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let hooks = Hooks::new(directory.path(), machines)?;
        let postgres = ScratchPostgres::start().map_err(|error| anyhow!(error))?;
        postgres.run("CREATE DATABASE allot").map_err(|error| anyhow!(error))?;
        let replica = |name| Replica::start(name, ours, directory.path(), &hooks, &postgres);
        // One after another: the first creates the schema.
        let replicas = NAMES.into_iter().map(replica).collect::<Result<Vec<_>>>()?;
        let cluster = Self { replicas, hooks, postgres, _directory: directory };
        for id in 1..=machines {
            cluster.caller(id)?.post("/v1/os-hosts", &json!({"name": machine(id)}))?.expect(201)?;
        }
        Ok(cluster)
    }

    /// Client of the service with that number, modulo their count.
    pub fn caller(&self, number: usize) -> Result<&Caller> {
        let replica = &self.replicas[number % self.replicas.len()];
        Ok(replica.server.as_ref().with_context(|| format!("{} does not run", replica.name))?.caller())
    }

    /// URLs of the services.
    pub fn urls(&self) -> Vec<String> {
        self.replicas.iter().map(|replica| replica.url.clone()).collect()
    }

    /// Waits until every service can make changes.
    pub fn until_all_work(&self) -> Result<()> {
        self.replicas.iter().try_for_each(Replica::until_it_works)
    }

    /// Deletes all probes. Probes without an answer to their creation are unknown to clients, and must be
    /// gone before leases are checked.
    pub fn delete_probes(&self) -> Result<()> {
        delete_probes(self.caller(0)?)
    }

    /// Last log lines of the services, for error messages.
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

    /// Kills the service, as a power cut would.
    pub fn kill(&mut self) -> Result<()> {
        self.server.take().map_or(Ok(()), Server::kill)
    }

    /// Stops the service, which must exit successfully.
    pub fn stop(&mut self) -> Result<()> {
        let server = self.server.take().with_context(|| format!("{} does not run", self.name))?;
        let status = server.stop()?;
        ensure!(status.success(), "{} was told to stop, and ended with {status}", self.name);
        Ok(())
    }

    /// Number of steps that the service has given up since its first start because its claim had expired. It
    /// kills their hooks.
    pub fn steps_given_up(&self) -> usize {
        let said = self.launch.said();
        ["no answer in time", "claim lost, step given up"].iter().map(|why| said.matches(why).count()).sum()
    }

    /// Starts the service unless it is running.
    pub fn start_again(&mut self) -> Result<()> {
        if self.server.is_none() {
            self.server = Some(self.launch.start()?);
        }
        Ok(())
    }

    /// Waits until the service can make changes, by creating and deleting a probe.
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

/// Deletes all probes, including probes without an answer to their creation.
fn delete_probes(caller: &Caller) -> Result<()> {
    for lease in caller.leases()?.iter().filter(|lease| lease["name"] == PROBE) {
        let id = lease["id"].as_str().context("no id")?;
        let answer = caller.delete(&format!("/v1/leases/{id}"))?;
        // Another service can have been asked to delete it too.
        ensure!(
            [204, 404].contains(&answer.status),
            "a lease without reservations was not deleted: {answer:?}"
        );
    }
    Ok(())
}

/// A lease far in the future that takes no resources.
fn of_nothing() -> serde_json::Value {
    let start = crate::leasing::date::Minute::now().plus(60 * 24 * 100);
    json!({"name": PROBE, "start_date": start.sent(), "end_date": start.plus(1).sent(),
           "reservations": []})
}
