//! The machine's clock is set forward and back while the service runs.
//!
//! Only the process sees the change: a preloaded library (`clock.c`) adds an offset, which it reads from a
//! file. The monotonic clock isn't affected, as on a real machine. The service uses it to detect that the
//! clock was set, and changes nothing until an operator accepts the new time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chores::cases::Cases;
use chores::run::{Executable, must_run};
use serde_json::{Value, json};

use crate::leasing::acknowledged::of_hosts;
use crate::leasing::date::Minute;
use crate::leasing::http::{Caller, text};
use crate::leasing::server::Launch;

/// While it waits, the service checks the clock at least every ten seconds.
const PATIENCE: Duration = Duration::from_secs(30);

pub fn run(cases: &mut Cases, ours: &Executable) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let library = library(directory.path())?;
    let clock = Clock(directory.path().join("clock"));
    clock.set(0)?;
    let launch = Launch::new(ours, directory.path())
        .environment("LD_PRELOAD", &library.display().to_string())
        .environment("ALLOT_TEST_CLOCK", &clock.0.display().to_string());
    let server = launch.start()?;
    let caller = server.caller();
    caller.post("/v1/os-hosts", &json!({"id": "1"}))?.expect(201)?;
    let base = Minute::now();
    let first = lease(caller, base.plus(10), base.plus(60))?;
    let second = lease(caller, base.plus(60), base.plus(120))?;
    cases.check("a clock that is set starts and changes nothing before it is right again", || {
        for minutes in [15, -60, 200] {
            clock.set(minutes)?;
            caller.post("/v1/leases", &of_nothing(base.plus(300), base.plus(310)))?.expect(503)?;
            is_still(caller, &first, "PENDING")?;
        }
        clock.set(0)?;
        caller.post("/v1/leases", &of_nothing(base.plus(300), base.plus(310)))?.expect(201)?;
        is_still(caller, &first, "PENDING")
    });
    cases.check("a clock that is set forward and accepted starts leases that have become due", || {
        clock.set_and_accept(15, caller)?;
        caller.until_lease_is(&first, "ACTIVE", PATIENCE).map(drop)
    });
    cases.check("a clock that is set back takes hosts from no lease", || {
        clock.set_and_accept(-60, caller)?;
        // This lease becomes ACTIVE only after the service has seen the change of the clock.
        let early = caller.post("/v1/leases", &of_nothing(base.plus(-50), base.plus(-40)))?.expect(201)?;
        is_still(caller, &first, "ACTIVE")?;
        is_still(caller, &second, "PENDING")?;
        clock.set_and_accept(-45, caller)?;
        caller.until_lease_is(text(&early["lease"], "id")?, "ACTIVE", PATIENCE)?;
        is_still(caller, &first, "ACTIVE")?;
        is_still(caller, &second, "PENDING")
    });
    cases.check("w5_a_clock_that_is_set_past_an_end_and_a_start_hands_the_host_over", || {
        clock.set_and_accept(70, caller)?;
        caller.until_lease_is(&first, "TERMINATED", PATIENCE)?;
        caller.until_lease_is(&second, "ACTIVE", PATIENCE).map(drop)
    });
    cases.check("a clock that is set back and forth again leaves no lease stuck", || {
        clock.set_and_accept(0, caller)?;
        clock.set_and_accept(130, caller)?;
        caller.until_lease_is(&second, "TERMINATED", PATIENCE)?;
        is_still(caller, &first, "TERMINATED")
    });
    Ok(())
}

/// The file with the clock's offset.
struct Clock(PathBuf);

impl Clock {
    /// Sets the offset from the true time.
    fn set(&self, minutes: i64) -> Result<()> {
        // Replaced atomically: a partial file would be read as a different offset.
        let written = self.0.with_extension("new");
        fs::write(&written, format!("{:+}\n", minutes * 60)).context("cannot set the clock")?;
        fs::rename(&written, &self.0).context("cannot set the clock")
    }

    /// Sets the offset, and has an operator accept it.
    fn set_and_accept(&self, minutes: i64, caller: &Caller) -> Result<()> {
        self.set(minutes)?;
        caller.post("/v1/drift/accept-clock", &json!({}))?.expect(200).map(drop)
    }
}

fn lease(caller: &Caller, start: Minute, end: Minute) -> Result<String> {
    let made = caller.post("/v1/leases", &of_hosts(&start.sent(), 1, &end.sent()))?.expect(201)?;
    Ok(text(&made["lease"], "id")?.to_owned())
}

fn of_nothing(start: Minute, end: Minute) -> Value {
    let mut lease = of_hosts(&start.sent(), 1, &end.sent());
    lease["reservations"] = json!([]);
    lease
}

fn is_still(caller: &Caller, id: &str, status: &str) -> Result<()> {
    let lease = caller.lease(id)?;
    ensure!(lease["status"] == status, "the lease is not {status}: {lease}");
    Ok(())
}

/// Builds the preloaded library with the compiler that Rust links with.
fn library(directory: &Path) -> Result<PathBuf> {
    let (source, library) = (directory.join("clock.c"), directory.join("clock.so"));
    fs::write(&source, include_str!("clock.c")).context("cannot write the library's source")?;
    must_run(
        Command::new("cc")
            .args(["-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o"])
            .args([&library, &source]),
    )?;
    Ok(library)
}
