//! `allot lease hints`, and hints in requests and answers.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::client::table::text;
use crate::client::wire::{plain, read};
use crate::client::{ClientError, Session};

/// Hints as requests have them: what is given once is one value, what is given repeatedly a list.
pub(super) fn body(given: &[(String, String)]) -> Value {
    let mut hints: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, value) in given {
        hints.entry(name).or_default().push(value);
    }
    let value = |values: Vec<&str>| match values[..] {
        [one] => json!(one),
        _ => json!(values),
    };
    Value::Object(
        hints.into_iter().map(|(name, values)| (name.to_owned(), value(values))).collect::<Map<_, _>>(),
    )
}

/// The hints of a lease in a few words.
pub(super) fn shown(hints: &BTreeMap<String, Value>) -> String {
    let values = |value: &Value| match value {
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(" "),
        value => plain(value),
    };
    hints.iter().map(|(name, value)| format!("{name}={}", values(value))).collect::<Vec<_>>().join(", ")
}

pub(super) async fn run(session: &mut Session<'_>) -> Result<(), ClientError> {
    let answer = session.connection.get("/v1/hints", &[]).await?;
    if session.json {
        return session.print_json(&answer);
    }
    let hints: Vec<Value> = read(&answer, "hints")?;
    if hints.is_empty() {
        return session.print("Leases may give no hints.");
    }
    let words = |value: &Value| {
        let words = value.as_array().into_iter().flatten().map(plain);
        words.collect::<Vec<_>>().join(" ")
    };
    let mut table = session.style.table(&["HINT", "VALUES", "NOT WITH", "MEANING"]);
    for hint in &hints {
        let values = if hint["values"].is_array() { words(&hint["values"]) } else { plain(&hint["domain"]) };
        table.add_row([plain(&hint["name"]), values, words(&hint["not_with"]), plain(&hint["description"])]);
    }
    session.print(&text(&table)?)?;
    match answer["least_hosts"].as_u64() {
        Some(least) if least > 0 => {
            session.print(&format!("At least {least} host(s) have to match the hints of a lease."))
        }
        _ => Ok(()),
    }
}
