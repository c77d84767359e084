//! `allot serve` as a process, on a free local port.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use chores::run::{Executable, output_of};

use super::hooks::Hooks;
use super::http::Caller;

/// Time until a new service must be ready.
const START_LIMIT: Duration = Duration::from_mins(1);
/// Time until a stopped service must exit. It gives requests 30 seconds, and then steps their time.
const STOP_LIMIT: Duration = Duration::from_mins(1);
/// Ports for services.
const PORTS: std::ops::Range<u32> = 15_000..30_000;
/// Number of log lines in an error message.
const LINES_SHOWN: usize = 15;

/// Options to start a service. A restarted service finds its database and machines unchanged.
#[derive(Clone, Debug)]
#[must_use]
pub struct Launch {
    program: PathBuf,
    directory: PathBuf,
    fleet: Fleet,
    listen: Option<String>,
    log: String,
    arguments: Vec<String>,
    through: Vec<String>,
    environment: Vec<(String, String)>,
}

/// The service's fleet driver.
#[derive(Clone, Debug)]
enum Fleet {
    /// Machines in the memory of this one service, with that timing.
    Simulated(&'static str),
    /// Hooks configured in that file. Several services can share them.
    Hooks(PathBuf),
    /// Compute hosts of the cloud named in the options.
    OpenStack,
}

impl Launch {
    /// A service without authentication that keeps all its files in `directory`.
    pub fn new(ours: &Executable, directory: &Path) -> Self {
        let service = Self {
            program: ours.path.clone(),
            directory: directory.to_owned(),
            fleet: Fleet::Simulated("immediate"),
            listen: None,
            log: "serve.log".to_owned(),
            arguments: Vec::new(),
            through: Vec::new(),
            environment: Vec::new(),
        };
        service.with_database(&format!("sqlite://{}", directory.join("allot.db").display()))
    }

    /// Adds command-line options.
    pub fn with<S: Into<String>>(mut self, options: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(options.into_iter().map(Into::into));
        self
    }

    /// Sets authentication, for example `tokens:FILE`. Lifts the limits that are on by default with
    /// authentication, because stages send as many requests as they can.
    pub fn with_auth(self, auth: &str) -> Self {
        self.with(["--auth", auth, "--limits-requests-per-second", "0", "--quota-leases", "unlimited"])
    }

    /// Sets the number of machines, numbered from 1. The default is a few in each of several racks.
    pub fn with_machines(self, number: usize) -> Self {
        self.with(["--simulated-racks", "1", "--simulated-hosts-per-rack"]).with([number.to_string()])
    }

    /// Has machines take as long as real ones. By default, everything is instantaneous.
    pub fn with_lifelike_machines(self) -> Self {
        Self { fleet: Fleet::Simulated("lifelike"), ..self }
    }

    /// Uses machines that are handed over by hooks. Services that share a database need them.
    pub fn with_hooks(self, hooks: &Hooks) -> Self {
        Self { fleet: Fleet::Hooks(hooks.config()), ..self }
    }

    /// Uses the compute hosts of a cloud, which other options name.
    pub fn with_openstack(self) -> Self {
        Self { fleet: Fleet::OpenStack, ..self }
    }

    /// Sets the service's name among the services that share a database, and gives it its own log. The name
    /// is in the environment too, so that hooks know which service calls them.
    pub fn with_name(self, name: &str) -> Self {
        Self {
            log: format!("{name}.log"),
            ..self.environment("ALLOT_NAME", name).environment("SERVICE_NAME", name)
        }
    }

    /// Sets the address, `ADDRESS:PORT`. The default is a free local port.
    pub fn at(self, address: &str) -> Self {
        Self { listen: Some(address.to_owned()), ..self }
    }

    /// Passes the command line to another program, which must replace itself by the service (`exec`).
    pub fn through<S: Into<String>>(mut self, words: impl IntoIterator<Item = S>) -> Self {
        self.through = words.into_iter().map(Into::into).collect();
        self
    }

    /// Sets an environment variable.
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the database URL: `sqlite://FILE` or `postgres://...`. It is passed in the environment, so that
    /// other users of the machine don't see the password.
    pub fn with_database(self, url: &str) -> Self {
        self.environment("ALLOT_DATABASE", url)
    }

