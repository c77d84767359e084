//! `allot usage` reports reservations, usage and costs.

use std::collections::BTreeMap;

use clap::{Args, Subcommand, ValueEnum};
use cluster::nearest;
use leases::usage::Decimal;
use serde::Deserialize;
use serde_json::{Value, json};

use super::host::names_by_number;
use super::identify::{Listed, is_prefix};
use super::lease::{LEASES, identify};
use super::period::{self, Past};
use super::table::{Column, Table, date, id, period as period_column, prose, time, word};
use super::wire::read;
use super::{ClientError, Session};

/// Events per request.
const PAGE: usize = 500;

/// Report of usage, or a subcommand.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    sums: Sums,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the cost of leases and preemptible instances, line by line
    Billing(Billing),
    /// Show events of leases and instances
    Events(Events),
}

/// Periods by which sums can be split.
const STEPS: [&str; 3] = ["hour", "day", "month"];
/// Groups by which sums can be split.
const GROUPS: [&str; 5] = ["project", "user", "pool", "lease", "lease_type"];

/// Checks a comma-separated list of groups and at most one period.
fn grouping(text: &str) -> Result<String, String> {
    let words = || text.split(',').map(str::trim);
    if let Some(word) = words().find(|word| !GROUPS.contains(word) && !STEPS.contains(word)) {
        return Err(format!("invalid group {word:?}: use {}, {}", GROUPS.join(", "), STEPS.join(", ")));
    }
    if words().filter(|word| STEPS.contains(word)).count() > 1 {
        return Err(format!("name one of {}", STEPS.join(", ")));
    }
    Ok(text.to_owned())
}

/// Layout of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Csv,
    Json,
}

#[derive(Args, Debug)]
struct Period {
    #[command(flatten)]
    past: Past,
    /// Only for this project; administrators can choose any
    #[arg(long, value_name = "PROJECT")]
    of_project: Option<String>,
    /// Only for this lease
    #[arg(long, value_name = "ID")]
    lease: Option<String>,
}

#[derive(Args, Debug)]
struct Sums {
    #[command(flatten)]
    period: Period,
    #[arg(
        long,
        value_name = "LIST",
        default_value = "project",
        value_parser = grouping,
        help = "Groups: project, user, pool, lease, lease_type, and one of hour, day, month; separated by commas"
    )]
    by: String,
    /// Only for this user
    #[arg(long, value_name = "USER")]
    of_user: Option<String>,
    /// Only for hosts of this free pool
    #[arg(long, value_name = "POOL")]
    pool: Option<String>,
    /// Layout of the report
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

#[derive(Args, Debug)]
struct Billing {
    #[command(flatten)]
    period: Period,
    /// One line for each hour, day or month
    #[arg(long, value_name = "STEP", value_parser = ["hour", "day", "month"])]
    each: Option<String>,
    /// One amount for each project, or for each user of a project
    #[arg(long, value_enum, value_name = "WHOM", conflicts_with = "format")]
    by: Option<Payer>,
    /// Layout of the report
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// Grouping of amounts on a bill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Payer {
    Project,
    User,
}

#[derive(Args, Debug)]
struct Events {
    #[command(flatten)]
    period: Period,
    /// Only events of this kind: lease.extended, instance.started
    #[arg(long, value_name = "EVENT")]
    event: Option<String>,
    /// Only events after this number
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    after: u64,
}

