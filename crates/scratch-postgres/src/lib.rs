//! A PostgreSQL server for the duration of a test or a chore, in a directory of its own.
//!
//! [`ScratchPostgres::start`] copies an empty server, starts it, and waits until it accepts connections.
//! [`ScratchPostgres::database`] then creates a database and returns its URL. Each test can have its own, or
//! a copy of a prepared one. [`ScratchPostgres::run`] and [`ScratchPostgres::run_files`] execute SQL with
//! `psql`. Tests of outages use [`ScratchPostgres::restart`], which crashes the server, and
//! [`ScratchPostgres::restart_in_order`].
//!
//! The server always ends with the process that started it, even if that process is killed: a shell waits for
//! the end of its standard input, then stops the server and removes the directory. Since no data has to
//! survive, the server doesn't sync its writes (`fsync = off`).
//!
//! It listens on a Unix socket in its directory only, unless [`ScratchPostgres::speak_tls`] adds a loopback
//! address. Started by root, it runs as a user without privileges (see `unprivileged.rs`).
//!
//! Creating the directory of an empty server takes longer than most tests, so it is kept between runs (see
//! `programs.rs`).

mod programs;
mod unprivileged;

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::programs::Programs;
use crate::unprivileged::{give_away, output, unprivileged};

/// Number of connection attempts before a new server counts as failed, and the pause between them.
const LOOKS: u32 = 600;
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Starts the server, and stops it when its standard input is closed. That happens even if the starting
/// process is killed. The server writes its output to the log.
const KEEPER: &str = r#"
"$1" -D "$2" -c config_file="$2/postgresql.conf" >"$3" 2>&1 </dev/null &
read -r _
"$5" stop -s -m immediate -D "$2" 2>/dev/null
rm -rf "$4"
"#;

/// Whether PostgreSQL's programs are installed.
pub fn is_installed() -> bool {
    Programs::find().is_ok()
}

/// A running server. Dropping it stops the server.
#[derive(Debug)]
pub struct ScratchPostgres {
    programs: Programs,
    /// Removed by the keeper, which outlives this process.
    directory: PathBuf,
    keeper: Child,
    /// Closed on drop, which is the signal that the keeper waits for.
    line: Option<ChildStdin>,
    databases: AtomicU32,
}

