//! `allot calendar` draws host reservations as a chart in the terminal.

mod axis;
mod chart;
mod draw;

use api::v1::{CalendarBar, CalendarHost, CalendarLease};
use clap::Args;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::dates::{When, of_answer};
use super::wire::{Lease, read};
use super::{ClientError, Session};
use chart::{Bar, Chart, Row, State};
use draw::Ink;

/// Chart width if the width of the terminal is unknown, or the output isn't a terminal.
const PLAIN_COLUMNS: u16 = 120;
/// Maximum number of properties in a hint.
const MOST_GROUPS: usize = 30;
/// The service's maximum number of hosts per page.
const PAGE: usize = 1000;

/// Period and layout of the calendar.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Start of the period: now, -1d, today, 2030-01-02, "2030-01-02 10:00"
    #[arg(long, value_name = "WHEN", default_value = "now", allow_hyphen_values = true)]
    from: String,
    /// End of the period, written like --from; a date includes that day. By default a week later
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    to: Option<String>,
    /// Group hosts by this property
    #[arg(long, value_name = "PROPERTY")]
    by: Option<String>,
    /// Width in columns, instead of the terminal's
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
    let calendar = match calendar(from, to, arguments.by.as_deref(), session).await {
        Err(ClientError::Refused { status: 400, message, hint: None })
            if message.starts_with("Malformed parameter group_by") =>
        {
            let hint = other_groups(arguments.by.as_deref(), session).await;
            return Err(ClientError::Refused { status: 400, message, hint });
        }
        calendar => calendar?,
    };
    let offers = session.connection.get("/v1/offers", &[]).await?["offers"].take();
    if session.wants_document() {
        return session.print_json(&json!({ "calendar": calendar, "offers": offers }));
    }
    let offers: Vec<Offer> = read(&json!({ "offers": offers }), "offers")?;
    let leases: Vec<CalendarLease> = read(&calendar, "leases")?;
    let hosts: Vec<CalendarHost> = read(&calendar, "hosts")?;
    let grouped = arguments.by.is_some();
    if let Some(property) = arguments.by.as_deref()
        && !hosts.is_empty()
        && hosts.iter().all(|host| host.group.is_none())
    {
        let there = other_groups(Some(property), session).await;
        let there = there.map(|there| format!("; {there}")).unwrap_or_default();
        session.note_to_people(&format!("No host has a property {property}{there}."));
    }
    let rows = hosts.into_iter().map(|host| row(host, grouped, to, &leases, &offers)).collect();
    let chart = Chart { from, to, now, rows };
    let width = arguments.width.or(session.style.width.filter(|width| *width > 0)).unwrap_or(PLAIN_COLUMNS);
    let ink = ink(arguments, session);
    session.print(&draw::draw(&chart, usize::from(width), ink, &session.zone))
}

/// Properties that hosts can be grouped by instead, for a hint. `None` if they are unknown.
async fn other_groups(asked: Option<&str>, session: &Session<'_>) -> Option<String> {
    let answer = session.connection.get("/v1/os-hosts/properties", &[]).await.ok()?;
    let properties: Vec<Value> = read(&answer, "resource_properties").ok()?;
    let names = properties.iter().filter_map(|property| property["property"].as_str());
    let names = ["pool", "availability_zone"].into_iter().chain(names).filter(|name| Some(*name) != asked);
    let names: Vec<&str> = names.take(MOST_GROUPS).collect();
    Some(format!("hosts can be grouped by {}", names.join(", ")))
}

fn ink(arguments: &Arguments, session: &Session<'_>) -> Ink {
    let colourless = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match (arguments.plain || !session.style.terminal(), colourless) {
        (true, _) => Ink::Letters,
        (false, true) => Ink::Blocks,
        (false, false) => Ink::Colours,
    }
}

/// Reads the whole calendar of a period. The service returns pages, each with its own list of leases.
async fn calendar(
    from: Timestamp,
    to: Timestamp,
    by: Option<&str>,
    session: &Session<'_>,
) -> Result<Value, ClientError> {
    let mut query = vec![("start", from.to_string()), ("end", to.to_string()), ("limit", PAGE.to_string())];
    query.extend(by.map(|property| ("group_by", property.to_owned())));
    let (mut hosts, mut leases): (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
    loop {
        let mut page = session.connection.get("/v1/calendar", &query).await?["calendar"].take();
        let mut more: Vec<Value> = read(&page, "hosts")?;
        for bar in more.iter_mut().filter_map(|host| host["bars"].as_array_mut()).flatten() {
            if let Some(position) = bar["lease"].as_u64() {
                bar["lease"] = json!(position + leases.len() as u64);
            }
        }
        hosts.append(&mut more);
        leases.extend(read::<Vec<Value>>(&page, "leases")?);
        // A repeated marker would loop forever.
        let next = page["next"].as_str().filter(|next| !query.iter().any(|(_, value)| value == next));
        let Some(next) = next else {
            page["hosts"] = hosts.into();
            page["leases"] = leases.into();
            return Ok(page);
        };
        let next = ("marker", next.to_owned());
        query.retain(|(name, _)| *name != "marker");
        query.push(next);
    }
}

/// Converts a lease or maintenance bar. Offers are drawn from the list of offers, which has their names, and
/// instances outside leases aren't drawn.
fn bar(bar: &CalendarBar, to: Timestamp, leases: &[CalendarLease]) -> Option<Bar> {
    let unnamed = match bar.kind.as_ref() {
        "lease" | "other" => "(another project)",
        "maintenance" => "(maintenance)",
        _ => return None,
    };
    let lease = bar.lease.and_then(|position| leases.get(position));
    Some(Bar {
        lease: lease.map(|lease| lease.id.clone()).unwrap_or_default(),
        name: lease.map_or_else(|| unnamed.to_owned(), |lease| lease.name.clone()),
        project: lease.map(|lease| lease.project_id.clone()).unwrap_or_default(),
        status: lease.map(|lease| lease.status.clone()).unwrap_or_default(),
        start: bar.start,
        end: bar.end.unwrap_or(to),
    })
}

fn row(host: CalendarHost, grouped: bool, to: Timestamp, leases: &[CalendarLease], offers: &[Offer]) -> Row {
    let bars = host.bars.iter().flatten().filter_map(|span| bar(span, to, leases));
    let bars = bars.chain(offers.iter().filter_map(|offer| offer.bar_on(&host.id))).collect();
    Row {
        name: host.name.unwrap_or_else(|| format!("host {}", host.id)),
        group: grouped.then(|| host.group.unwrap_or_default()),
        state: if host.status == "open" { State::Fine } else { State::Failed },
        bars,
    }
}

/// A held offer. Its hosts stay reserved until it is accepted or another lease needs them.
#[derive(Debug, Deserialize)]
struct Offer {
    id: String,
    lease: Lease,
    #[serde(default)]
    host_ids: Vec<String>,
}

impl Offer {
    /// Bar of the offer in the row of `host`, if the offer holds that host.
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
