//! `allot maintenance` finds, books, lists and cancels times for maintenance.

use api::v1::body::MaintenanceCreate;
use api::v1::{Maintenance, SettingOf};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use leases::status::LeaseStatus;
use serde_json::{Value, json};

use super::confirm::{Act, Consent, Found};
use super::dates::{When, duration};
use super::identify::Listed;
use super::lease::LEASES;
use super::table::{Table, date, id, word};
use super::wire::{Lease, read};
use super::{ClientError, Session};

/// Setting with the project that has the leases for maintenance.
const PROJECT: &str = "housekeeping.maintenance_project";
/// Beginning of the names of these leases.
const NAMED: &str = "maintenance of ";

/// Booked maintenance, by host.
const BOOKED: Listed = Listed {
    noun: "maintenance",
    name: "/host",
    details: &["/start_date"],
    hint: "`allot maintenance list` shows all",
    ..LEASES
};

/// Commands for maintenance.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Find the earliest time at which each host is free
    Plan(Wanted),
    /// Book maintenance at these times, for all hosts or none
    Book(Wanted),
    /// List booked maintenance
    List,
    /// Cancel booked maintenance, or end it if it has begun
    Cancel(Canceled),
}

#[derive(Args, Debug)]
pub(crate) struct Canceled {
    /// Names of hosts, or IDs of the leases for maintenance
    #[arg(required = true, value_name = "HOST")]
    hosts: Vec<String>,
    #[command(flatten)]
    consent: Consent,
}

#[derive(Args, Debug)]
pub(crate) struct Wanted {
    /// Names or identifiers of hosts
    #[arg(required_unless_present = "freepool", value_name = "HOST")]
    hosts: Vec<String>,
    /// All hosts of this free pool
    #[arg(long, value_name = "POOL")]
    freepool: Option<String>,
    /// Duration: 90m, 2h, 1d
    #[arg(long = "for", value_name = "DURATION")]
    length: String,
    /// Earliest start: now, +2h, 2030-01-02, "2030-01-02 10:00", "tomorrow 09:00"
    #[arg(long, value_name = "WHEN")]
    not_before: Option<String>,
    /// Latest end, written like --not-before; by default four weeks later
    #[arg(long, value_name = "WHEN")]
    before: Option<String>,
    /// Time that each host must be free before and after it; by default 10m
    #[arg(long, value_name = "DURATION")]
    margin: Option<String>,
}

pub(crate) async fn run(command: Command, session: &mut Session<'_>) -> Result<(), ClientError> {
    let (wanted, path) = match &command {
        Command::Plan(wanted) => (wanted, "/v1/maintenance?dry_run=true"),
        Command::Book(wanted) => (wanted, "/v1/maintenance"),
        Command::List => return list(session).await,
        Command::Cancel(canceled) => return cancel(canceled, session).await,
    };
    let body = body(wanted, session.now().await, &session.zone)?;
    let answer = session.connection.post(path, &body).await?;
    session.print_answer(&answer, || Ok(table(read(&answer, "maintenance")?)))
}

pub(super) fn table(found: Vec<Maintenance>) -> Table {
    let mut table = Table::new([word("HOST").key(), date("START"), date("END"), id("LEASE")]);
    for one in found {
        table.add_row([
            one.host,
            one.start_date.unwrap_or_else(|| "no time".to_owned()),
            one.end_date.unwrap_or_default(),
            one.lease_id.unwrap_or_default(),
        ]);
    }
    table
}

async fn list(session: &mut Session<'_>) -> Result<(), ClientError> {
    let answer = booked(session).await?;
    session.print_answer(&answer, || Ok(booked_table(read(&answer, LEASES.key)?)))
}

