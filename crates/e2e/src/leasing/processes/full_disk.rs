//! A full disk: clients get errors, acknowledged leases survive, and the service continues once there is
//! space.
//!
//! If a file system can be mounted (as root, or in a namespace), the tests fill that one. Otherwise they
//! limit the size of the process's files.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use chores::cases::Cases;
use chores::places;
use chores::run::{Executable, output_of};
use serde_json::json;

use crate::leasing::acknowledged::{Acknowledged, of_hosts};
use crate::leasing::date::Minute;
use crate::leasing::http::Caller;
use crate::leasing::server::{Launch, Server};

/// Size of the file system.
const DISK_MIB: u32 = 16;
/// Free space of a nearly full file system, enough for some commits.
const LITTLE_KIB: u64 = 512;
/// Maximum file size where no file system can be mounted.
const FILE_KIB: u64 = 2048;
/// Number of leases that is certain to exceed the remaining space.
const MOST_LEASES: usize = 20_000;
/// Time until the service must notice free space.
const PATIENCE: Duration = Duration::from_secs(30);

pub fn run(cases: &mut Cases, ours: &Executable) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let disk = Disk::new(&directory.path().join("disk"))?;
    println!("full disk: {}", disk.described());
    let launch = Launch::new(ours, directory.path());
    let launch = launch.with_database(&disk.database()).through(disk.words());
    let server = launch.start()?;
    server.caller().post("/v1/os-hosts", &json!({"id": "1"}))?.expect(201)?;
    let mut acknowledged = Acknowledged::default();
    acknowledged.create(server.caller(), 1)?.expect(201)?;
    if disk.ballast()?.is_some() {
        cases.check("a disk that is nearly full is told by /readyz before a write fails", || {
            disk.fill(&server)?;
            disk.make_little_room()?;
            readiness_becomes(&server, 503)?;
            acknowledged.created(server.caller().post("/v1/leases", &far_away(MOST_LEASES)))?.expect(201)?;
            disk.make_room(&server)?;
            readiness_becomes(&server, 200)
        });
    }
    cases.check("a full disk is an error to clients, and not the end of the service", || {
        disk.fill(&server)?;
        fill_with_leases(server.caller(), &mut acknowledged)?;
        acknowledged.all_there(server.caller())?;
        disk.make_room(&server)
    });
    cases.check("with room again, leases are accepted again", || {
        let started = Instant::now();
        loop {
            let answer = acknowledged.created(server.caller().post("/v1/leases", &far_away(0)))?;
            if answer.status == 201 {
                return Ok(());
            }
            ensure!(started.elapsed() < PATIENCE, "it is still refused: {answer:?}\n{}", server.last_lines());
            sleep(Duration::from_millis(100));
        }
    });
    cases.check("all acknowledged changes before, during and after a full disk survive a power cut", || {
        acknowledged.all_there(server.caller())?;
        server.kill()?;
        let again = launch.start()?;
        acknowledged.all_there(again.caller())
    });
    Ok(())
}

/// Waits until `/readyz` answers with this status. The service reuses an answer for a second.
fn readiness_becomes(server: &Server, status: u16) -> Result<()> {
    let started = Instant::now();
    loop {
        let answer = server.caller().get("/readyz")?;
        if answer.status == status {
            return Ok(());
        }
        ensure!(started.elapsed() < PATIENCE, "/readyz still says {answer:?}");
        sleep(Duration::from_millis(100));
    }
}

/// Creates leases until one fails for lack of space.
fn fill_with_leases(caller: &Caller, acknowledged: &mut Acknowledged) -> Result<()> {
    for number in 0..MOST_LEASES {
        let answer = acknowledged.created(caller.post("/v1/leases", &far_away(number)))?;
        match answer.status {
            201 => {}
            500..=599 => {
                ensure!(!answer.message().is_empty(), "no message: {answer:?}");
                return Ok(());
            }
            _ => bail!("answered {answer:?}"),
        }
    }
    bail!("{MOST_LEASES} leases were accepted without room for them")
}

/// A lease without reservations, which still takes space.
fn far_away(number: usize) -> serde_json::Value {
    let start = Minute::now().plus(60 * 24 * 100 + number as i64);
    let mut lease = of_hosts(&start.sent(), 1, &start.plus(1).sent());
    lease["reservations"] = json!([]);
    lease
}

