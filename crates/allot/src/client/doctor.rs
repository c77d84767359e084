//! `allot doctor` compares the database with the fleet.

use clap::{Args, ValueEnum};
use serde::Deserialize;
use serde_json::json;

use super::wire::read;
use super::{ClientError, Session};

/// Changes to make.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Repair what can be repaired; by default, nothing is changed
    #[arg(long)]
    repair: bool,
    /// Confirm that the clock of the service's machine is right, or that the fleet belongs to this database
    #[arg(long, value_name = "WHAT", conflicts_with = "repair")]
    accept: Option<Accepted>,
}

/// Facts to confirm.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Accepted {
    /// The clock of the service's machine
    Clock,
    /// The fleet: allocations for leases that the database doesn't have are released
    Fleet,
}

#[derive(Debug, Deserialize)]
struct Entry {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    host_id: Option<String>,
    message: String,
    #[serde(default)]
    repairable: bool,
}

#[derive(Debug, Deserialize)]
struct Setting {
    key: String,
    value: Option<String>,
}

/// Note about missing quotas, if authentication is on.
fn unlimited(settings: &[Setting]) -> Option<String> {
    let value = |key: &str| {
        let setting = settings.iter().find(|setting| setting.key == key)?;
        setting.value.as_deref().filter(|value| !value.is_empty())
    };
    if value("auth").is_none_or(|auth| auth == "none") {
        return None;
    }
    let missing = ["quota.hosts", "quota.host_hours"].into_iter().filter(|key| value(key).is_none());
    let missing: Vec<&str> = missing.collect();
    (!missing.is_empty()).then(|| {
        format!("Note: projects can lease any number of hosts for any time; unset: {}", missing.join(", "))
    })
}

/// Differences that a repair has removed: the same host no longer has a repairable difference of that kind. Messages aren't
/// compared because they contain counts and states.
fn repaired<'a>(before: &'a [Entry], left: &[Entry]) -> impl Iterator<Item = &'a str> {
    let is_left = move |entry: &Entry| {
        left.iter().any(|other| (&other.kind, &other.host_id) == (&entry.kind, &entry.host_id))
    };
    let repaired = before.iter().filter(move |entry| entry.repairable && !is_left(entry));
    repaired.map(|entry| entry.message.as_str())
}

/// Fails if a difference is left, so that scripts notice it.
pub(crate) async fn run(arguments: &Arguments, session: &mut Session<'_>) -> Result<(), ClientError> {
    // Only used for the output, so a failure is ignored.
    let before: Vec<Entry> = if arguments.repair && !session.wants_document() {
        let before = session.connection.get("/v1/drift", &[]).await;
        before.and_then(|answer| read(&answer, "drift")).unwrap_or_default()
    } else {
        Vec::new()
    };
    let answer = match arguments.accept {
        Some(Accepted::Clock) => session.connection.post("/v1/drift/accept-clock", &json!({})).await?,
        Some(Accepted::Fleet) => session.connection.post("/v1/drift/accept-fleet", &json!({})).await?,
        None if arguments.repair => session.connection.post("/v1/drift/repair", &json!({})).await?,
        None => session.connection.get("/v1/drift", &[]).await?,
    };
    let left: Vec<Entry> = read(&answer, "drift")?;
    for message in repaired(&before, &left) {
        session.print(&format!("Repaired: {message}"))?;
    }
    if session.wants_document() {
        session.print_json(&answer)?;
    } else if left.is_empty() {
        session.print("The database and the fleet agree.")?;
        // The note doesn't count as a difference, so a failure is ignored. Older services don't have this endpoint.
        let settings = session.connection.get("/v1/settings", &[]).await;
        let settings = settings.and_then(|answer| read::<Vec<Setting>>(&answer, "settings"));
        if let Some(note) = settings.ok().and_then(|settings| unlimited(&settings)) {
            session.note(&note);
        }
    } else {
        for entry in &left {
            session.print(&format!("- {}", entry.message))?;
        }
    }
    if left.is_empty() {
        return Ok(());
    }
    let count = match left.len() {
        1 => "1 difference".to_owned(),
        count => format!("{count} differences"),
    };
    let hint = if !arguments.repair && left.iter().any(|entry| entry.repairable) {
        "; `allot doctor --repair` repairs what it can"
    } else {
        ""
    };
    Err(ClientError::WithoutResult(format!("{count} between the database and the fleet{hint}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repair_names_only_what_it_repaired() {
        let entry = |kind: &str, host: Option<&str>, repairable: bool, message: &str| Entry {
            kind: kind.to_owned(),
            host_id: host.map(str::to_owned),
            message: message.to_owned(),
            repairable,
        };
        let before = [
            entry("stray", Some("1"), true, "machine a is fenced"),
            entry("stray", Some("2"), true, "machine b is fenced"),
            entry("changed", Some("1"), true, "machine a has other memory"),
            entry("ownerless", None, true, "lease web (and 4 more) is of project p"),
            entry("step_fails", None, false, "the step has failed 17 times"),
            entry("machine_gone", Some("3"), false, "the fleet has no machine c"),
        ];
        let left = [
            entry("stray", Some("2"), true, "machine b is in the free pool"),
            entry("ownerless", None, true, "lease db (and 1 more) is of project p"),
            entry("step_fails", None, false, "the step has failed 18 times"),
        ];
        let expected = ["machine a is fenced", "machine a has other memory"];
        assert_eq!(repaired(&before, &left).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn quotas_that_are_not_set_are_named_where_there_is_authentication() {
        let note = |settings: &[(&str, &str)]| {
            let setting = |(key, value): &(&str, &str)| Setting {
                key: (*key).to_owned(),
                value: Some((*value).to_owned()).filter(|value| !value.is_empty()),
            };
            unlimited(&settings.iter().map(setting).collect::<Vec<_>>())
        };
        assert_eq!(note(&[("auth", "none"), ("quota.hosts", "")]), None);
        let both = note(&[("auth", "keystone"), ("quota.hosts", ""), ("quota.host_hours", "")]);
        assert!(both.is_some_and(|note| note.ends_with("quota.hosts, quota.host_hours")));
        let one = note(&[("auth", "keystone"), ("quota.hosts", "20"), ("quota.host_hours", "")]);
        assert!(one.is_some_and(|note| note.ends_with("unset: quota.host_hours")));
        assert_eq!(note(&[("auth", "keystone"), ("quota.hosts", "20"), ("quota.host_hours", "5000")]), None);
    }
}