async fn cancel(canceled: &Canceled, session: &mut Session<'_>) -> Result<(), ClientError> {
    let leases: Vec<Lease> = read(&booked(session).await?, LEASES.key)?;
    let entry =
        |lease: &Lease| json!({"id": lease.id, "host": host_of(lease), "start_date": lease.start_date});
    let entries: Vec<Value> = leases.iter().map(entry).collect();
    let act = Act { verb: "Cancel", one: "maintenance of", several: "bookings of maintenance" };
    canceled
        .consent
        .carry_out(
            act,
            &canceled.hosts,
            session,
            async |given: &str, session: &mut Session<'_>| find(&entries, given, session),
            async |found: &Found, session: &mut Session<'_>| {
                session.connection.delete(&format!("{}/{}", LEASES.path, found.id)).await?;
                session.done(&format!("Maintenance of {} is canceled.", found.name))
            },
        )
        .await
}

/// Finds booked maintenance by host, or by the lease's identifier or its prefix.
fn find(entries: &[Value], given: &str, session: &Session<'_>) -> Result<(String, String), ClientError> {
    let id = BOOKED.one_of(entries, given, &|date| session.brief(date))?;
    Ok((id, given.to_owned()))
}

/// Response with the leases for maintenance that aren't over.
async fn booked(session: &Session<'_>) -> Result<Value, ClientError> {
    let answer = session.connection.get("/v1/settings", &[]).await?;
    let settings: Vec<SettingOf> = read(&answer, "settings")?;
    let project = settings.into_iter().find(|setting| setting.key == PROJECT);
    let Some(project) = project.and_then(|setting| setting.value) else {
        let message = format!("maintenance is not booked here: {PROJECT} names no project");
        return Err(ClientError::Refused { status: 409, message, hint: None });
    };
    let mut answer = session.connection.get(LEASES.path, &[("project_id", project)]).await?;
    if let Some(leases) = answer.get_mut(LEASES.key).and_then(Value::as_array_mut) {
        leases.retain(|lease| {
            let is_named = lease["name"].as_str().is_some_and(|name| name.starts_with(NAMED));
            is_named && lease["status"] != LeaseStatus::Terminated.name()
        });
    }
    Ok(answer)
}

fn host_of(lease: &Lease) -> String {
    let hosts = lease.hosts();
    if hosts.is_empty() { lease.name.replacen(NAMED, "", 1) } else { hosts.join(", ") }
}

pub(super) fn booked_table(mut leases: Vec<Lease>) -> Table {
    leases.sort_by(|a, b| (&a.start_date, &a.name).cmp(&(&b.start_date, &b.name)));
    let columns = [word("HOST").key(), date("START"), date("END"), word("STATUS"), id("LEASE")];
    let mut table = Table::new(columns).or("No maintenance is booked.");
    for lease in leases {
        table.add_row([host_of(&lease), lease.start_date, lease.end_date, lease.status, lease.id]);
    }
    table
}

fn body(wanted: &Wanted, now: Timestamp, zone: &TimeZone) -> Result<MaintenanceCreate, ClientError> {
    let not_before = wanted.not_before.as_ref().map(|when| When::parse(when, now, zone)).transpose()?;
    let start = not_before.map_or(now, |when| when.instant(now));
    let before = wanted.before.as_ref().map(|when| When::parse_end(when, now, start, zone)).transpose()?;
    let margin = wanted.margin.as_ref().map(|margin| duration(margin)).transpose()?;
    Ok(MaintenanceCreate {
        hosts: wanted.hosts.clone(),
        freepool: wanted.freepool.clone(),
        duration: duration(&wanted.length)?.to_string(),
        margin: margin.map(|margin| margin.to_string()),
        not_before: not_before.map(When::wire),
        before: before.map(When::wire),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_as_the_end_is_the_next_one_after_the_start() {
        let wanted = Wanted {
            hosts: vec!["h1".to_owned()],
            freepool: None,
            length: "1h".to_owned(),
            not_before: Some("2030-03-27 12:00".to_owned()),
            before: Some("15:00".to_owned()),
            margin: None,
        };
        let now = "2030-01-02T10:20:30Z".parse().expect("a timestamp");
        let body = body(&wanted, now, &TimeZone::UTC).expect("maintenance");
        assert_eq!(body.not_before.as_deref(), Some("2030-03-27 12:00"));
        assert_eq!(body.before.as_deref(), Some("2030-03-27 15:00"));
    }
}
