//! `allot lease wait`.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::client::dates::{duration, of_answer, show};
use crate::client::wire::{Lease, read};
use crate::client::{ClientError, Session};

/// How often the service is asked.
const POLL: Duration = Duration::from_millis(500);

/// What to wait for.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The lease's name, or its identifier
    lease: String,
    /// The status to wait for; GONE waits until the lease is deleted
    #[arg(
        long,
        value_name = "STATUS",
        default_value = "ACTIVE",
        value_parser = super::statuses(&["GONE"]),
        ignore_case = true
    )]
    status: String,
    /// How long to wait, by the service's clock; without it, as long as it takes
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
}

/// What is waited for.
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

/// Waits, and returns the lease as it is then; null if it is gone, as it should be.
/// What it waits for is said on standard error, and each reason of the lease's status once.
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
            let because = lease.status_reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
            let text = format!("lease {} is still {}{because}", lease.name, lease.status);
            return Err(ClientError::WithoutResult(text));
        }
        tokio::time::sleep(POLL).await;
    }
}

/// What has been said of a lease while it is waited for.
#[derive(Default)]
struct Told {
    waits: bool,
    reasons: BTreeSet<String>,
}

/// So many reasons of one lease are said; there are a few in practice.
const MOST_REASONS: usize = 100;

impl Told {
    /// What is to be said that has not been said yet.
    fn news(&mut self, lease: &Lease, aim: &str, now: Timestamp, zone: &TimeZone) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.waits {
            self.waits = true;
            lines.push(waits_for(lease, aim, now, zone));
        }
        if let Some(reason) = &lease.status_reason
            && self.reasons.len() < MOST_REASONS
            && self.reasons.insert(reason.clone())
        {
            lines.push(format!("lease {} is {}: {reason}", lease.name, lease.status));
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

/// Why a lease never comes to a status, if that is known.
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
}