type Query = Vec<(&'static str, String)>;

pub(crate) async fn run(arguments: &Arguments, session: &mut Session<'_>) -> Result<(), ClientError> {
    match &arguments.command {
        None => sums(&arguments.sums, session).await,
        Some(Command::Billing(billing)) => bill(billing, session).await,
        Some(Command::Events(wanted)) => events(wanted, session).await,
    }
}

/// Query parameters that all reports share.
async fn query(period: &Period, session: &Session<'_>) -> Result<Query, ClientError> {
    let mut query = period.past.query(session).await?;
    query.extend(period.of_project.clone().map(|project| ("project_id", project)));
    if let Some(lease) = &period.lease {
        let id = match identify(lease, session).await {
            Err(error) if is_prefix(lease) && LEASES.is_unknown(lease, &error) => {
                match lease_with_usage(lease, &query, session).await {
                    Err(other) if LEASES.is_unknown(lease, &other) => return Err(error),
                    found => found?,
                }
            }
            found => found?,
        };
        query.push(("lease_id", id));
    }
    Ok(query)
}

/// Leases in rows of usage.
const USED: Listed = Listed { id: "/lease_id", name: "", details: &[], ..LEASES };

/// Finds a lease that has usage in the period by the beginning of its identifier. It may be deleted.
async fn lease_with_usage(
    prefix: &str,
    period: &Query,
    session: &Session<'_>,
) -> Result<String, ClientError> {
    let by_lease = period.iter().cloned().chain([("group_by", "lease".to_owned())]).collect::<Query>();
    let answer = session.connection.get("/v1/usage", &by_lease).await?;
    USED.one_of(&read::<Vec<Value>>(&answer, "usage")?, prefix, &str::to_owned)
}

/// Sends a query, and prints the response unless it must be shown as a table.
async fn ask(
    path: &str,
    mut query: Query,
    format: Format,
    session: &mut Session<'_>,
) -> Result<Option<Value>, ClientError> {
    // `-o csv` has the columns of the table.
    let csv = !session.wants_document() && format == Format::Csv;
    if csv {
        query.push(("format", "csv".to_owned()));
    }
    let answer = session.connection.get(path, &query).await?;
    if let (true, Some(table)) = (csv, answer.as_str()) {
        write!(session.out, "{table}")?;
        return Ok(None);
    }
    if session.wants_document() || format == Format::Json {
        session.print_json(&answer)?;
        return Ok(None);
    }
    Ok(Some(answer))
}

#[derive(Debug, Default, Deserialize)]
struct Row {
    start: String,
    #[serde(default)]
    project_id: String,
    #[serde(default)]
    user_id: String,
    #[serde(default)]
    pool: String,
    #[serde(default)]
    lease_id: String,
    #[serde(default)]
    lease_name: String,
    #[serde(default)]
    lease_type: String,
    leases_started: u64,
    reserved: Figures,
    used: Figures,
    unleased: Figures,
}

#[derive(Debug, Default, Deserialize)]
struct Figures {
    #[serde(default)]
    host_hours: f64,
    #[serde(default)]
    core_hours: f64,
    #[serde(default)]
    gib_hours: f64,
    #[serde(default)]
    instance_hours: f64,
    #[serde(default)]
    instances_started: u64,
}

async fn sums(arguments: &Sums, session: &mut Session<'_>) -> Result<(), ClientError> {
    let mut query = query(&arguments.period, session).await?;
    query.push(("group_by", arguments.by.clone()));
    query.extend(arguments.of_user.clone().map(|user| ("user_id", user)));
    query.extend(arguments.pool.clone().map(|pool| ("pool", pool)));
    let Some(answer) = ask("/v1/usage", query, arguments.format, session).await? else { return Ok(()) };
    period::note(&answer, session);
    let table = sums_table(&arguments.by, &answer)?;
    session.print_table(&table)?;
    match &arguments.period.of_project {
        Some(project) if table.is_empty() => note_similar(project, &arguments.period.past, session).await,
        _ => Ok(()),
    }
}

/// Notes a project with usage in the period whose name is similar to one without.
async fn note_similar(project: &str, past: &Past, session: &mut Session<'_>) -> Result<(), ClientError> {
    let mut query = past.query(session).await?;
    query.push(("group_by", "project".to_owned()));
    let answer = session.connection.get("/v1/usage", &query).await?;
    let rows: Vec<Row> = read(&answer, "usage")?;
    if let Some(similar) = nearest(project, rows.iter().map(|row| row.project_id.as_str())) {
        session.note_to_people(&format!("Did you mean project {similar:?}?"));
    }
    Ok(())
}

pub(super) fn sums_table(by: &str, answer: &Value) -> Result<Table, ClientError> {
    let asked: Vec<&str> = by.split(',').map(str::trim).collect();
    let step = asked.iter().copied().find(|word| STEPS.contains(word));
    // Groups are in the requested order, after the period. A lease also has a column for its name.
    let groups = asked.iter().copied().filter(|word| !STEPS.contains(word));
    let columns: Vec<&str> =
        groups.flat_map(|name| [Some(name), (name == "lease").then_some("name")]).flatten().collect();
    let figures = [
        word("LEASES").hide(4),
        word("HOST HOURS"),
        word("CORE HOURS"),
        word("GIB HOURS").hide(3),
        word("INSTANCES").hide(2),
        word("INSTANCE HOURS").hide(1),
        word("USED CORE HOURS").hide(6),
        word("UNLEASED CORE HOURS"),
    ];
    let groups = columns.iter().map(|name| match *name {
        "name" => word("NAME").hide(5),
        name => id(&name.to_uppercase().replace('_', " ")),
    });
    let from = step.map(|step| period_column("FROM", step));
    let all = from.into_iter().chain(groups).chain(figures);
    let mut table = Table::new(all.collect::<Vec<Column>>()).or("No reservations or usage.");
    for row in read::<Vec<Row>>(answer, "usage")? {
        let named = |column: &&str| match *column {
            "project" => row.project_id.clone(),
            "user" => row.user_id.clone(),
            "pool" => row.pool.clone(),
            "lease" => row.lease_id.clone(),
            "name" => row.lease_name.clone(),
            _ => row.lease_type.clone(),
        };
        let figures = [
            row.leases_started.to_string(),
            hours(row.reserved.host_hours),
            hours(row.reserved.core_hours),
            hours(row.reserved.gib_hours),
            row.used.instances_started.to_string(),
            hours(row.used.instance_hours),
            hours(row.used.core_hours),
            hours(row.unleased.core_hours),
        ];
        let cells =
            step.map(|_| row.start.clone()).into_iter().chain(columns.iter().map(named)).chain(figures);
        table.add_row(cells.collect::<Vec<_>>());
    }
    Ok(table)
}

/// Formats hours with two decimals.
fn hours(hours: f64) -> String {
    format!("{hours:.2}")
}

#[derive(Debug, Deserialize)]
struct Line {
    start: String,
    project_id: String,
    user_id: String,
    #[serde(default)]
    lease_id: String,
    #[serde(default)]
    lease_name: String,
    item: String,
    quantity: String,
    unit: String,
    unit_price: String,
    amount: String,
}

const BILLING: &str = "/v1/usage/billing";

async fn bill(arguments: &Billing, session: &mut Session<'_>) -> Result<(), ClientError> {
    let mut query = query(&arguments.period, session).await?;
    query.extend(arguments.each.clone().map(|step| ("interval", step)));
    let (answer, table) = match arguments.by {
        None => {
            let Some(answer) = ask(BILLING, query, arguments.format, session).await? else { return Ok(()) };
            let table = bill_table(arguments.each.as_deref(), &answer)?;
            (answer, table)
        }
        Some(by) => {
            let mut answer = session.connection.get(BILLING, &query).await?;
            answer["billing"] = bill_by(by, &answer)?;
            if session.wants_document() {
                return session.print_json(&answer);
            }
            let table = payers_table(by, arguments.each.as_deref(), &answer)?;
            (answer, table)
        }
    };
    period::note(&answer, session);
    session.print_table(&table)?;
    if table.is_empty() {
        return Ok(());
    }
    let (total, currency) = (&answer["total"], &answer["currency"]);
    let said = format!("Total: {} {}", total.as_str().unwrap_or("?"), currency.as_str().unwrap_or_default());
    session.done(said.trim_end())
}

/// Sums the lines of a bill per period and payer.
pub(super) fn bill_by(by: Payer, answer: &Value) -> Result<Value, ClientError> {
    let mut sums: BTreeMap<_, u128> = BTreeMap::new();
    for line in read::<Vec<Line>>(answer, "billing")? {
        let amount = millionths(&line.amount).ok_or_else(|| ClientError::Nonsense {
            url: "the service".to_owned(),
            reason: format!("an amount: {}", line.amount),
        })?;
        let user = (by == Payer::User).then_some(line.user_id);
        let sum = sums.entry((line.start, line.project_id, user)).or_default();
        *sum = sum.saturating_add(amount);
    }
    let row = |((start, project, user), millionths): ((String, String, Option<String>), u128)| {
        let amount = Decimal { millionths }.to_string();
        let mut row = json!({"start": start, "project_id": project, "amount": amount});
        if let Some(user) = user {
            row["user_id"] = Value::String(user);
        }
        row
    };
    Ok(sums.into_iter().map(row).collect())
}

/// Parses a decimal number with at most six decimals, in millionths. Amounts in a bill can be larger than any
/// price.
fn millionths(text: &str) -> Option<u128> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let decimals = (decimals.len() <= 6).then(|| format!("{decimals:0<6}"))?;
    let whole = whole.parse::<u128>().ok()?.checked_mul(1_000_000)?;
    whole.checked_add(decimals.parse().ok()?)
}

