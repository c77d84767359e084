//! `allot audit`.

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use super::dates::{show_seconds, zone_name};
use super::table::text;
use super::wire::read;
use super::{ClientError, Session};

/// Asked for at once.
const PAGE: usize = 500;

/// Which changes.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Only those of this user
    #[arg(long, value_name = "USER")]
    of_user: Option<String>,
    /// Only those for this project
    #[arg(long, value_name = "PROJECT")]
    of_project: Option<String>,
    /// Only those of this kind: lease.create, host.update
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,
    /// Only those of what has this identifier
    #[arg(long, value_name = "ID")]
    object: Option<String>,
    /// Only those of this request
    #[arg(long, value_name = "REQUEST")]
    request: Option<String>,
    /// The last so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    last: usize,
}

#[derive(Debug, Deserialize)]
struct Entry {
    timestamp: String,
    user_id: String,
    project_id: String,
    request_id: String,
    action: String,
    object_id: String,
}

pub(crate) async fn run(arguments: &Arguments, session: &mut Session<'_>) -> Result<(), ClientError> {
    let filters = [
        ("user_id", &arguments.of_user),
        ("project_id", &arguments.of_project),
        ("action", &arguments.action),
        ("object_id", &arguments.object),
        ("request_id", &arguments.request),
    ];
    let filters: Vec<(&str, String)> =
        filters.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect();
    let mut found: Vec<Value> = Vec::new();
    while found.len() < arguments.last {
        let wanted = (arguments.last - found.len()).min(PAGE);
        let mut query = filters.clone();
        query.push(("limit", wanted.to_string()));
        query.extend(found.last().map(|last| ("marker", last["number"].to_string())));
        let page: Vec<Value> = read(&session.connection.get("/v1/audit", &query).await?, "audit")?;
        if page.is_empty() {
            break;
        }
        found.extend(page);
    }
    // As one reads: what was done first comes first.
    found.reverse();
    if session.json {
        return session.print_json(&json!({"audit": found}));
    }
    if found.is_empty() {
        return session.print("There are no such changes.");
    }
    session.print(&format!("Times are {}.", zone_name(&session.zone)))?;
    let mut table = session.style.table(&["TIME", "USER", "PROJECT", "ACTION", "OBJECT", "REQUEST"]);
    for entry in read::<Vec<Entry>>(&json!({"audit": found}), "audit")? {
        let at =
            entry.timestamp.parse().map_or(entry.timestamp, |instant| show_seconds(instant, &session.zone));
        table.add_row([at, entry.user_id, entry.project_id, entry.action, entry.object_id, entry.request_id]);
    }
    session.print(&text(&table)?)
}
