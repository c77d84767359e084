//! `allot energy` shows power plans, reports and the power state of hosts.

use std::collections::BTreeSet;

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::Value;

use super::period::{self, Past};
use super::table::{Table, time, word};
use super::wire::read;
use super::{ClientError, Session};
use crate::shown::broken;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show how many hosts are needed when, and which can be off
    Plan(Plan),
    /// Show the energy saved and used
    Report(Report),
    /// List hosts with their power state and boot time
    Hosts,
}

#[derive(Args, Debug)]
pub(crate) struct Plan {
    /// Planning horizon: 12h, 7d; by default the operator's setting
    #[arg(long, value_name = "DURATION")]
    horizon: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Report {
    #[command(flatten)]
    past: Past,
}

#[derive(Debug, Deserialize)]
struct Planned {
    pool: String,
    hosts: u64,
    hosts_needed: u64,
    needed: Vec<Need>,
    off: Vec<Rest>,
    saved_kwh: f64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Need {
    start: String,
    hosts: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Rest {
    hypervisor_hostname: String,
    off_from: String,
    on_by: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Line {
    pool: Option<String>,
    off_host_hours: f64,
    saved_kwh: f64,
    busy_host_hours: f64,
    idle_host_hours: f64,
    total_kwh: f64,
    hosts_without_watts: u64,
    switched_off: u64,
    switched_on: u64,
    boots_failed: u64,
    longest_boot_seconds: Option<i64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Host {
    hypervisor_hostname: String,
    pool: String,
    power: String,
    since: Option<String>,
    boot_seconds: i64,
    measured_boots: u64,
    idle_watts: Option<f64>,
    off_watts: f64,
    may_be_off: bool,
}

pub(crate) async fn run(command: Command, session: &mut Session<'_>) -> Result<(), ClientError> {
    match command {
        Command::Plan(wanted) => plan(&wanted, session).await,
        Command::Report(wanted) => report(&wanted, session).await,
        Command::Hosts => hosts(session).await,
    }
}

/// Requests a document. Returns `None` after printing it in a machine-readable format.
async fn ask(
    path: &str,
    query: &[(&'static str, String)],
    session: &mut Session<'_>,
) -> Result<Option<Value>, ClientError> {
    let answer = session.connection.get(path, query).await?;
    if session.wants_document() {
        session.print_json(&answer)?;
        return Ok(None);
    }
    Ok(Some(answer))
}

async fn plan(wanted: &Plan, session: &mut Session<'_>) -> Result<(), ClientError> {
    let query: Vec<_> = wanted.horizon.clone().map(|horizon| ("horizon", horizon)).into_iter().collect();
    let Some(answer) = ask("/v1/energy/plan", &query, session).await? else { return Ok(()) };
    let pools: Vec<Planned> = read(&answer, "pools")?;
    let mode = match answer["mode"].as_str() {
        Some("on") => "Hosts are switched as planned.",
        Some("dry_run") => "This is a dry run: no host is switched.",
        _ => "No power is saved: no host is switched (energy.enabled).",
    };
    session.print(mode)?;
    let mut notes = BTreeSet::new();
    for pool in pools {
        let Planned { pool, hosts, hosts_needed, needed, off, saved_kwh } = pool;
        session.print("")?;
        let total = format!(
            "Pool {pool}: {hosts_needed} of {hosts} hosts needed at most; {saved_kwh:.2} kWh can be saved."
        );
        let total = broken(&total, session.style.columns_of_terminal());
        session.print(&total)?;
        notes.extend(session.print_rows(&needs_table(needed))?);
        if !off.is_empty() {
            session.print("")?;
            notes.extend(session.print_rows(&rests_table(off))?);
        }
    }
    for note in &notes {
        session.note(note);
    }
    Ok(())
}

pub(super) fn needs_table(needed: Vec<Need>) -> Table {
    let mut table = Table::new([time("FROM"), word("HOSTS NEEDED")]);
    for need in needed {
        table.add_row([need.start, need.hosts.to_string()]);
    }
    table
}

pub(super) fn rests_table(off: Vec<Rest>) -> Table {
    let mut table = Table::new([word("HOST"), time("OFF FROM"), time("ON BY")]);
    for rest in off {
        let on_by = rest.on_by.unwrap_or_else(|| "later".to_owned());
        table.add_row([rest.hypervisor_hostname, rest.off_from, on_by]);
    }
    table
}

async fn report(wanted: &Report, session: &mut Session<'_>) -> Result<(), ClientError> {
    let query = wanted.past.query(session).await?;
    let Some(answer) = ask("/v1/energy/report", &query, session).await? else { return Ok(()) };
    let pools: Vec<Line> = read(&answer, "pools")?;
    period::note(&answer, session);
    let unknown: u64 = pools.iter().map(|pool| pool.hosts_without_watts).sum();
    let table = report_table(pools);
    session.print_table(&table)?;
    if table.is_empty() {
        return Ok(());
    }
    let total = |name: &str| answer[name].as_f64().unwrap_or_default();
    session.done(&format!("Used: {:.2} kWh. Saved: {:.2} kWh", total("total_kwh"), total("saved_kwh")))?;
    if unknown > 0 {
        session.note_to_people(&format!("Idle power is unset for {unknown} hosts (power_idle_watts)."));
    }
    Ok(())
}

pub(super) fn report_table(pools: Vec<Line>) -> Table {
    let mut table = Table::new([
        word("POOL"),
        word("BUSY HOST HOURS"),
        word("IDLE"),
        word("OFF"),
        word("USED KWH"),
        word("SAVED KWH"),
        word("SWITCHED OFF").hide(4),
        word("ON").hide(3),
        word("FAILED").hide(2),
        word("LONGEST BOOT").hide(1),
    ])
    .or("There were no hosts.");
    for pool in pools {
        table.add_row([
            pool.pool.unwrap_or_else(|| "(gone)".to_owned()),
            format!("{:.2}", pool.busy_host_hours),
            format!("{:.2}", pool.idle_host_hours),
            format!("{:.2}", pool.off_host_hours),
            format!("{:.2}", pool.total_kwh),
            format!("{:.2}", pool.saved_kwh),
            pool.switched_off.to_string(),
            pool.switched_on.to_string(),
            pool.boots_failed.to_string(),
            pool.longest_boot_seconds.map_or(String::new(), |seconds| format!("{seconds} s")),
        ]);
    }
    table
}

async fn hosts(session: &mut Session<'_>) -> Result<(), ClientError> {
    let Some(answer) = ask("/v1/energy/hosts", &[], session).await? else { return Ok(()) };
    session.print_table(&hosts_table(read(&answer, "hosts")?))
}

pub(super) fn hosts_table(hosts: Vec<Host>) -> Table {
    let mut table = Table::new([
        word("HOST").key(),
        word("POOL").hide(5),
        word("POWER"),
        time("SINCE"),
        word("BOOT").hide(4),
        word("MEASURED").hide(1),
        word("IDLE W").hide(3),
        word("OFF W").hide(2),
        word("MAY BE OFF"),
    ])
    .or("There are no hosts.");
    for host in hosts {
        table.add_row([
            host.hypervisor_hostname,
            host.pool,
            host.power,
            host.since.unwrap_or_default(),
            format!("{} s", host.boot_seconds),
            host.measured_boots.to_string(),
            host.idle_watts.map_or("?".to_owned(), |watts| watts.to_string()),
            host.off_watts.to_string(),
            if host.may_be_off { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table
}
