//! `allot events` prints notifications.

use std::time::Duration;

use clap::Args;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::Value;

use super::dates::shown_seconds;
use super::table::{Rendered, Style, Table, id, prose, time, word};
use super::wire::{plain, read};
use super::{ClientError, Format, Session};
use crate::shown;

/// Notifications per request.
const PAGE: u32 = 500;
/// Time that the service can wait for a notification before it returns an empty page.
const WAIT_SECONDS: u32 = 30;
/// Delay before retrying a service that went away.
const RETRY: Duration = Duration::from_secs(1);

/// Selection of events.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Continue with new events until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Only events after this number
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    after: u64,
    /// Only this number of latest events
    #[arg(long, value_name = "N")]
    last: Option<usize>,
}

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
    // Tables print their own note about the time zone.
    if !session.wants_document() && !is_table(&session.style) {
        session.note_zone();
    }
    let mut printer = Printer::default();
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
            None => printer.print(&page, session)?,
        }
    }
    printer.print(&found, session)?;
    if !arguments.follow {
        return Ok(());
    }
    printer.follows = true;
    loop {
        match page(after, WAIT_SECONDS, session).await {
            Ok(page) => {
                after = page.last().map_or(after, number);
                printer.print(&page, session)?;
            }
            // A restarted service continues where it left off.
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

/// Whether events are printed as a table. In a pipe, they are lines, unless a table is requested.
fn is_table(style: &Style) -> bool {
    style.is_brief() || style.format == Format::Wide || style.columns.is_some()
}

/// Prints pages of notifications.
#[derive(Default)]
struct Printer {
    /// Whether the headings and notes of the table have been printed.
    headed: bool,
    /// Whether pages arrive one after another, with a few events each.
    follows: bool,
}

impl Printer {
    fn print(&mut self, page: &[Value], session: &mut Session<'_>) -> Result<(), ClientError> {
        if session.wants_document() {
            for notification in page {
                // One line per notification, so that a program can read them as they arrive.
                let line = shown::json(&notification.to_string());
                // List items in YAML can be JSON.
                let is_yaml = session.style.format == Format::Yaml;
                session.print(&if is_yaml { format!("- {line}") } else { line })?;
            }
        } else if is_table(&session.style) {
            self.print_table(page, session)?;
        } else {
            for notification in page {
                let line = Event::read(notification)?.line(&session.zone);
                session.print(&line)?;
            }
        }
        Ok(session.out.flush()?)
    }

    /// Prints a page as a table. Only the first page has headings.
    fn print_table(&mut self, page: &[Value], session: &mut Session<'_>) -> Result<(), ClientError> {
        if page.is_empty() {
            return Ok(());
        }
        let table = table(page, self.follows)?;
        let style = session.style.clone();
        let style = Style { no_header: style.no_header || self.headed, ..style };
        let Rendered { text, notes } = table.render(&style, &session.zone, session.answered())?;
        session.print(&text)?;
        if !self.headed {
            for note in &notes {
                session.note(note);
            }
        }
        self.headed = true;
        Ok(())
    }
}

/// Fields of a notification that are shown.
struct Event {
    number: u64,
    at: String,
    kind: String,
    /// Name of a lease or host.
    name: String,
    project: String,
    status: String,
    /// How to keep an unused lease.
    keep: String,
}

impl Event {
    fn read(notification: &Value) -> Result<Self, ClientError> {
        let read = Notification::deserialize(notification).map_err(|error| ClientError::Nonsense {
            url: "the service".to_owned(),
            reason: format!("a notification: {error}"),
        })?;
        let first = |fields: [&str; 3]| {
            let texts = fields.map(|field| plain(&read.payload[field]));
            texts.into_iter().find(|text| !text.is_empty())
        };
        Ok(Self {
            name: first(["name", "lease_name", "hypervisor_hostname"]).or(read.lease_id).unwrap_or_default(),
            status: first(["status", "lease_status", "power"]).unwrap_or_default(),
            keep: plain(&read.payload["keep"]),
            number: read.number,
            at: read.timestamp,
            kind: read.event_type,
            project: read.project_id.unwrap_or_default(),
        })
    }

    /// Formats the event as a line for programs.
    fn line(&self, zone: &TimeZone) -> String {
        let Self { number, at, kind, name, project, status, keep } = self;
        let at = shown_seconds(at, zone);
        let line = format!("{at}  {number:>6}  {kind:<30}  {name:<20}  {project:<12}  {status:<9}  {keep}");
        line.trim_end().to_owned()
    }
}

/// Table of notifications. If more pages `follow`, columns are wide enough for most events.
pub(super) fn table(page: &[Value], follow: bool) -> Result<Table, ClientError> {
    let mut table = Table::new([
        time("TIME"),
        word("NUMBER").hide(2),
        word("EVENT"),
        id("NAME"),
        word("PROJECT").hide(1),
        word("STATUS").hide(3),
        prose("NOTE").at_least(24),
    ])
    .paged();
    let least = |width: usize| if follow { width } else { 0 };
    for notification in page {
        let Event { number, at, kind, name, project, status, keep } = Event::read(notification)?;
        let (kind, name) = (format!("{kind:<0$}", least(24)), format!("{name:<0$}", least(16)));
        table.add_row([at, number.to_string(), kind, name, project, status, keep]);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(notification: &Value) -> Option<String> {
        Some(Event::read(notification).ok()?.line(&TimeZone::UTC))
    }

    #[test]
    fn events_in_a_pipe_are_lines_unless_a_table_is_requested() {
        let columns = Some(std::rc::Rc::new(vec!["TIME".to_owned()]));
        for (style, wanted) in [
            (Style::default(), false),
            (Style { width: Some(80), ..Style::default() }, true),
            (Style { format: Format::Wide, ..Style::default() }, true),
            (Style { columns, ..Style::default() }, true),
        ] {
            assert_eq!(is_table(&style), wanted, "{style:?}");
        }
    }

    #[test]
    fn an_event_is_a_line() {
        let notification = json!({
            "number": 7, "timestamp": "2030-01-02T10:00:01.5Z", "event_type": "lease.event.start_lease",
            "lease_id": "l", "project_id": "p1", "payload": {"name": "web", "status": "ACTIVE"},
        });
        let wanted = "2030-01-02 10:00:01       7  lease.event.start_lease         web                   p1            ACTIVE";
        assert_eq!(line(&notification).as_deref(), Some(wanted));
        let unused = json!({
            "number": 9, "timestamp": "2030-01-02T10:00:01.5Z", "event_type": "lease.unused", "lease_id": "l",
            "project_id": "p1", "payload": {"name": "web", "status": "ACTIVE", "keep": "Any change keeps the lease"},
        });
        let shown = line(&unused).unwrap_or_default();
        assert!(shown.ends_with("p1            ACTIVE     Any change keeps the lease"), "{shown}");
        let of_host = json!({
            "number": 8, "timestamp": "2030-01-02T10:00:01.5Z", "event_type": "host.boot_failed", "lease_id": null,
            "project_id": null, "payload": {"hypervisor_hostname": "r1-h01", "power": "failed"},
        });
        let wanted = "2030-01-02 10:00:01       8  host.boot_failed                r1-h01                              failed";
        assert_eq!(line(&of_host).as_deref(), Some(wanted));
        let of_reservation = json!({
            "number": 10, "timestamp": "2030-01-02T10:00:01.5Z", "event_type": "blazar.reservation.end",
            "lease_id": null, "project_id": "p1", "payload": {"lease_name": "web", "lease_status": "TERMINATED"},
        });
        let wanted = "2030-01-02 10:00:01      10  blazar.reservation.end          web                   p1            TERMINATED";
        assert_eq!(line(&of_reservation).as_deref(), Some(wanted));
        assert_eq!(line(&json!({})), None);
    }
}