impl ScratchPostgres {
    /// Starts a server.
    ///
    /// # Errors
    ///
    /// If PostgreSQL is missing, the error says how to install it.
    pub fn start() -> Result<Self, String> {
        let programs = Programs::find()?;
        let directory = directory().map_err(|error| format!("no directory for PostgreSQL: {error}"))?;
        let path = directory.path().to_owned();
        let failed =
            |error: io::Error| format!("PostgreSQL cannot be started in {}: {error}", path.display());
        let data = path.join("data");
        programs.copy_empty(&data)?;
        configure(&data, &path).map_err(failed)?;
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "sh"]).arg(programs.postgres()).arg(&data).arg(path.join("log"));
        command.arg(&path).arg(programs.pg_ctl()).current_dir("/").stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // Signals from the keyboard are for the test runner. The keeper ends when that does.
        command.process_group(0);
        let mut keeper = unprivileged(&mut command).spawn().map_err(failed)?;
        let line = keeper.stdin.take();
        let directory = directory.keep();
        let server = Self { programs, directory, keeper, line, databases: AtomicU32::new(0) };
        server.wait_until_ready()?;
        Ok(server)
    }

    /// Creates a database and returns its URL. It is empty, or a copy of `template`, a database of this
    /// server without connections.
    pub fn database(&self, template: Option<&str>) -> Result<String, String> {
        let name = format!("scratch{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.run(&format!("CREATE DATABASE {name} TEMPLATE {}", template.unwrap_or("template0")))?;
        Ok(self.url(&name))
    }

    /// URL of a database.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@localhost/{database}?host={}", self.directory.display())
    }

    /// Runs a statement in the database `postgres`, with `psql`.
    pub fn run(&self, statement: &str) -> Result<String, String> {
        self.script("postgres", &["-c", statement])
    }

    /// Runs SQL files in a database, in order.
    pub fn run_files(&self, database: &str, files: &[PathBuf]) -> Result<(), String> {
        for file in files {
            self.script(database, &["-f", &file.to_string_lossy()])?;
        }
        Ok(())
    }

    /// Path of the server's socket.
    pub fn socket(&self) -> PathBuf {
        self.directory.join(".s.PGSQL.5432")
    }

    /// Path of another of PostgreSQL's programs, such as `pgbench`.
    pub fn program(&self, name: &str) -> PathBuf {
        self.programs.path(name)
    }

    /// Crashes the server (mode `immediate`) and starts it again, as after a power loss.
    pub fn restart(&self) -> Result<(), String> {
        self.restart_by("immediate")
    }

    /// Shuts the server down (mode `fast`) and starts it again. Open transactions are aborted, and clients
    /// are notified.
    pub fn restart_in_order(&self) -> Result<(), String> {
        self.restart_by("fast")
    }

    /// Has the server also listen on a loopback address (127.0.0.0/8), on the default port, with TLS only.
    /// Certificate and key are PEM.
    pub fn speak_tls(&self, address: Ipv4Addr, certificate: &str, key: &str) -> Result<(), String> {
        let data = self.directory.join("data");
        let rules = data.join("pg_hba.conf");
        let encrypted = "hostssl all all 127.0.0.0/8 trust\nhostnossl all all all reject\n";
        let written = write_private(&data.join("server.crt"), certificate)
            .and_then(|()| write_private(&data.join("server.key"), key))
            .and_then(|()| fs::read_to_string(&rules))
            .and_then(|others| fs::write(&rules, format!("{encrypted}{others}")));
        written.map_err(|error| format!("PostgreSQL cannot be given a certificate: {error}"))?;
        self.run("ALTER SYSTEM SET ssl = on")?;
        self.run(&format!("ALTER SYSTEM SET listen_addresses = '{address}'"))?;
        self.restart()
    }

    fn restart_by(&self, mode: &str) -> Result<(), String> {
        let data = self.directory.join("data");
        let mut command = Command::new(self.programs.pg_ctl());
        command.args(["restart", "-s", "-w", "-m", mode, "-D"]).arg(&data).arg("-l");
        command.arg(self.directory.join("log")).current_dir(&self.directory);
        output(&mut command).map(drop)
    }

    /// Runs `psql` in a database.
    pub fn script(&self, database: &str, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new(self.programs.psql());
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-h"]);
        command.arg(&self.directory).args(["-d", database]).args(arguments);
        output(&mut command)
    }

    fn wait_until_ready(&self) -> Result<(), String> {
        let mut last = String::new();
        for _ in 0..LOOKS {
            match self.run("SELECT 1") {
                Ok(_) => return Ok(()),
                Err(error) => last = error,
            }
            thread::sleep(BETWEEN_LOOKS);
        }
        let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
        Err(format!("PostgreSQL does not start: {last}\n{log}"))
    }
}

impl Drop for ScratchPostgres {
    fn drop(&mut self) {
        drop(self.line.take());
        // `drop` can't report an error.
        let _ = self.keeper.wait();
    }
}

/// An empty directory that the server can use.
fn directory() -> io::Result<TempDir> {
    let directory = tempfile::Builder::new().prefix("allot-pg-").tempdir()?;
    give_away(directory.path())?;
    Ok(directory)
}

/// Writes a file that only the server can read.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    give_away(path)
}

fn configure(data: &Path, sockets: &Path) -> io::Result<()> {
    let settings = format!(
        "listen_addresses = ''\nunix_socket_directories = '{}'\nfsync = off\n\
         full_page_writes = off\nmax_connections = 100\nshared_buffers = 16MB\nautovacuum = off\n\
         dynamic_shared_memory_type = mmap\n",
        sockets.display()
    );
    fs::write(data.join("postgresql.conf"), settings)
}