/// Sum of lines of a bill.
#[derive(Debug, Deserialize)]
struct Sum {
    start: String,
    project_id: String,
    #[serde(default)]
    user_id: String,
    amount: String,
}

/// Table of sums for each `step`, or for the whole period.
pub(super) fn payers_table(by: Payer, step: Option<&str>, answer: &Value) -> Result<Table, ClientError> {
    let from = step.map(|step| period_column("FROM", step));
    let user = (by == Payer::User).then(|| id("USER"));
    let columns = from.into_iter().chain([id("PROJECT")]).chain(user).chain([word("AMOUNT")]);
    let mut table = Table::new(columns.collect::<Vec<Column>>()).or("No charges.");
    for Sum { start, project_id, user_id, amount } in read::<Vec<Sum>>(answer, "billing")? {
        let user = (by == Payer::User).then_some(user_id);
        let cells = step.map(|_| start).into_iter().chain([project_id]).chain(user).chain([amount]);
        table.add_row(cells.collect::<Vec<_>>());
    }
    Ok(table)
}

/// Table of the lines of a bill, for each `step` or for the whole period.
pub(super) fn bill_table(step: Option<&str>, answer: &Value) -> Result<Table, ClientError> {
    let mut table = Table::new([
        step.map_or_else(|| date("FROM"), |step| period_column("FROM", step)),
        id("PROJECT").hide(4),
        id("USER").hide(3),
        id("LEASE"),
        word("NAME").hide(5),
        word("ITEM"),
        word("QUANTITY"),
        word("UNIT").hide(2),
        word("PRICE").hide(1),
        word("AMOUNT"),
    ])
    .or("No charges.");
    let is_free =
        |line: &Line| millionths(&line.unit_price) == Some(0) && millionths(&line.amount) == Some(0);
    for line in read::<Vec<Line>>(answer, "billing")?.into_iter().filter(|line| !is_free(line)) {
        table.add_row([
            line.start,
            line.project_id,
            line.user_id,
            line.lease_id,
            line.lease_name,
            line.item,
            line.quantity,
            line.unit,
            line.unit_price,
            line.amount,
        ]);
    }
    Ok(table)
}

