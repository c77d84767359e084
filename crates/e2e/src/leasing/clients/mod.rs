//! The stock clients against the service: every command of `blazar` and of `openstack reservation`, Apache
//! Libcloud, and the contracts of clients that can't be installed here.
//!
//! Each shell has its own service, so that they can run in parallel. The effect of a command is checked
//! without the shell.

mod addresses;
mod contracts;
mod hosts;
mod leases;
mod libcloud;
pub mod logins;
mod shell;
pub mod values;

use std::thread;

use anyhow::{Result, anyhow, ensure};
use chores::cases::Cases;
use chores::python::Python;
use chores::run::Executable;
use chores::tally::Tally;

use self::shell::{Kind, Loaded, Shell};
use super::http::Caller;
use super::server::Launch;

/// A shell, and a client to check the effects of its commands.
struct Bench<'a> {
    shell: Shell<'a>,
    caller: &'a Caller,
}

pub fn run(ours: &Executable) -> Result<Tally> {
    let python = Python::ready()?;
    let mut tally = Tally::default();
    let shells: Vec<Result<Tally>> = thread::scope(|scope| {
        let start = |kind| {
            scope.spawn({
                let python = &python;
                move || commands(kind, ours, python)
            })
        };
        let running: Vec<_> = Kind::ALL.into_iter().map(start).collect();
        let end = |thread: thread::ScopedJoinHandle<'_, Result<Tally>>| {
            thread.join().unwrap_or_else(|_| Err(anyhow!("the checks of a shell broke off")))
        };
        running.into_iter().map(end).collect()
    });
    for shell in shells {
        tally += shell?;
    }
    tally += logins::run(ours, &python)?;
    tally += contracts::run(ours)?;
    tally += libcloud::run(ours, &python)?;
    Ok(tally)
}

/// Runs every command of a shell.
fn commands(kind: Kind, ours: &Executable, python: &Python) -> Result<Tally> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(ours, directory.path()).start()?;
    let endpoint = format!("{}/v1", server.url());
    let login = ["--os-auth-type", "none", "--os-endpoint", &endpoint];
    let loaded = Loaded::new(kind, python, directory.path())?;
    let bench = Bench { shell: loaded.with_login(&login), caller: server.caller() };
    let mut cases = Cases::new(format!("clients, {}", kind.program()));
    cases.check("the installed program itself gets an answer", || {
        let mut program = python.program(kind.program(), directory.path());
        let output = program.args(bench.shell.words("lease-list", &[])).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    });
    hosts::take_on(&mut cases, &bench);
    hosts::properties(&mut cases, &bench);
    addresses::run(&mut cases, &bench);
    leases::run(&mut cases, &bench);
    hosts::give_back(&mut cases, &bench);
    Ok(cases.tally())
}
