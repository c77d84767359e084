//! A RabbitMQ process.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use chores::places;
use chores::run::output_of;

use crate::leasing::server::free_address;

/// Time until a new broker must accept connections.
const START_LIMIT: Duration = Duration::from_mins(3);

/// User and password of a new broker.
pub const USER: &str = "guest:guest";

/// A broker. Dropping it kills the process; a restarted broker still has its data.
pub struct Broker {
    directory: PathBuf,
    /// Addresses for AMQP and for AMQP over TLS.
    plain: String,
    encrypted: String,
    /// Erlang's port mapper, which the broker registers with. Without it, the broker would start its own port
    /// mapper, which outlives the broker.
    epmd: Child,
    epmd_port: String,
    distribution_port: String,
    server: Option<Child>,
}

impl Broker {
    /// Starts a broker that keeps its data in `directory`. Its TLS certificate is `certificate.pem` with
    /// `key.pem` in that directory.
    pub fn start(directory: &Path) -> Result<Self> {
        let port =
            || Ok::<_, anyhow::Error>(free_address()?.rsplit(':').next().unwrap_or_default().to_owned());
        let epmd_port = port()?;
        let epmd = Command::new("epmd").args(["-port", &epmd_port, "-address", "127.0.0.1"]).spawn();
        let mut broker = Self {
            directory: directory.to_owned(),
            plain: free_address()?,
            encrypted: free_address()?,
            epmd: epmd.context("cannot run epmd")?,
            epmd_port,
            distribution_port: port()?,
            server: None,
        };
        broker.restart()?;
        Ok(broker)
    }

    /// Address for AMQP: `HOST:PORT`.
    pub fn address(&self) -> &str {
        &self.plain
    }

    /// Address for AMQP over TLS: `HOST:PORT`.
    pub fn encrypted(&self) -> &str {
        &self.encrypted
    }

    /// Starts the broker, which must not be running, and waits until it accepts connections.
    pub fn restart(&mut self) -> Result<()> {
        let at = |name: &str| self.directory.join(name);
        let configuration = format!(
            "listeners.tcp.1 = {}\nlisteners.ssl.1 = {}\nssl_options.certfile = {}\nssl_options.keyfile = {}\n\
             loopback_users = none\nvm_memory_high_watermark.absolute = 512MB\ndisk_free_limit.absolute = 50MB\n",
            self.plain,
            self.encrypted,
            at("certificate.pem").display(),
            at("key.pem").display(),
        );
        fs::write(at("rabbitmq.conf"), configuration)?;
        fs::write(at("enabled_plugins"), "[].")?;
        let said = fs::File::create(at("rabbitmq.log"))?;
        let mut command = Command::new(program()?);
        command.process_group(0).stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said);
        command.env("HOME", &self.directory).env("RABBITMQ_CONF_ENV_FILE", "/dev/null");
        command.env("RABBITMQ_NODENAME", format!("allot{}@localhost", self.epmd_port));
        command.env("ERL_EPMD_PORT", &self.epmd_port).env("ERL_EPMD_ADDRESS", "127.0.0.1");
        command.env("RABBITMQ_DIST_PORT", &self.distribution_port);
        for (variable, name) in [
            ("RABBITMQ_CONFIG_FILE", "rabbitmq.conf"),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", "enabled_plugins"),
            ("RABBITMQ_LOG_BASE", "log"),
            ("RABBITMQ_MNESIA_BASE", "mnesia"),
            ("RABBITMQ_PID_FILE", "pid"),
        ] {
            command.env(variable, at(name));
        }
        self.server = Some(command.spawn().context("cannot run rabbitmq-server")?);
        let started = Instant::now();
        while std::net::TcpStream::connect(&self.plain).is_err() {
            let ended = self.server.as_mut().map(Child::try_wait).transpose()?.flatten();
            if ended.is_some() || started.elapsed() > START_LIMIT {
                bail!("RabbitMQ does not start:\n{}", fs::read_to_string(at("rabbitmq.log"))?);
            }
            sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Kills the broker, as a power cut would.
    pub fn kill(&mut self) -> Result<()> {
        let Some(mut server) = self.server.take() else { return Ok(()) };
        output_of(Command::new("kill").args(["-KILL", "--", &format!("-{}", server.id())]))?;
        server.wait().context("RabbitMQ was killed, but does not end").map(drop)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // Errors are ignored: the broker can have ended on its own.
        let _ = self.kill();
        let _ = self.epmd.kill();
        let _ = self.epmd.wait();
    }
}

/// Path of the server itself. Debian's script in the search path would change the user first.
fn program() -> Result<PathBuf> {
    places::need_program("rabbitmq-server", "rabbitmq-server")?;
    let versions = fs::read_dir("/usr/lib/rabbitmq/lib").into_iter().flatten().flatten();
    let mut programs =
        versions.map(|version| version.path().join("sbin/rabbitmq-server")).filter(|path| path.is_file());
    programs.next().context(
        "RabbitMQ is not under /usr/lib/rabbitmq/lib: install it with 'apt-get install rabbitmq-server'",
    )
}
