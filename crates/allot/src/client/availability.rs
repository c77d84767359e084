//! `allot availability` shows free capacity over time.

use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use super::dates::{When, duration, minute, of_answer, show};
use super::sizes::{gibibytes, mebibytes};
use super::table::{Table, date, word};
use super::wire::read;
use super::{ClientError, Session, requirement};

/// Maximum width of a bar, in columns.
const BAR: u64 = 20;

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Start of the period; by default now
    #[arg(long, value_name = "WHEN")]
    from: Option<String>,
    /// End of the period; a date includes that day. By default 30 days later
    #[arg(long, value_name = "WHEN")]
    to: Option<String>,
    /// Requirements on hosts: 'rack=r1 and vcpus>=16'
    #[arg(long = "where", value_name = "EXPRESSION", conflicts_with_all = ["flavor", "network"])]
    requirement: Option<String>,
    /// Capacity for instances of this flavor, instead of whole hosts
    #[arg(long, value_name = "ID", conflicts_with_all = ["vcpus", "network"])]
    flavor: Option<String>,
    /// Capacity for instances with this many virtual CPUs
    #[arg(long, value_name = "N", requires = "memory", conflicts_with = "network")]
    vcpus: Option<u32>,
    /// Memory of each instance: 4096, 512M, 4G
    #[arg(long, value_name = "MIB", value_parser = mebibytes, requires = "vcpus")]
    memory: Option<u32>,
    /// Disk of each instance: 20, 20G, 1T
    #[arg(long, value_name = "GIB", value_parser = gibibytes, requires = "vcpus")]
    disk: Option<u32>,
    /// Floating IPs of this network
    #[arg(long, value_name = "NETWORK")]
    network: Option<String>,
    /// Number needed at the same time
    #[arg(long, value_name = "N", default_value_t = 1, requires = "length")]
    amount: u32,
    /// Duration: 4h, 2d; shows the earliest times
    #[arg(long = "for", value_name = "DURATION", id = "length")]
    length: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Found {
    resource_type: String,
    total: u64,
    steps: Vec<Step>,
    best: Option<Vec<Span>>,
}

#[derive(Debug, Deserialize)]
struct Step {
    start: String,
    end: String,
    free: u64,
}

#[derive(Debug, Deserialize)]
struct Span {
    start: String,
    end: String,
}

pub(crate) async fn run(arguments: &Arguments, session: &mut Session<'_>) -> Result<(), ClientError> {
    let query = query(arguments, session).await?;
    let answer: Value = session.connection.get("/v1/availability", &query).await?;
    if session.wants_document() {
        return session.print_json(&answer);
    }
    let found: Found = read(&answer, "availability")?;
    let what = match found.resource_type.as_str() {
        "physical:host" => "hosts",
        "virtual:floatingip" => "addresses",
        _ => "instances",
    };
    session.print_table(&table(&found, what))?;
    let Some(best) = &found.best else { return Ok(()) };
    let amount = arguments.amount;
    if best.is_empty() {
        return session.done(&format!("No time found at which {amount} {what} are free for that long."));
    }
    let shown = |time: &str| of_answer(time).map_or(time.to_owned(), |at| show(at, &session.zone));
    let lines: Vec<String> =
        best.iter().map(|Span { start, end }| format!("  {} to {}", shown(start), shown(end))).collect();
    let what = match (amount, what) {
        (1, "hosts") => "host",
        (1, "addresses") => "address",
        (1, "instances") => "instance",
        _ => what,
    };
    session.done(&format!("Earliest times for {amount} {what}:\n{}", lines.join("\n")))
}

pub(super) fn table(found: &Found, what: &str) -> Table {
    let columns =
        [date("FROM"), date("UNTIL"), word(&format!("FREE {}", what.to_uppercase())), word("").hide(1)];
    let mut table = Table::new(columns);
    // Skip the rest of the current minute: its row would start and end at the same minute.
    let is_shown = |step: &&Step| {
        let minute_of = |date: &str| of_answer(date).map(minute);
        minute_of(&step.start).is_none_or(|start| Some(start) != minute_of(&step.end))
    };
    for Step { start, end, free } in found.steps.iter().filter(is_shown) {
        let length = if found.total == 0 { 0 } else { (free * BAR).div_ceil(found.total) };
        let bar = "#".repeat(usize::try_from(length).unwrap_or(0));
        table.add_row([start.clone(), end.clone(), format!("{free} of {}", found.total), bar]);
    }
    table
}

async fn query(
    arguments: &Arguments,
    session: &Session<'_>,
) -> Result<Vec<(&'static str, String)>, ClientError> {
    let now = session.now().await;
    let mut query = Vec::new();
    let mut start = now;
    if let Some(from) = &arguments.from {
        start = When::parse(from, now, &session.zone)?.instant(now);
        query.push(("start", start.to_string()));
    }
    if let Some(to) = &arguments.to {
        query.push(("end", When::parse_last(to, now, start, &session.zone)?.instant(now).to_string()));
    }
    if let Some(text) = &arguments.requirement {
        query.push(("resource_properties", requirement::parse(text)?));
    }
    let numbers = [
        ("flavor_id", arguments.flavor.clone()),
        ("vcpus", arguments.vcpus.map(|number| number.to_string())),
        ("memory_mb", arguments.memory.map(|number| number.to_string())),
        ("disk_gb", arguments.disk.map(|number| number.to_string())),
        ("network_id", arguments.network.clone()),
    ];
    query.extend(numbers.into_iter().filter_map(|(name, value)| Some((name, value?))));
    if let Some(length) = &arguments.length {
        query.push(("duration", format!("{}m", duration(length)?.as_mins())));
        query.push(("amount", arguments.amount.to_string()));
    }
    Ok(query)
}
