//! A node: etcd, Patroni, and the PostgreSQL that Patroni runs, in a network namespace.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use chores::run::{must_run, output_of, write};

use super::{network, sandbox};

/// User that Debian's packages create for PostgreSQL, which refuses to run as root.
const USER: &str = "postgres";
/// Time for the kernel to end killed processes.
const KILL_LIMIT: Duration = Duration::from_secs(20);

/// Patroni's name of the cluster.
pub const SCOPE: &str = "lab";
/// The service's user and password. The password is only used inside the sandbox.
pub const SERVICE: (&str, &str) = ("allot", "of-the-lab");

/// A node of the cluster and its processes.
#[derive(Debug)]
pub struct Node {
    name: String,
    address: String,
    directory: PathBuf,
    logs: PathBuf,
    protocol: Protocol,
    running: Vec<Child>,
}

/// Version of etcd's protocol that Patroni uses.
///
/// With version 3, Patroni before 3.0.3 overwrites the leader's key unconditionally: a primary that was cut
/// off becomes the primary again when its network is healed, and writes that its successor acknowledged are
/// lost. (This lab has seen it; <https://github.com/patroni/patroni/pull/2689>.) Version 2 was dropped in
/// etcd 3.6.
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

    /// Protocol for the output of `patroni --version`, for example `patroni 3.0.2`.
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
    /// Creates the node's namespace and directory. No process is started yet.
    pub fn new(number: usize, logs: &Path) -> Result<Self> {
        let (name, address) = (format!("db{number}"), network::address(number));
        network::add(&name, &address)?;
        let directory = sandbox::directory().join(&name);
        must_run(Command::new("install").args(["-d", "-m", "700", "-o", USER, "-g", USER]).arg(&directory))?;
        let protocol = Protocol::of_the_installed()?;
        Ok(Self { name, address, directory, logs: logs.to_owned(), protocol, running: Vec::new() })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// URL of Patroni's REST API.
    pub fn patroni(&self) -> String {
        format!("http://{}:8008", self.address)
    }

    /// Path of Patroni's configuration, which `patronictl` reads too.
    pub fn configuration(&self) -> PathBuf {
        self.directory.join("patroni.yml")
    }

    /// Starts etcd and Patroni, as a booting machine would. `nodes` has the names and addresses of all nodes.
    pub fn start(&mut self, nodes: &[(String, String)]) -> Result<()> {
        let etcd = self.etcd(nodes);
        self.spawn("etcd", &etcd)?;
        let servers: Vec<String> = nodes.iter().map(|(_, address)| format!("{address}:2379")).collect();
        write(&self.configuration(), self.patroni_configuration(&servers)?.as_bytes())?;
        let configuration = self.configuration().display().to_string();
        self.spawn("patroni", &["patroni".to_owned(), configuration])
    }

    /// Kills all processes at once. Like a power loss, except that the kernel still writes its buffers.
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
            // Some can have ended since they were listed.
            let _ = Command::new("kill").arg("-9").args(&processes).stderr(Stdio::null()).status();
            sleep(Duration::from_millis(20));
        }
        for mut child in self.running.drain(..) {
            child.wait().context("the killed process does not end")?;
        }
        Ok(())
    }

    /// Runs a statement on this node's server with psql, as superuser and over the Unix socket. After
    /// `seconds`, psql is killed; the server isn't told, so the statement keeps waiting there.
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

    /// The settings that docs/how-to/operations.md recommends, and settings to bootstrap an empty cluster.
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

/// Directory of the newest PostgreSQL's programs on Debian.
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
