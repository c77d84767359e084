//! A PostgreSQL server for the duration of a test or a chore, in a directory of its own.
//!
//! It listens on a Unix socket in that directory and nowhere else, and ends with the process that started it,
//! however that ends. Nothing in it outlives that, so it leaves writing to the disk to the operating system. The
//! directory of an empty server is kept from one run to the next, since making it takes longer than most tests.

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

/// How often is looked whether it takes connections yet, and how long.
const LOOKS: u32 = 600;
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Starts the server and stops it when nobody holds the other end of its standard input any more: that is so
/// after any end of whoever started it. What it writes goes to the log.
const KEEPER: &str = r#"
"$1" -D "$2" -c config_file="$2/postgresql.conf" >"$3" 2>&1 </dev/null &
read -r _
"$5" stop -s -m immediate -D "$2" 2>/dev/null
rm -rf "$4"
"#;

/// Whether PostgreSQL's programs are here.
pub fn is_installed() -> bool {
    Programs::find().is_ok()
}

/// A running server.
#[derive(Debug)]
pub struct ScratchPostgres {
    programs: Programs,
    /// Removed by the keeper, which outlives this process.
    directory: PathBuf,
    keeper: Child,
    /// Dropped first: that is what the keeper waits for.
    line: Option<ChildStdin>,
    databases: AtomicU32,
}

impl ScratchPostgres {
    /// Starts one. Fails with a line that says what to install where there is no PostgreSQL.
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
        // A signal from the keyboard is for whoever runs the tests; the keeper follows when they end.
        command.process_group(0);
        let mut keeper = unprivileged(&mut command).spawn().map_err(failed)?;
        let line = keeper.stdin.take();
        let directory = directory.keep();
        let server = Self { programs, directory, keeper, line, databases: AtomicU32::new(0) };
        server.wait_until_ready()?;
        Ok(server)
    }

    /// The address of a new database: empty, or a copy of another one of this server that nobody is connected to.
    pub fn database(&self, template: Option<&str>) -> Result<String, String> {
        let name = format!("scratch{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.run(&format!("CREATE DATABASE {name} TEMPLATE {}", template.unwrap_or("template0")))?;
        Ok(self.url(&name))
    }

    /// The address of a database of that name.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@localhost/{database}?host={}", self.directory.display())
    }

    /// Runs a statement in the database `postgres`, by PostgreSQL's own client.
    pub fn run(&self, statement: &str) -> Result<String, String> {
        self.script("postgres", &["-c", statement])
    }

    /// Runs files in a database, in that order.
    pub fn run_files(&self, database: &str, files: &[PathBuf]) -> Result<(), String> {
        for file in files {
            self.script(database, &["-f", &file.to_string_lossy()])?;
        }
        Ok(())
    }

    /// The socket that it listens on.
    pub fn socket(&self) -> PathBuf {
        self.directory.join(".s.PGSQL.5432")
    }

    /// Another of PostgreSQL's programs, `pgbench` for one.
    pub fn program(&self, name: &str) -> PathBuf {
        self.programs.path(name)
    }

    /// Stops the server at once and starts it again, as after a loss of power.
    pub fn restart(&self) -> Result<(), String> {
        self.restart_by("immediate")
    }

    /// Stops the server in good order and starts it again: what was begun is broken off, and clients are told.
    pub fn restart_in_order(&self) -> Result<(), String> {
        self.restart_by("fast")
    }

    /// Has the server listen at an address of this machine's own network (127.0.0.0/8) as well, on the usual port,
    /// and speak TLS there and nothing else, with this certificate and its key (PEM).
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

    /// Runs PostgreSQL's client in a database.
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
        // Whatever became of it, there is nobody to tell.
        let _ = self.keeper.wait();
    }
}

/// An empty directory that the server may use.
fn directory() -> io::Result<TempDir> {
    let directory = tempfile::Builder::new().prefix("allot-pg-").tempdir()?;
    give_away(directory.path())?;
    Ok(directory)
}

/// Writes a file that only the server may read.
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
