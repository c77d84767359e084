//! `allot serve` as a process of its own, on a free port of this machine.

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

/// A service that does not answer after that long does not start.
const START_LIMIT: Duration = Duration::from_mins(1);
/// How long a service that was told to stop may take. It gives requests 30 seconds, and then steps their time.
const STOP_LIMIT: Duration = Duration::from_mins(1);
/// Ports that services are given.
const PORTS: std::ops::Range<u32> = 15_000..30_000;
/// How much of the log a complaint shows.
const LINES_SHOWN: usize = 15;

/// How to start a service. Starting it again finds the database and the machines as they were left.
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

/// What runs the machines.
#[derive(Clone, Debug)]
enum Fleet {
    /// Machines in the memory of this one service, with that timing.
    Simulated(&'static str),
    /// Hooks as that file says, which several services may share.
    Hooks(PathBuf),
    /// The compute hosts of a cloud, which options name.
    OpenStack,
}

impl Launch {
    /// A service without authentication that keeps everything in that directory.
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

    /// The same with further options.
    pub fn with<S: Into<String>>(mut self, options: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(options.into_iter().map(Into::into));
        self
    }

    /// The same with another way to log in than none: `tokens:FILE`. Without the limits that come with it: stages send as
    /// much as they can.
    pub fn with_auth(self, auth: &str) -> Self {
        self.with(["--auth", auth, "--limits-requests-per-second", "0", "--quota-leases", "unlimited"])
    }

    /// The same with so many machines, numbered from 1. Without this, there are a few in each of several racks.
    pub fn with_machines(self, number: usize) -> Self {
        self.with(["--simulated-racks", "1", "--simulated-hosts-per-rack"]).with([number.to_string()])
    }

    /// The same with machines that take their time, as real ones do. Usually everything is done at once.
    pub fn with_lifelike_machines(self) -> Self {
        Self { fleet: Fleet::Simulated("lifelike"), ..self }
    }

    /// The same with machines that change hands by hooks, as those of several services must.
    pub fn with_hooks(self, hooks: &Hooks) -> Self {
        Self { fleet: Fleet::Hooks(hooks.config()), ..self }
    }

    /// The same with the compute hosts of a cloud. Options say which.
    pub fn with_openstack(self) -> Self {
        Self { fleet: Fleet::OpenStack, ..self }
    }

    /// The same with a name among those that share a database, and with a log of its own. The name is in the
    /// environment, so that hooks know who calls them.
    pub fn with_name(self, name: &str) -> Self {
        Self {
            log: format!("{name}.log"),
            ..self.environment("ALLOT_NAME", name).environment("SERVICE_NAME", name)
        }
    }

    /// The same on a certain address, `ADDRESS:PORT`. Without this, it is a free port of this machine.
    pub fn at(self, address: &str) -> Self {
        Self { listen: Some(address.to_owned()), ..self }
    }

    /// The same as an argument of another program, which becomes it.
    pub fn through<S: Into<String>>(mut self, words: impl IntoIterator<Item = S>) -> Self {
        self.through = words.into_iter().map(Into::into).collect();
        self
    }

    /// The same with a variable of the environment.
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same with another database: `sqlite://FILE` or `postgres://...`. It is told in the environment, where
    /// not everybody on the machine sees the password.
    pub fn with_database(self, url: &str) -> Self {
        self.environment("ALLOT_DATABASE", url)
    }

    /// Starts it, and returns when it is ready.
    pub fn start(&self) -> Result<Server> {
        let mut server = self.spawn()?;
        server.wait_until_ready()?;
        Ok(server)
    }

    /// Starts it.
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

    /// All that services started like this have said.
    pub fn said(&self) -> String {
        fs::read_to_string(self.directory.join(&self.log)).unwrap_or_default()
    }

    /// The command line.
    fn words(&self, listen: &str) -> Vec<String> {
        let mut words: Vec<String> = self.through.clone();
        words.push(self.program.display().to_string());
        words.extend(["serve", "--listen", listen, "--fleet"].map(str::to_owned));
        match &self.fleet {
            Fleet::Hooks(config) => words.push(format!("hooks:{}", config.display())),
            Fleet::OpenStack => words.push("openstack".to_owned()),
            Fleet::Simulated(timing) => {
                // Machines are as they were left when the service starts again, as real ones would be.
                let state = self.directory.join("machines.json").display().to_string();
                let simulated = ["simulated", "--simulated-timing", timing, "--simulated-state-file", &state];
                words.extend(simulated.map(str::to_owned));
            }
        }
        words.extend(self.arguments.iter().cloned());
        words
    }
}

/// A service that runs; it ends with its owner.
#[derive(Debug)]
pub struct Server {
    child: Child,
    caller: Caller,
    url: String,
    log: PathBuf,
}

impl Server {
    /// Its address, without the `/v1`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A client of it.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Returns when it can serve requests.
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

    /// Ends it as a power cut would, but for what the kernel still writes.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill().context("cannot kill allot serve")?;
        self.child.wait().context("allot serve was killed, but does not end").map(drop)
    }

    /// Tells it to stop, as an operator does, and waits for it.
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

    /// What it said last, for a complaint.
    pub fn last_lines(&self) -> String {
        let said = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address of this machine that nobody listens on. Somebody else may take it before it is used; then the
/// service does not start, and says so.
///
/// Its port is below those that the system gives to connections: while a service is down, a client that tries to
/// reach it could otherwise be given the very port of the service, which does not start again then.
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
    bail!("somebody listens on every port from {} to {} of this machine", PORTS.start, PORTS.end - 1)
}
