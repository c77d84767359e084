//! `allot lease wait` waits for a status of a lease.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::show::summary;
use crate::client::dates::{duration, of_answer, show};
use crate::client::wire::{Lease, read};
use crate::client::{ClientError, Session};

/// Delay after which a lease that is still waiting is late, and the operator should know about it.
const LATE: SignedDuration = SignedDuration::from_mins(10);

/// Polling interval.
const POLL: Duration = Duration::from_millis(500);

/// Condition to wait for.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Name or ID of the lease
    lease: String,
    /// Status to wait for; GONE waits until the lease is deleted
    #[arg(
        long,
        value_name = "STATUS",
        default_value = "ACTIVE",
        value_parser = super::statuses(&["GONE"]),
        ignore_case = true
    )]
    status: String,
    /// Maximum time to wait, by the service's clock; by default unlimited
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
}

/// Status to wait for, and the time limit.
pub(super) struct Aim {
    status: String,
    timeout: Option<SignedDuration>,
}

impl Aim {
    pub(super) fn active() -> Self {
        Self { status: "ACTIVE".to_owned(), timeout: None }
    }
}

pub(super) async fn run(arguments: &Arguments, session: &mut Session<'_>) -> Result<(), ClientError> {
    let timeout = arguments.timeout.as_deref().map(duration).transpose()?;
    let aim = Aim { status: arguments.status.to_uppercase(), timeout };
    let id = super::identify(&arguments.lease, session).await?;
    let answer = until(&id, &aim, session).await?;
    if answer.is_null() {
        return Ok(());
    }
    super::print_lease(&answer, session)
}

