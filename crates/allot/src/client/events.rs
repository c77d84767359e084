//! `allot events`.

use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use super::dates::shown_seconds;
use super::wire::{plain, read};
use super::{ClientError, Format, Session};
use crate::shown;

/// Notifications asked for at once.
const PAGE: u32 = 500;
/// How long the service may wait for a notification before it answers that there is none.
const WAIT_SECONDS: u32 = 30;
/// How long to wait before a service that went away is asked again.
const RETRY: Duration = Duration::from_secs(1);

/// Which events.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Go on with those that come; ends by Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Only those after this number
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    after: u64,
    /// Only the last so many of those that there are
    #[arg(long, value_name = "N")]
    last: Option<usize>,
}

/// A notification.
#[derive(Debug, Deserialize)]
struct Notification {
    number: u64,
    timestamp: String,
    event_type: String,
    lease_id: Option<String>,
    project_id: Option<String>,
    #[serde(default)]
    payload: Value,
}

pub(crate) async fn run(arguments: &Arguments, session: &mut Session<'_>) -> Result<(), ClientError> {
    if !session.wants_document() {
        session.note_zone();
    }
    let mut after = arguments.after;
    let mut found = Vec::new();
    loop {
        let page = page(after, 0, session).await?;
        let Some(last) = page.last() else { break };
        after = number(last);
        match arguments.last {
            Some(most) => {
                found.extend(page);
                found.drain(..found.len().saturating_sub(most));
            }
            None => print(&page, session)?,
        }
    }
    print(&found, session)?;
    if !arguments.follow {
        return Ok(());
    }
    loop {
        match page(after, WAIT_SECONDS, session).await {
            Ok(page) => {
                after = page.last().map_or(after, number);
                print(&page, session)?;
            }
            // A service that is started again goes on where it was.
            Err(ClientError::Unreachable { .. } | ClientError::Silent { .. }) => {
                tokio::time::sleep(RETRY).await;
            }
            Err(error) => return Err(error),
        }
    }
}

async fn page(after: u64, wait: u32, session: &Session<'_>) -> Result<Vec<Value>, ClientError> {
    let query = [("after", after.to_string()), ("limit", PAGE.to_string()), ("wait", wait.to_string())];
    read(&session.connection.get("/v1/notifications", &query).await?, "notifications")
}

fn number(notification: &Value) -> u64 {
    notification["number"].as_u64().unwrap_or(0)
}

fn print(page: &[Value], session: &mut Session<'_>) -> Result<(), ClientError> {
    for notification in page {
        let line = if session.wants_document() {
            // One line each, so that a program can read them as they come.
            let line = shown::json(&notification.to_string());
            // YAML has JSON among the items of its lists.
            if session.style.format == Format::Yaml { format!("- {line}") } else { line }
        } else {
            line(notification, &session.zone)?
        };
        session.print(&line)?;
    }
    Ok(session.out.flush()?)
}

fn line(notification: &Value, zone: &jiff::tz::TimeZone) -> Result<String, ClientError> {
    let read = Notification::deserialize(notification).map_err(|error| ClientError::Nonsense {
        url: "the service".to_owned(),
        reason: format!("a notification: {error}"),
    })?;
    let at = shown_seconds(&read.timestamp, zone);
    // Of a lease or a reservation the lease's name, of a host its own.
    let names = ["name", "lease_name", "hypervisor_hostname"].map(|field| plain(&read.payload[field]));
    let name = names.into_iter().find(|name| !name.is_empty()).or(read.lease_id).unwrap_or_default();
    let statuses = ["status", "lease_status", "power"].map(|field| plain(&read.payload[field]));
    let status = statuses.into_iter().find(|status| !status.is_empty()).unwrap_or_default();
    let (number, event_type, project) = (read.number, read.event_type, read.project_id.unwrap_or_default());
    let keep = plain(&read.payload["keep"]);
    let line = format!("{at}  {number:>6}  {event_type:<30}  {name:<20}  {project:<12}  {status:<9}  {keep}");
    Ok(line.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_a_line() {
        let notification = json!({
            "number": 7, "timestamp": "2030-01-02T10:00:01.5Z", "event_type": "lease.event.start_lease",
            "lease_id": "l", "project_id": "p1", "payload": {"name": "web", "status": "ACTIVE"},
        });
        let wanted = "2030-01-02 10:00:01       7  lease.event.start_lease         web                   p1            ACTIVE";
        assert_eq!(line(&notification, &TimeZone::UTC).ok().as_deref(), Some(wanted));
        let unused = json!({
            "number": 9, "timestamp": "2030-01-02T10:00:01.5Z", "event_type": "lease.unused", "lease_id": "l",
            "project_id": "p1", "payload": {"name": "web", "status": "ACTIVE", "keep": "Any change keeps the lease"},
        });
        let shown = line(&unused, &TimeZone::UTC).unwrap_or_default();
        assert!(shown.ends_with("p1            ACTIVE     Any change keeps the lease"), "{shown}");
        let of_host = json!({
            "number": 8, "timestamp": "2030-01-02T10:00:01.5Z", "event_type": "host.boot_failed", "lease_id": null,
            "project_id": null, "payload": {"hypervisor_hostname": "r1-h01", "power": "failed"},
        });
        let wanted = "2030-01-02 10:00:01       8  host.boot_failed                r1-h01                              failed";
        assert_eq!(line(&of_host, &TimeZone::UTC).ok().as_deref(), Some(wanted));
        let of_reservation = json!({
            "number": 10, "timestamp": "2030-01-02T10:00:01.5Z", "event_type": "blazar.reservation.end",
            "lease_id": null, "project_id": "p1", "payload": {"lease_name": "web", "lease_status": "TERMINATED"},
        });
        let wanted = "2030-01-02 10:00:01      10  blazar.reservation.end          web                   p1            TERMINATED";
        assert_eq!(line(&of_reservation, &TimeZone::UTC).ok().as_deref(), Some(wanted));
        assert!(line(&json!({}), &TimeZone::UTC).is_err());
    }
}
