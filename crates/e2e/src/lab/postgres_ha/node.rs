//! A node: etcd, Patroni, and PostgreSQL as Patroni runs it, in a name space of the network.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use chores::run::{must_run, output_of, write};

use super::{network, sandbox};

/// The user that Debian's packages make for PostgreSQL, which refuses to run as root.
const USER: &str = "postgres";
/// How long the kernel may take to end what was killed.
const KILL_LIMIT: Duration = Duration::from_secs(20);

/// The name of the cluster, as Patroni has it.
pub const SCOPE: &str = "lab";
/// The service's user and its password, which is known to nobody outside of the sandbox.
pub const SERVICE: (&str, &str) = ("allot", "of-the-lab");

/// A node.
#[derive(Debug)]
pub struct Node {
    name: String,
    address: String,
    directory: PathBuf,
    logs: PathBuf,
    protocol: Protocol,
    running: Vec<Child>,
}

/// In which version of its protocol Patroni talks to etcd.
///
/// Before 3.0.3, Patroni overwrites the leader's key without looking when it uses version 3: a primary that was cut
/// off becomes the primary again when its network is healed, and what its successor has acknowledged is lost. (This
/// lab has seen it; <https://github.com/patroni/patroni/pull/2689>.) Version 2 is not offered any more by etcd 3.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Two,
    Three,
}

impl Protocol {
    fn of_the_installed() -> Result<Self> {
        let said = output_of(Command::new("patroni").arg("--version"))?;
        Self::of(&said).with_context(|| format!("patroni --version says {said}"))
    }

    /// The one for what `patroni --version` says: `patroni 3.0.2`.
    fn of(said: &str) -> Option<Self> {
        let version = said.split_whitespace().last()?;
        let numbers: Vec<u32> = version.split('.').map(str::parse).collect::<Result<_, _>>().ok()?;
        Some(if numbers < vec![3, 0, 3] { Self::Two } else { Self::Three })
    }

    fn is_three(self) -> bool {
        self == Self::Three
    }
}

