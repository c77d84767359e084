//! `allot calendar`: who has which host when, as a chart in the terminal.

mod axis;
mod chart;
mod draw;

use std::collections::BTreeMap;

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::dates::{When, minute, of_answer};
use super::wire::{Allocation, Host, Lease, plain, read};
use super::{ClientError, Session, host};
use chart::{Bar, Chart, Row, State};
use draw::Ink;

/// What is drawn where lines have no end.
const PLAIN_COLUMNS: u16 = 120;
/// Leases that are over are asked about one by one; more than so many are left out.
const MOST_PAST: usize = 100;

/// What to draw.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// From when: now, -1d, today, 2030-01-02, "2030-01-02 10:00"
    #[arg(long, value_name = "WHEN", default_value = "now", allow_hyphen_values = true)]
    from: String,
    /// End of the period, written like --from; a day is included. By default a week later
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    to: Option<String>,
    /// Put hosts with the same value of this property together
    #[arg(long, value_name = "PROPERTY")]
    by: Option<String>,
    /// Columns to draw in, instead of the terminal's width
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(40..=1000))]
    width: Option<u16>,
    /// Draw with letters only
    #[arg(long)]
    plain: bool,
}

pub(crate) async fn run(arguments: &Arguments, session: &mut Session<'_>) -> Result<(), ClientError> {
    let now = session.now().await;
    let from = When::parse(&arguments.from, now, &session.zone)?.instant(now);
    let to = match &arguments.to {
        Some(to) => When::parse_last(to, now, from, &session.zone)?.instant(now),
        None => from.checked_add(SignedDuration::from_hours(7 * 24)).unwrap_or(Timestamp::MAX),
    };
    if to <= from {
        return Err(ClientError::Usage("--to must be later than --from".to_owned()));
    }
    let hosts = host::all(session).await?;
    let leases = host::lease_names(session).await;
    let allocations = allocations(from, now, &leases, session).await?;
    let offers = session.connection.get("/v1/offers", &[]).await?["offers"].take();
    if session.json {
        return session.print_json(&json!({
            "from": from.to_string(), "to": to.to_string(), "allocations": allocations, "offers": offers,
        }));
    }
    let taken: Vec<Allocation> = read(&json!({ "allocations": allocations }), "allocations")?;
    let offers: Vec<Offer> = read(&json!({ "offers": offers }), "offers")?;
    let rows = rows(&hosts, &taken, &leases, &offers, arguments.by.as_deref());
    let chart = Chart { from, to, now, rows };
    let width = arguments.width.or(session.style.width.filter(|width| *width > 0)).unwrap_or(PLAIN_COLUMNS);
    let ink = ink(arguments, session);
    session.print(&draw::draw(&chart, usize::from(width), ink, &session.zone))
}

fn ink(arguments: &Arguments, session: &Session<'_>) -> Ink {
    let colourless = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match (arguments.plain || !session.style.terminal(), colourless) {
        (true, _) => Ink::Letters,
        (false, true) => Ink::Blocks,
        (false, false) => Ink::Colours,
    }
}

/// What is reserved from then on. Without being asked for a certain lease, the service leaves out what is over.
async fn allocations(
    from: Timestamp,
    now: Timestamp,
    leases: &BTreeMap<String, Lease>,
    session: &Session<'_>,
) -> Result<Vec<Value>, ClientError> {
    let path = "/v1/os-hosts/allocations";
    let mut entries: Vec<Value> = read(&session.connection.get(path, &[]).await?, "allocations")?;
    let over =
        |lease: &&Lease| of_answer(&lease.end_date).is_some_and(|end| from < end && end <= minute(now));
    for lease in leases.values().filter(over).take(MOST_PAST) {
        let query = [("lease_id", lease.id.clone())];
        let of_lease: Vec<Value> = read(&session.connection.get(path, &query).await?, "allocations")?;
        for one in of_lease {
            let same = entries.iter_mut().find(|entry| entry["resource_id"] == one["resource_id"]);
            if let (Some(entry), Some(more)) = (same, one["reservations"].as_array())
                && let Some(present) = entry["reservations"].as_array_mut()
            {
                let fresh = more.iter().filter(|reservation| !present.contains(reservation));
                let fresh: Vec<Value> = fresh.cloned().collect();
                present.extend(fresh);
            }
        }
    }
    Ok(entries)
}

/// An offer that is held: hosts are reserved for it, until it is accepted or others need them.
#[derive(Debug, Deserialize)]
struct Offer {
    id: String,
    lease: Lease,
    #[serde(default)]
    host_ids: Vec<String>,
}

impl Offer {
    /// What is drawn of it on the row of that host, if it is reserved.
    fn bar_on(&self, host: &str) -> Option<Bar> {
        self.host_ids.iter().any(|id| id == host).then_some(())?;
        Some(Bar {
            lease: self.id.clone(),
            name: format!("offer: {}", self.lease.name),
            project: self.lease.project_id.clone(),
            status: "OFFERED".to_owned(),
            start: of_answer(&self.lease.start_date)?,
            end: of_answer(&self.lease.end_date)?,
        })
    }
}

/// A row for each host, grouped by a property if one is given.
fn rows(
    hosts: &[Host],
    allocations: &[Allocation],
    leases: &BTreeMap<String, Lease>,
    offers: &[Offer],
    by: Option<&str>,
) -> Vec<Row> {
    let group = |host: &Host| by.map(|name| host.fields.get(name).map(plain).unwrap_or_default());
    let mut rows: Vec<Row> = hosts
        .iter()
        .map(|host| {
            let entries = allocations.iter().filter(|entry| entry.resource_id == host.id);
            let bars = entries.flat_map(|entry| &entry.reservations).filter_map(|reservation| {
                let lease = leases.get(&reservation.lease_id);
                Some(Bar {
                    lease: reservation.lease_id.clone(),
                    name: lease.map_or_else(|| "(another project)".to_owned(), |lease| lease.name.clone()),
                    project: lease.map(|lease| lease.project_id.clone()).unwrap_or_default(),
                    status: lease.map(|lease| lease.status.clone()).unwrap_or_default(),
                    start: of_answer(&reservation.start_date)?,
                    end: of_answer(&reservation.end_date)?,
                })
            });
            let bars = bars.chain(offers.iter().filter_map(|offer| offer.bar_on(&host.id)));
            let state = if host.reservable { State::Fine } else { State::Failed };
            Row { name: host.hypervisor_hostname.clone(), group: group(host), state, bars: bars.collect() }
        })
        .collect();
    rows.sort_by(|a, b| a.group.cmp(&b.group));
    rows
}