    /// Starts the service, and waits until it is ready.
    pub fn start(&self) -> Result<Server> {
        let mut server = self.spawn()?;
        server.wait_until_ready()?;
        Ok(server)
    }

    /// Starts the service without waiting.
    pub fn spawn(&self) -> Result<Server> {
        let listen = self.listen.clone().map_or_else(free_address, Ok)?;
        let log = self.directory.join(&self.log);
        let written = File::options().create(true).append(true).open(&log);
        let written = written.with_context(|| format!("cannot write {}", log.display()))?;
        let words = self.words(&listen);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(&self.directory).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("ALLOT_") {
                command.env_remove(name);
            }
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdout(written.try_clone()?).stderr(written);
        let child = command.spawn().with_context(|| format!("cannot run {}", words[0]))?;
        let url = format!("http://{listen}");
        Ok(Server { child, caller: Caller::new(&url)?, url, log })
    }

    /// Log of all services started with this directory and name.
    pub fn said(&self) -> String {
        fs::read_to_string(self.directory.join(&self.log)).unwrap_or_default()
    }

    fn words(&self, listen: &str) -> Vec<String> {
        let mut words: Vec<String> = self.through.clone();
        words.push(self.program.display().to_string());
        words.extend(["serve", "--listen", listen, "--fleet"].map(str::to_owned));
        match &self.fleet {
            Fleet::Hooks(config) => words.push(format!("hooks:{}", config.display())),
            Fleet::OpenStack => words.push("openstack".to_owned()),
            Fleet::Simulated(timing) => {
                // Like real machines, simulated ones keep their state when the service is restarted.
                let state = self.directory.join("machines.json").display().to_string();
                let simulated = ["simulated", "--simulated-timing", timing, "--simulated-state-file", &state];
                words.extend(simulated.map(str::to_owned));
            }
        }
        words.extend(self.arguments.iter().cloned());
        words
    }
}

/// A running service. Dropping it kills the process.
#[derive(Debug)]
pub struct Server {
    child: Child,
    caller: Caller,
    url: String,
    log: PathBuf,
}

impl Server {
    /// URL without `/v1`.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Process id.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Waits until `/readyz` answers 200.
    pub fn wait_until_ready(&mut self) -> Result<()> {
        let started = Instant::now();
        loop {
            if self.caller.get("/readyz").is_ok_and(|answer| answer.status == 200) {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("allot serve ended ({status}):\n{}", self.last_lines());
            }
            if started.elapsed() > START_LIMIT {
                bail!("allot serve is not ready after {} s:\n{}", START_LIMIT.as_secs(), self.last_lines());
            }
            sleep(Duration::from_millis(10));
        }
    }

    /// Kills the service. Like a power cut, except that the kernel still writes its buffers.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill().context("cannot kill allot serve")?;
        self.child.wait().context("allot serve was killed, but does not end").map(drop)
    }

    /// Sends SIGTERM, as an operator would, and waits for the exit.
    pub fn stop(mut self) -> Result<ExitStatus> {
        output_of(Command::new("kill").arg(self.child.id().to_string()))?;
        let told = Instant::now();
        while told.elapsed() < STOP_LIMIT {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            sleep(Duration::from_millis(10));
        }
        bail!("allot serve does not stop within {} s:\n{}", STOP_LIMIT.as_secs(), self.last_lines())
    }

    /// Last log lines, for error messages.
    pub fn last_lines(&self) -> String {
        let said = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Errors are ignored: the service can have ended on its own.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a local address without a listener. Another process can take it before it is used; then the
/// service fails to start and says so.
///
/// The port is below the range of ephemeral ports: while a service is down, a client that tries to reach it
/// could otherwise be assigned the service's own port, and the service could not start again.
pub fn free_address() -> Result<String> {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    // Chores that run at the same time begin at different ports.
    let first = std::process::id().wrapping_mul(97);
    for _ in PORTS {
        let number = first.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed));
        let port = PORTS.start + number % (PORTS.end - PORTS.start);
        let address = format!("127.0.0.1:{port}");
        if TcpListener::bind(&address).is_ok() {
            return Ok(address);
        }
    }
    bail!("every port from {} to {} of this machine is in use", PORTS.start, PORTS.end - 1)
}
