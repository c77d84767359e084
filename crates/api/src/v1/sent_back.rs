//! Leases that clients send back as they read them in answers (API-update).

use serde_json::{Map, Value};

use super::date::read_written;
use super::lease::Lease;

/// Fields of leases in answers that requests can't set.
pub(crate) const READ_ONLY: &[&str] = &[
    "id",
    "user_id",
    "project_id",
    "lease_state",
    "plan",
    "trust_id",
    "status",
    "status_reason",
    "degraded",
    "created_at",
    "updated_at",
    "series_id",
    "usage",
    "cost",
];

/// Fields that differ between answers although the lease wasn't changed.
const VOLATILE: [&str; 4] = ["updated_at", "plan", "usage", "cost"];

macro_rules! with_common {
    ($($name:literal),*) => {
        &[
            "id",
            "lease_id",
            "resource_id",
            "status",
            "missing_resources",
            "resources_changed",
            "created_at",
            "updated_at",
            "hosts",
            "floating_ips",
            $($name),*
        ]
    };
}

/// Fields of reservations of that type in answers that requests for new leases can't set.
pub(crate) fn read_only(resource_type: &str) -> &'static [&'static str] {
    match resource_type {
        "physical:host" => with_common!("aggregate_id", "flavor_ids"),
        "virtual:instance" => with_common!("flavor_id", "aggregate_id", "server_group_id"),
        "flavor:instance" => with_common!("vcpus", "memory_mb", "disk_gb", "aggregate_id", "server_group_id"),
        _ => with_common!(),
    }
}

/// Removes fields with the value that the client reads in `shown`, and volatile fields.
///
/// Entries of `reservations` keep their `id`, which identifies them.
pub(crate) fn changed_fields(body: &Value, shown: &Lease) -> Value {
    let (Some(body), Ok(shown)) = (body.as_object(), serde_json::to_value(shown)) else {
        return body.clone();
    };
    let mut changed = without_unchanged(body, &shown, READ_ONLY);
    if let Some(Value::Array(entries)) = changed.get_mut("reservations") {
        for entry in entries {
            let mut known = shown["reservations"].as_array().into_iter().flatten();
            let known = known.find(|known| known["id"] == entry["id"]);
            if let (Some(fields), Some(known)) = (entry.as_object(), known) {
                let names = read_only(known["resource_type"].as_str().unwrap_or_default());
                let mut fields = without_unchanged(fields, known, names);
                fields.insert("id".to_owned(), known["id"].clone());
                *entry = Value::Object(fields);
            }
        }
    }
    Value::Object(changed)
}

/// Null is also unchanged for read-only fields that the answer omits.
fn without_unchanged(sent: &Map<String, Value>, shown: &Value, read_only: &[&str]) -> Map<String, Value> {
    let unchanged = |name: &str, value: &Value| match shown.get(name) {
        Some(own) => same(value, own) || (name == "timeout_date" && is_same_date(value, own)),
        None => value.is_null() && read_only.contains(&name),
    };
    let kept =
        sent.iter().filter(|(name, value)| !VOLATILE.contains(&name.as_str()) && !unchanged(name, value));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Whether two dates are the same instant. A client might have read one from an earlier version, which wrote
/// it as Blazar does.
fn is_same_date(sent: &Value, shown: &Value) -> bool {
    let read = |value: &Value| value.as_str().and_then(read_written);
    read(sent).is_some_and(|sent| read(shown) == Some(sent))
}

/// Whether two values are equal except for volatile fields.
fn same(sent: &Value, shown: &Value) -> bool {
    match (sent, shown) {
        (Value::Object(sent), Value::Object(shown)) => {
            let volatile = |name: &String| VOLATILE.contains(&name.as_str());
            sent.len() == shown.len()
                && sent.iter().all(|(name, value)| {
                    shown.get(name).is_some_and(|own| volatile(name) || same(value, own))
                })
        }
        (Value::Array(sent), Value::Array(shown)) => {
            sent.len() == shown.len() && sent.iter().zip(shown).all(|(sent, shown)| same(sent, shown))
        }
        _ => sent == shown,
    }
}
