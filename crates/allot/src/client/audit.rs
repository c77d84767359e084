//! `allot audit` lists recorded changes.

use std::collections::BTreeMap;

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use super::host::{HOSTS, names_by_number};
use super::lease::identify;
use super::table::{Table, id, time, word};
use super::wire::{is_uuid, read};
use super::{ClientError, Session};

/// Entries per request.
const PAGE: usize = 500;
/// Beginning of actions on hosts, whose objects are numbers.
const OF_HOSTS: &str = "host.";

/// Filters of the audit log.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Only changes by this user
    #[arg(long, value_name = "USER")]
    of_user: Option<String>,
    /// Only changes for this project
    #[arg(long, value_name = "PROJECT")]
    of_project: Option<String>,
    /// Only changes of this kind: lease.create, host.update
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,
    /// Only changes to the object with this ID, or to the lease or host with this name
    #[arg(long, value_name = "ID")]
    object: Option<String>,
    /// Only changes made by this request
    #[arg(long, value_name = "REQUEST")]
    request: Option<String>,
    /// Number of latest changes
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
    let mut filters: Vec<(&str, String)> =
        filters.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect();
    let mut found = last(arguments.last, &filters, session).await?;
    let mut is_unknown = false;
    if let Some(object) = arguments.object.as_deref().filter(|object| found.is_empty() && !is_uuid(object)) {
        // The service only matches full identifiers.
        let id = match identify(object, session).await {
            Ok(lease) => Some(lease),
            Err(_) => HOSTS.find(object, session).await.ok(),
        };
        if let Some(id) = id {
            filters.retain(|(name, _)| *name != "object_id");
            filters.push(("object_id", id));
            found = last(arguments.last, &filters, session).await?;
        }
        is_unknown = found.is_empty();
    }
    // Print in chronological order.
    found.reverse();
    let shows_hosts = !session.wants_document() && found.iter().any(is_about_host);
    let hosts = if shows_hosts { names_by_number(session).await } else { BTreeMap::new() };
    let answer = json!({"audit": found});
    session.print_answer(&answer, || table(&answer, &hosts))?;
    if is_unknown {
        session.note_to_people("Use the full ID, as shown by `allot audit -o wide`.");
    }
    Ok(())
}

fn is_about_host(entry: &Value) -> bool {
    entry["action"].as_str().is_some_and(|action| action.starts_with(OF_HOSTS))
}

/// Returns the latest `number` changes that pass the filters, newest first.
async fn last(
    number: usize,
    filters: &[(&str, String)],
    session: &Session<'_>,
) -> Result<Vec<Value>, ClientError> {
    let mut found: Vec<Value> = Vec::new();
    while found.len() < number {
        let wanted = (number - found.len()).min(PAGE);
        let mut query = filters.to_vec();
        query.push(("limit", wanted.to_string()));
        query.extend(found.last().map(|last| ("marker", last["number"].to_string())));
        let page: Vec<Value> = read(&session.connection.get("/v1/audit", &query).await?, "audit")?;
        if page.is_empty() {
            break;
        }
        found.extend(page);
    }
    Ok(found)
}

/// Table of changes. `hosts` has names of hosts by number.
pub(super) fn table(answer: &Value, hosts: &BTreeMap<String, String>) -> Result<Table, ClientError> {
    let columns = [
        time("TIME"),
        id("USER"),
        word("PROJECT").hide(2),
        word("ACTION"),
        id("OBJECT"),
        word("REQUEST").hide(1),
    ];
    let mut table = Table::new(columns).or("No matching changes.");
    for entry in read::<Vec<Entry>>(answer, "audit")? {
        let Entry { timestamp, user_id, project_id, request_id, action, object_id } = entry;
        let host = hosts.get(&object_id).filter(|_| action.starts_with(OF_HOSTS)).cloned();
        let object_id = host.unwrap_or(object_id);
        table.add_row([timestamp, user_id, project_id, action, object_id, request_id]);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_their_names_and_other_numbers_stay() {
        let entry = |action: &str, object: &str| {
            json!({"timestamp": "2030-01-02T10:00:00Z", "user_id": "ann", "project_id": "p", "request_id": "",
                "action": action, "object_id": object})
        };
        let changes = json!({"audit": [entry("host.close", "7"), entry("flavor.create", "7"), entry("host.create", "8")]});
        let hosts = BTreeMap::from([("7".to_owned(), "r1-h07".to_owned())]);
        let text = table(&changes, &hosts).expect("a table").in_pipe();
        let objects: Vec<&str> =
            text.lines().skip(1).filter_map(|line| line.split_whitespace().next_back()).collect();
        assert_eq!(objects, ["r1-h07", "7", "8"]);
    }
}
