//! `allot lease hints`, and hints in requests and responses.

use std::collections::BTreeMap;

use api::v1::SchedulerHints;
use cluster::nearest;
use serde_json::Value;

use crate::client::table::{Table, prose, word};
use crate::client::wire::{plain, read};
use crate::client::{ClientError, Session};

/// Maximum number of values per hint in the table. `-o json` has all of them.
const MOST_VALUES: usize = 5;

/// Converts hints to the form of requests.
pub(super) fn body(given: &[(String, String)]) -> Result<SchedulerHints, ClientError> {
    let mut hints = SchedulerHints::default();
    for (name, value) in given {
        let value = value.clone();
        match name.as_str() {
            "host" => hints.host.push(value),
            "same_host" => hints.same_host.push(value),
            "different_host" => hints.different_host.push(value),
            "query" => set(&mut hints.query, name, value)?,
            "location" => set(&mut hints.location, name, value)?,
            "group" => set(&mut hints.group, name, value)?,
            _ => {
                let meant =
                    nearest(name, ["host", "same_host", "different_host", "query", "location", "group"]);
                let meant = meant.map(|meant| format!(" did you mean {meant}?")).unwrap_or_default();
                let unknown = "`allot lease hints` lists all hints";
                return Err(ClientError::Usage(format!("--hint {name}: unknown hint;{meant} {unknown}")));
            }
        }
    }
    Ok(hints)
}

fn set(hint: &mut Option<String>, name: &str, value: String) -> Result<(), ClientError> {
    match hint.replace(value) {
        None => Ok(()),
        Some(_) => Err(ClientError::Usage(format!("--hint {name}: it can be given only once"))),
    }
}

/// Formats the hints of a lease as `name=value, ...`.
pub(super) fn shown(hints: &BTreeMap<String, Value>) -> String {
    let values = |value: &Value| match value {
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(" "),
        value => plain(value),
    };
    hints.iter().map(|(name, value)| format!("{name}={}", values(value))).collect::<Vec<_>>().join(", ")
}

pub(super) async fn run(session: &mut Session<'_>) -> Result<(), ClientError> {
    let answer = session.connection.get("/v1/hints", &[]).await?;
    session.print_answer(&answer, || table(&answer))?;
    if let Some(least @ 1..) = answer["least_hosts"].as_u64() {
        session.note_to_people(&format!("At least {least} hosts must match the hints of a lease."));
    }
    Ok(())
}

pub(crate) fn table(answer: &Value) -> Result<Table, ClientError> {
    let words = |value: &Value| {
        let values = value.as_array().map(Vec::as_slice).unwrap_or_default();
        let shown = if values.len() > MOST_VALUES { &values[..MOST_VALUES - 1] } else { values };
        let mut words: Vec<String> = shown.iter().map(plain).collect();
        if shown.len() < values.len() {
            words.push(format!("and {} more", values.len() - shown.len()));
        }
        words.join(" ")
    };
    let mut table = Table::new([
        word("HINT").key(),
        prose("VALUES"),
        prose("NOT WITH").hide(1),
        prose("MEANING").at_least(40),
    ])
    .or("Leases can't have hints.");
    for hint in read::<Vec<Value>>(answer, "hints")? {
        let values = if hint["values"].is_array() { words(&hint["values"]) } else { plain(&hint["domain"]) };
        table.add_row([plain(&hint["name"]), values, words(&hint["not_with"]), plain(&hint["description"])]);
    }
    Ok(table)
}
