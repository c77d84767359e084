//! `allot maintenance` finds and books times for maintenance.

use api::v1::Maintenance;
use api::v1::body::MaintenanceCreate;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::dates::{When, duration};
use super::table::{Table, date, id, word};
use super::wire::read;
use super::{ClientError, Session};

/// Commands for maintenance.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Find the earliest time at which each host is free
    Plan(Wanted),
    /// Book maintenance at these times, for all hosts or none
    Book(Wanted),
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