#[derive(Debug, Deserialize)]
struct Entry {
    timestamp: String,
    event: String,
    lease_id: Option<String>,
    instance_id: Option<String>,
    project_id: String,
    status: String,
    #[serde(default)]
    hosts: Vec<String>,
    reason: Option<String>,
}

async fn events(arguments: &Events, session: &mut Session<'_>) -> Result<(), ClientError> {
    let mut filters = query(&arguments.period, session).await?;
    filters.extend(arguments.event.clone().map(|event| ("event", event)));
    filters.push(("limit", PAGE.to_string()));
    let (mut found, mut after): (Vec<Value>, u64) = (Vec::new(), arguments.after);
    loop {
        let mut query = filters.clone();
        query.push(("after", after.to_string()));
        let answer = session.connection.get("/v1/usage/events", &query).await?;
        let page: Vec<Value> = read(&answer, "events")?;
        after = answer["last"].as_u64().unwrap_or(after);
        let more = page.len() == PAGE;
        found.extend(page);
        if !more {
            break;
        }
    }
    // Only administrators get hosts, as numbers.
    let shows_hosts = !session.wants_document() && found.iter().any(|event| event["hosts"].get(0).is_some());
    let hosts = if shows_hosts { names_by_number(session).await } else { BTreeMap::new() };
    let answer = json!({"events": found, "last": after});
    session.print_answer(&answer, || events_table(&answer, &hosts))
}