/// Means of limiting the space.
#[derive(Debug)]
enum Disk {
    /// A tmpfs, mounted on the directory in a namespace that this process keeps alive.
    Mounted(PathBuf, Child),
    /// A limit on the size of files.
    Limited(PathBuf),
}

impl Disk {
    fn new(directory: &Path) -> Result<Self> {
        fs::create_dir(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        if let Some(keeper) = mount(directory)? {
            return Ok(Self::Mounted(directory.to_owned(), keeper));
        }
        places::need_program("prlimit", "util-linux")?;
        Ok(Self::Limited(directory.to_owned()))
    }

    fn described(&self) -> String {
        match self {
            Self::Mounted(..) => format!("a file system of {DISK_MIB} MiB"),
            Self::Limited(_) => format!("files of at most {FILE_KIB} KiB, since nothing can be mounted here"),
        }
    }

    fn database(&self) -> String {
        let (Self::Mounted(directory, _) | Self::Limited(directory)) = self;
        format!("sqlite://{}", directory.join("allot.db").display())
    }

    /// Command prefix to start the service with.
    fn words(&self) -> Vec<String> {
        match self {
            Self::Mounted(_, keeper) => {
                let target = keeper.id().to_string();
                let words =
                    ["nsenter", "--preserve-credentials", "--user", "--mount", "--target", &target, "--"];
                words.map(str::to_owned).into()
            }
            // Ignores the limit's signal, so that writes fail instead.
            Self::Limited(_) => ["sh", "-c", "trap '' XFSZ; exec \"$@\"", "sh"].map(str::to_owned).into(),
        }
    }

    /// Leaves no space, or little where file sizes are limited.
    fn fill(&self, server: &Server) -> Result<()> {
        let Some(ballast) = self.ballast()? else {
            return limit(server, &(FILE_KIB * 1024).to_string());
        };
        let mut file =
            File::create(&ballast).with_context(|| format!("cannot write {}", ballast.display()))?;
        let block = vec![0; 4096];
        while file.write_all(&block).is_ok() {}
        Ok(())
    }

    /// Frees [`LITTLE_KIB`] of a mounted file system.
    fn make_little_room(&self) -> Result<()> {
        let Some(ballast) = self.ballast()? else { return Ok(()) };
        let file = File::options().write(true).open(&ballast)?;
        let size = file.metadata()?.len();
        file.set_len(size.saturating_sub(LITTLE_KIB * 1024)).context("cannot make a little room")
    }

    fn make_room(&self, server: &Server) -> Result<()> {
        match self.ballast()? {
            Some(ballast) => fs::remove_file(ballast).context("cannot make room again"),
            None => limit(server, "unlimited"),
        }
    }

    /// Path of the file that fills the mounted file system, seen through the namespace. `None` if file sizes
    /// are limited instead.
    fn ballast(&self) -> Result<Option<PathBuf>> {
        let Self::Mounted(directory, keeper) = self else { return Ok(None) };
        let inside = directory.strip_prefix("/").context("the temporary directory has no absolute path")?;
        Ok(Some(PathBuf::from(format!("/proc/{}/root", keeper.id())).join(inside).join("ballast")))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Self::Mounted(_, keeper) = self {
            // The file system is removed with the last process of the namespace.
            let _ = keeper.kill();
            let _ = keeper.wait();
        }
    }
}

/// Mounts a file system in a new namespace. `None` if that isn't allowed here.
fn mount(directory: &Path) -> Result<Option<Child>> {
    if !places::has_program("unshare") || !places::has_program("nsenter") {
        return Ok(None);
    }
    let script =
        format!("mount -t tmpfs -o size={DISK_MIB}m allot \"$1\" && echo mounted && exec sleep infinity");
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", &script, "sh"]).arg(directory);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut keeper = command.spawn().context("cannot run unshare")?;
    let mut said = String::new();
    if let Some(stdout) = keeper.stdout.take() {
        BufReader::new(stdout).read_line(&mut said)?;
    }
    if said.trim() == "mounted" {
        return Ok(Some(keeper));
    }
    keeper.wait()?;
    Ok(None)
}

/// Limits the size of files that the service writes. Only the soft limit is set, so that it can be lifted.
fn limit(server: &Server, bytes: &str) -> Result<()> {
    let process = server.process().to_string();
    output_of(Command::new("prlimit").args(["--pid", &process, &format!("--fsize={bytes}:")])).map(drop)
}
