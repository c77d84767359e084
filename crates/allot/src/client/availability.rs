//! `allot availability` shows free capacity over time.

use std::collections::BTreeSet;

use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use super::dates::{When, duration, minute, of_answer, show};
use super::sizes::{gibibytes, mebibytes};
use super::table::{Table, date, word};
use super::wire::{FloatingIp, plain, read};
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
    let none =
        if answer["availability"]["total"] == 0 { check_values(arguments, session).await? } else { None };
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
    if let Some(none) = none {
        session.note(&none);
    }
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

/// Fails if the network has no addresses, or if no host has a value in the requirement. Otherwise returns a note about
/// the requirement. Both name values that exist.
async fn check_values(arguments: &Arguments, session: &Session<'_>) -> Result<Option<String>, ClientError> {
    if let Some(network) = &arguments.network {
        let answer = session.connection.get("/v1/floatingips", &[]).await?;
        let addresses: Vec<FloatingIp> = read(&answer, "floatingips")?;
        let networks: BTreeSet<String> = addresses.into_iter().map(|address| address.network).collect();
        if networks.contains(network) {
            return Ok(None);
        }
        let hint = if networks.is_empty() {
            "no network has addresses for leases".to_owned()
        } else {
            format!("networks with addresses: {}", listed(networks))
        };
        return Err(nothing(format!("network {network:?} has no addresses for leases"), hint));
    }
    let Some(text) = &arguments.requirement else { return Ok(None) };
    let requirement: Value = serde_json::from_str(&requirement::parse(text)?).unwrap_or_default();
    let answer = session.connection.get("/v1/os-hosts/properties", &[("detail", "True".to_owned())]).await?;
    let properties: Vec<Value> = read(&answer, "resource_properties")?;
    match unknown_value(&requirement, &properties) {
        Some(error) => Err(error),
        None => {
            Ok(Some(format!("No host meets --where {text:?}{}", values_in_use(&requirement, &properties))))
        }
    }
}

/// Values that hosts have for each property in a requirement: `; rack: r1, r2`. Some properties aren't listed.
fn values_in_use(requirement: &Value, properties: &[Value]) -> String {
    let requirement = requirement.to_string();
    let texts = properties.iter().filter_map(|property| {
        let name = property["property"].as_str()?;
        let values = property["values"].as_array()?;
        let is_named = requirement.contains(&Value::String(format!("${name}")).to_string());
        is_named.then(|| format!("; {name}: {}", listed(values.iter().map(plain))))
    });
    texts.collect()
}

/// Maximum number of values in a hint.
const MOST_VALUES: usize = 12;

/// Joins values for a hint.
fn listed(values: impl IntoIterator<Item = String>) -> String {
    let values: Vec<String> = values.into_iter().collect();
    match values.get(..MOST_VALUES) {
        Some(first) if values.len() > MOST_VALUES => {
            format!("{}, and {} more", first.join(", "), values.len() - MOST_VALUES)
        }
        _ => values.join(", "),
    }
}

fn nothing(message: String, hint: String) -> ClientError {
    ClientError::Refused { status: 404, message, hint: Some(hint) }
}

/// Error for the first property in the requirement that no host has with a required value.
fn unknown_value(requirement: &Value, properties: &[Value]) -> Option<ClientError> {
    let parts = requirement.as_array()?;
    match parts.as_slice() {
        [Value::String(operator), Value::String(name), wanted @ ..]
            if matches!(operator.as_str(), "==" | "in") && name.starts_with('$') =>
        {
            let name = &name[1..];
            let property = properties.iter().find(|property| property["property"] == name)?;
            let values = property["values"].as_array()?;
            if wanted.iter().any(|wanted| values.iter().any(|value| plain(value) == plain(wanted))) {
                return None;
            }
            let wanted = wanted.iter().map(plain).collect::<Vec<_>>().join(" or ");
            let hint = format!("values of {name}: {}", listed(values.iter().map(plain)));
            Some(nothing(format!("no host has {name}={wanted}"), hint))
        }
        [Value::String(operator), parts @ ..] if operator != "not" => {
            parts.iter().find_map(|part| unknown_value(part, properties))
        }
        _ => None,
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_that_no_host_has_is_named_with_those_there_are() {
        let properties = [json!({"property": "rack", "values": ["r1", "r2"]}), json!({"property": "gpu"})];
        let unknown = |text: &str| {
            let requirement = requirement::parse(text).expect(text);
            let error = unknown_value(&serde_json::from_str(&requirement).expect(text), &properties)?;
            Some((error.to_string(), error.hint().map(str::to_owned).unwrap_or_default()))
        };
        let wanted = ("no host has rack=r9".to_owned(), "values of rack: r1, r2".to_owned());
        assert_eq!(unknown("rack=r9"), Some(wanted.clone()));
        assert_eq!(unknown("vcpus>=16 and (rack=r9 or gpu=a100)"), Some(wanted));
        assert!(unknown("rack in (r8,r9)").is_some_and(|(message, _)| message.ends_with("rack=r8 or r9")));
        for fine in ["rack=r1", "rack in (r2,r9)", "not rack=r9", "rack!=r9", "gpu=a100", "room=b"] {
            assert_eq!(unknown(fine), None, "{fine}");
        }
        let in_use = |text: &str| {
            let requirement = requirement::parse(text).expect(text);
            values_in_use(&serde_json::from_str(&requirement).expect(text), &properties)
        };
        assert_eq!(in_use("rack=r1 and not rack=r1"), "; rack: r1, r2");
        assert_eq!(in_use("vcpus>=1000 and gpu=a100"), "");
        let many: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        assert!(listed(many).ends_with("11, and 8 more"));
        assert_eq!(listed(["a".to_owned()]), "a");
    }
}