/// Table of events. `hosts` has names of hosts by number.
pub(super) fn events_table(answer: &Value, hosts: &BTreeMap<String, String>) -> Result<Table, ClientError> {
    let mut table = Table::new([
        time("TIME"),
        word("EVENT"),
        id("LEASE"),
        id("INSTANCE").hide(4),
        word("PROJECT").hide(1),
        word("STATUS"),
        prose("HOSTS").hide(3),
        prose("REASON").hide(2),
    ])
    .or("No matching events.");
    for entry in read::<Vec<Entry>>(answer, "events")? {
        let named = entry.hosts.iter().map(|host| hosts.get(host).unwrap_or(host).as_str());
        table.add_row([
            entry.timestamp,
            entry.event,
            entry.lease_id.unwrap_or_default(),
            entry.instance_id.unwrap_or_default(),
            entry.project_id,
            entry.status,
            named.collect::<Vec<_>>().join(", "),
            entry.reason.unwrap_or_default(),
        ]);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_without_a_price_are_left_out_of_a_bill() {
        let line = |item: &str, price: &str, amount: &str| {
            json!({
                "start": "2030-01-01T00:00:00Z", "project_id": "p", "user_id": "u", "item": item, "quantity": "1",
                "unit": "hour", "unit_price": price, "amount": amount,
            })
        };
        let lines = [line("host", "0", "0"), line("room", "0.5", "0.5"), line("lease", "1", "0")];
        let text = bill_table(None, &json!({"billing": lines})).expect("a table").in_pipe();
        assert!(text.contains("room") && text.contains("lease") && !text.contains("host"), "{text}");
    }

    #[test]
    fn a_bill_is_added_up_by_project_or_by_user() {
        let line = |project: &str, user: &str, amount: &str| {
            json!({
                "start": "2030-01-01T00:00:00Z", "project_id": project, "user_id": user, "lease_id": "l", "item": "host",
                "quantity": "1", "unit": "host-hour", "unit_price": "1", "amount": amount,
            })
        };
        let lines = [
            line("p", "b", "1.5"),
            line("p", "a", "0.000001"),
            line("p", "b", "2"),
            line("q", "a", "3000000000"),
        ];
        let answer = json!({"billing": lines});
        let sums = |by| -> Vec<String> {
            let summed = json!({"billing": bill_by(by, &answer).expect("amounts")});
            let text = payers_table(by, None, &summed).expect("a table").in_pipe();
            text.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
        };
        assert_eq!(sums(Payer::Project), ["p 3.500001", "q 3000000000"]);
        assert_eq!(sums(Payer::User), ["p a 0.000001", "p b 3.5", "q a 3000000000"]);
        for wrong in ["", "x", "-1", "1.0000001", "1.-1"] {
            assert!(bill_by(Payer::User, &json!({"billing": [line("p", "a", wrong)]})).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_deleted_lease_is_found_in_usage_unless_several_begin_so() {
        let row = |id: &str| json!({"lease_id": id, "leases_started": 1});
        let ids = ["ecdcc9ea-d38d-4032-a9e3-3a8dbcc06753", "ecdc1111-d38d-4032-a9e3-3a8dbcc06753"];
        let rows = [row(ids[0]), row(ids[1]), row(ids[1]), json!({"leases_started": 0})];
        let find = |given: &str| USED.one_of(&rows, given, &str::to_owned);
        assert_eq!(find("ECDC1").ok().as_deref(), Some(ids[1]));
        let ambiguous = find("ecdc").expect_err("several");
        assert_eq!(ambiguous.hint(), Some("use more of the ID: ecdc1111, ecdcc9ea"));
        assert!(!LEASES.is_unknown("ecdc", &ambiguous));
        assert!(LEASES.is_unknown("cafe", &find("cafe").expect_err("none")));
        let silent = ClientError::Silent { url: "http://h".to_owned(), reason: "timeout".to_owned() };
        assert!(!LEASES.is_unknown("cafe", &silent));
    }

    #[test]
    fn hosts_of_events_have_names_where_they_are_known() {
        let event = json!({"timestamp": "2030-01-02T10:00:00Z", "event": "lease.started", "project_id": "p",
            "status": "ACTIVE", "hosts": ["7", "8"]});
        let hosts = BTreeMap::from([("7".to_owned(), "r1-h07".to_owned())]);
        let text = events_table(&json!({"events": [event]}), &hosts).expect("a table").in_pipe();
        assert!(text.ends_with("ACTIVE  r1-h07, 8"), "{text}");
    }

    #[test]
    fn an_unknown_group_is_refused_with_those_there_are() {
        assert_eq!(grouping("project, lease_type,day"), Ok("project, lease_type,day".to_owned()));
        let unknown = "invalid group \"foo\": use project, user, pool, lease, lease_type, hour, day, month";
        assert_eq!(grouping("user,foo"), Err(unknown.to_owned()));
        assert_eq!(grouping("hour,day"), Err("name one of hour, day, month".to_owned()));
    }
}