/// Polls a lease until it has the wanted status, and returns it. Returns null if the aim is `GONE` and the
/// lease is gone. Prints to standard error once what the lease waits for, and each reason of its status once.
pub(super) async fn until(id: &str, aim: &Aim, session: &mut Session<'_>) -> Result<Value, ClientError> {
    let mut told = Told::default();
    let deadline = match aim.timeout {
        Some(timeout) => session.now().await.checked_add(timeout).ok(),
        None => None,
    };
    loop {
        let answer = match super::get(id, session).await {
            Err(ClientError::Refused { status: 404, .. }) if aim.status == "GONE" => return Ok(Value::Null),
            answer => answer?,
        };
        let lease: Lease = read(&answer, "lease")?;
        if lease.status == aim.status {
            return Ok(answer);
        }
        if let Some(reason) = hopeless(&lease, &aim.status) {
            return Err(ClientError::WithoutResult(reason));
        }
        let now = session.now().await;
        for line in told.news(&lease, &aim.status, now, &session.zone) {
            session.note(&line);
        }
        if let Some(deadline) = deadline
            && now >= deadline
        {
            return Err(overdue(&lease, &aim.status, now));
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Notes already printed about a lease.
#[derive(Default)]
struct Told {
    waits: bool,
    is_late: bool,
    reasons: BTreeSet<String>,
}

/// Maximum number of reasons printed per lease. In practice there are a few.
const MOST_REASONS: usize = 100;

impl Told {
    /// Returns the notes that haven't been printed yet.
    fn news(&mut self, lease: &Lease, aim: &str, now: Timestamp, zone: &TimeZone) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.waits {
            self.waits = true;
            lines.push(waits_for(lease, aim, now, zone));
        }
        if let Some(reason) = &lease.status_reason {
            let line = format!("lease {} is {}: {reason}{}", lease.name, lease.status, not_ready(lease, aim));
            if self.reasons.len() < MOST_REASONS && self.reasons.insert(line.clone()) {
                lines.push(line);
            }
        }
        if !self.is_late && due(lease).is_some_and(|due| now.duration_since(due) >= LATE) {
            self.is_late = true;
            lines.push(format!("lease {} is late: {}", lease.name, ask_operator(lease)));
        }
        lines
    }
}

fn waits_for(lease: &Lease, aim: &str, now: Timestamp, zone: &TimeZone) -> String {
    let date = match lease.status.as_str() {
        "PENDING" => Some(&lease.start_date),
        "ACTIVE" => Some(&lease.end_date),
        _ => None,
    };
    match date.and_then(|date| of_answer(date)).filter(|date| *date > now) {
        Some(date) => format!("lease {} is {} and waits for {}", lease.name, lease.status, show(date, zone)),
        None => format!("lease {} is {} and waits for {aim}", lease.name, lease.status),
    }
}

/// Start or end that a lease waits for. A best-effort lease can start as late as its timeout.
fn due(lease: &Lease) -> Option<Timestamp> {
    let date = match lease.status.as_str() {
        "PENDING" | "STARTING" => lease.timeout_date.as_ref().unwrap_or(&lease.start_date),
        _ => &lease.end_date,
    };
    of_answer(date)
}

/// Lists the reservations that keep a lease from a status, with their allocated hosts and addresses.
fn not_ready(lease: &Lease, aim: &str) -> String {
    let wanted = match aim {
        "ACTIVE" => "active",
        "TERMINATED" | "GONE" => "deleted",
        _ => return String::new(),
    };
    let parts = lease.reservations.iter().filter(|part| part.status != wanted || part.missing_resources);
    let parts: Vec<String> = parts
        .map(|part| {
            let allocated = [part.texts("hosts"), part.texts("floating_ips")].concat();
            match allocated.as_slice() {
                [] => format!("{}: {}", part.status, summary(part)),
                _ => format!("{}: {} ({})", part.status, summary(part), allocated.join(", ")),
            }
        })
        .collect();
    if parts.is_empty() { String::new() } else { format!("; {}", parts.join("; ")) }
}

fn ask_operator(lease: &Lease) -> String {
    format!("ask the operator of the service about the lease with ID {}", lease.id)
}

/// Error with the reason that a lease is still waiting. After its date, the hint is to ask the operator.
fn overdue(lease: &Lease, aim: &str, now: Timestamp) -> ClientError {
    let because = lease.status_reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let (name, status) = (&lease.name, &lease.status);
    let is_due = due(lease).is_some_and(|due| due <= now);
    let parts = if is_due { not_ready(lease, aim) } else { String::new() };
    let message = format!("lease {name} is still {status}{because}{parts}");
    ClientError::Overdue { message, hint: is_due.then(|| ask_operator(lease)) }
}

/// Reason that a lease can never reach a status. `None` if it can, or if that is unknown.
fn hopeless(lease: &Lease, wanted: &str) -> Option<String> {
    let over = match lease.status.as_str() {
        "ERROR" => !matches!(wanted, "GONE" | "TERMINATED"),
        "TERMINATED" | "DELETING" => wanted != "GONE",
        "ACTIVE" | "TERMINATING" => matches!(wanted, "PENDING" | "STARTING"),
        _ => false,
    };
    over.then(|| {
        let because = lease.status_reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("lease {} is {}{because}", lease.name, lease.status)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lease(status: &str, reason: Option<&str>) -> Lease {
        let lease = json!({
            "id": "1", "name": "web", "user_id": "ann", "project_id": "p1", "status": status, "status_reason": reason,
            "start_date": "2030-01-02T10:00:00.000000", "end_date": "2030-01-04T12:00:00.000000",
            "reservations": [], "events": [], "degraded": false,
        });
        serde_json::from_value(lease).expect("a lease")
    }

    #[test]
    fn what_is_waited_for_is_said_once_and_each_reason_once() {
        let (before, after) = ("2030-01-01T00:00:00Z", "2030-01-02T10:00:07Z");
        let mut told = Told::default();
        let mut news = |status, reason, now: &str| {
            let now = now.parse().expect("a timestamp");
            told.news(&lease(status, reason), "ACTIVE", now, &TimeZone::UTC)
        };
        assert_eq!(news("PENDING", None, before), ["lease web is PENDING and waits for 2030-01-02 10:00"]);
        assert_eq!(news("PENDING", None, before), [""; 0]);
        assert_eq!(news("STARTING", Some("slow"), after), ["lease web is STARTING: slow"]);
        assert_eq!(news("STARTING", Some("slow"), after), [""; 0]);
        assert_eq!(news("STARTING", Some("late"), after), ["lease web is STARTING: late"]);
        assert_eq!(news("STARTING", Some("slow"), after), [""; 0]);
        let now = after.parse().expect("a timestamp");
        let first = Told::default().news(&lease("STARTING", None), "ACTIVE", now, &TimeZone::UTC);
        assert_eq!(first, ["lease web is STARTING and waits for ACTIVE"]);
    }

    #[test]
    fn parts_that_are_not_ready_are_named_and_the_operator_once_it_is_late() {
        let mut lease = lease("STARTING", Some("a host could not be handed over yet (3 tries)"));
        let part = |status: &str, fields: Value| {
            let mut part = json!({"id": "r", "status": status, "resource_type": "physical:host"});
            part.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
            serde_json::from_value(part).expect("a reservation")
        };
        lease.reservations = vec![
            part("active", json!({"min": 1, "max": 1, "hosts": ["r1-h01"]})),
            part("pending", json!({"min": 2, "max": 2, "hosts": ["r1-h02", "r1-h03"]})),
        ];
        let at = |now: &str| -> Timestamp { now.parse().expect("a timestamp") };
        let (on_time, late) = (at("2030-01-02T10:09:00Z"), at("2030-01-02T10:10:00Z"));
        let why =
            "STARTING: a host could not be handed over yet (3 tries); pending: 2 hosts (r1-h02, r1-h03)";
        let ask = "ask the operator of the service about the lease with ID 1";
        let mut told = Told { waits: true, ..Told::default() };
        let mut news = |now| told.news(&lease, "ACTIVE", now, &TimeZone::UTC);
        assert_eq!(news(on_time), [format!("lease web is {why}")]);
        assert_eq!(news(late), [format!("lease web is late: {ask}")]);
        assert_eq!(news(late), [""; 0]);
        let error = overdue(&lease, "ACTIVE", on_time);
        assert_eq!((error.to_string(), error.hint()), (format!("lease web is still {why}"), Some(ask)));
        let early = at("2030-01-02T09:59:00Z");
        assert_eq!(overdue(&lease, "ACTIVE", early).hint(), None, "it doesn't start yet");
        assert_eq!(not_ready(&lease, "STARTING"), "");
        lease.timeout_date = Some("2030-01-03T10:00:00Z".to_owned());
        assert_eq!(overdue(&lease, "ACTIVE", late).hint(), None, "a best-effort lease may wait");
    }
}