impl Node {
    /// The one of that number, plugged in and with nothing running.
    pub fn new(number: usize, logs: &Path) -> Result<Self> {
        let (name, address) = (format!("db{number}"), network::address(number));
        network::add(&name, &address)?;
        let directory = sandbox::directory().join(&name);
        must_run(Command::new("install").args(["-d", "-m", "700", "-o", USER, "-g", USER]).arg(&directory))?;
        let protocol = Protocol::of_the_installed()?;
        Ok(Self { name, address, directory, logs: logs.to_owned(), protocol, running: Vec::new() })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Where Patroni answers.
    pub fn patroni(&self) -> String {
        format!("http://{}:8008", self.address)
    }

    /// Patroni's configuration, which `patronictl` reads as well.
    pub fn configuration(&self) -> PathBuf {
        self.directory.join("patroni.yml")
    }

    /// Starts everything, as at the start of a machine. `nodes` are all of the cluster.
    pub fn start(&mut self, nodes: &[(String, String)]) -> Result<()> {
        let etcd = self.etcd(nodes);
        self.spawn("etcd", &etcd)?;
        let servers: Vec<String> = nodes.iter().map(|(_, address)| format!("{address}:2379")).collect();
        write(&self.configuration(), self.patroni_configuration(&servers)?.as_bytes())?;
        let configuration = self.configuration().display().to_string();
        self.spawn("patroni", &["patroni".to_owned(), configuration])
    }

    /// Ends everything at once, as a loss of power does but for what the kernel still writes.
    pub fn kill(&mut self) -> Result<()> {
        let started = Instant::now();
        loop {
            let processes = network::processes(&self.name)?;
            if processes.is_empty() {
                break;
            }
            if started.elapsed() > KILL_LIMIT {
                bail!("{}: processes cannot be killed: {}", self.name, processes.join(" "));
            }
            // Some may have ended since they were counted.
            let _ = Command::new("kill").arg("-9").args(&processes).stderr(Stdio::null()).status();
            sleep(Duration::from_millis(20));
        }
        for mut child in self.running.drain(..) {
            child.wait().context("what was killed does not end")?;
        }
        Ok(())
    }

    /// Runs a statement on this node's server by its own client, as the superuser and without a network. Who takes
    /// longer than that many seconds is given up; the server is not told, so it goes on waiting for what it waits for.
    pub fn sql(&self, statement: &str, seconds: u32) -> Result<Output> {
        let limit = seconds.to_string();
        let words =
            ["timeout", "--signal=KILL", &limit, "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"];
        let mut command = self.command(&words.map(str::to_owned));
        command.arg("-h").arg(&self.directory).args(["-U", "postgres", "-d", "postgres", "-c", statement]);
        command.stdin(Stdio::null()).output().context("cannot run psql")
    }

    fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, "setpriv", "--init-groups"]);
        command.arg(format!("--reuid={USER}")).arg(format!("--regid={USER}")).args(words);
        command.current_dir(&self.directory).env("HOME", &self.directory).env("LC_ALL", "C.UTF-8");
        command
    }

    fn spawn(&mut self, what: &str, words: &[String]) -> Result<()> {
        let log = self.logs.join(format!("{}-{what}.log", self.name));
        let written = File::options().create(true).append(true).open(&log);
        let written = written.with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = self.command(words);
        command.stdin(Stdio::null()).stdout(written.try_clone()?).stderr(written);
        self.running.push(command.spawn().with_context(|| format!("cannot run {what}"))?);
        Ok(())
    }

    fn etcd(&self, nodes: &[(String, String)]) -> Vec<String> {
        let Self { name, address, directory, .. } = self;
        let peers: Vec<String> =
            nodes.iter().map(|(name, address)| format!("{name}=http://{address}:2380")).collect();
        vec![
            "etcd".to_owned(),
            format!("--name={name}"),
            format!("--data-dir={}", directory.join("etcd").display()),
            format!("--listen-peer-urls=http://{address}:2380"),
            format!("--initial-advertise-peer-urls=http://{address}:2380"),
            format!("--listen-client-urls=http://{address}:2379,http://127.0.0.1:2379"),
            format!("--advertise-client-urls=http://{address}:2379"),
            format!("--initial-cluster={}", peers.join(",")),
            format!("--initial-cluster-token={SCOPE}"),
            "--initial-cluster-state=new".to_owned(),
            format!("--enable-v2={}", !self.protocol.is_three()),
        ]
    }

    /// What docs/operations.md recommends, and what an empty cluster is made with.
    fn patroni_configuration(&self, etcd: &[String]) -> Result<String> {
        let Self { name, address, directory, .. } = self;
        let (directory, etcd, programs) = (directory.display(), etcd.join("','"), programs()?);
        let (user, password) = SERVICE;
        let protocol = if self.protocol.is_three() { "etcd3" } else { "etcd" };
        Ok(format!(
            "scope: {SCOPE}
name: {name}
restapi: {{listen: '{address}:8008', connect_address: '{address}:8008'}}
{protocol}: {{hosts: ['{etcd}']}}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 5
    retry_timeout: 5
    maximum_lag_on_failover: 1048576
    synchronous_mode: true
    postgresql:
      use_pg_rewind: true
      use_slots: true
      parameters:
        wal_log_hints: 'on'
        wal_sender_timeout: 10s
        wal_receiver_timeout: 10s
        max_connections: 100
        shared_buffers: 32MB
        max_wal_size: 256MB
        dynamic_shared_memory_type: mmap
  initdb: [{{encoding: UTF8}}, {{locale: C}}, data-checksums]
  users:
    {user}: {{password: '{password}', options: [createdb]}}
postgresql:
  listen: '{address}:5432'
  connect_address: '{address}:5432'
  data_dir: {directory}/data
  bin_dir: {programs}
  pgpass: {directory}/pgpass
  authentication:
    superuser: {{username: postgres, password: of-the-lab}}
    replication: {{username: replicator, password: of-the-lab}}
    rewind: {{username: rewinder, password: of-the-lab}}
  parameters: {{unix_socket_directories: {directory}}}
  pg_hba:
  - local all all trust
  - host replication replicator samenet scram-sha-256
  - host all all samenet scram-sha-256
"
        ))
    }
}

/// Where Debian keeps PostgreSQL's programs: those of the newest version.
fn programs() -> Result<String> {
    let text =
        output_of(Command::new("sh").args(["-c", "ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1"]))?;
    let place = text.trim();
    if !fs::exists(Path::new(place).join("initdb")).unwrap_or(false) {
        bail!(
            "PostgreSQL's server is not under /usr/lib/postgresql: install it with 'apt-get install postgresql'"
        );
    }
    Ok(place.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patroni_that_overwrites_the_leader_does_not_get_to_do_so() {
        for (said, protocol) in [
            ("patroni 3.0.2\n", Some(Protocol::Two)),
            ("patroni 3.0.3\n", Some(Protocol::Three)),
            ("patroni 2.1.7\n", Some(Protocol::Two)),
            ("patroni 4.0.4\n", Some(Protocol::Three)),
            ("patroni\n", None),
        ] {
            assert_eq!(Protocol::of(said), protocol, "{said}");
        }
    }
}
