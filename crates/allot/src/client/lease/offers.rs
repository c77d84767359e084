//! Offers: what could be had instead of what was refused; and requests that wait for their turn.

use clap::Args;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Value, json};

use super::show::summary;
use crate::client::dates::{shown, zone_name};
use crate::client::table::{Style, text};
use crate::client::wire::{Lease, read};
use crate::client::{ClientError, Session, segment};

/// An offer.
#[derive(Clone, Debug, Deserialize)]
struct Offer {
    id: Option<String>,
    kind: String,
    expires_at: Option<String>,
    lease: Lease,
}

impl Offer {
    /// What is different. Of a longer timeout its end as well: nothing else in the row says it.
    fn what(&self, zone: &TimeZone) -> String {
        let kind = self.kind.replace('_', " ");
        match &self.lease.timeout_date {
            Some(timeout) if self.kind == "longer_timeout" => format!("{kind}: {}", shown(timeout, zone)),
            _ => kind,
        }
    }
}

/// A request that waits.
#[derive(Clone, Debug, Deserialize)]
struct Waiting {
    id: String,
    place: u64,
    expires_at: String,
    latest_end_date: Option<String>,
    lease: Lease,
}

/// Which offer or request.
#[derive(Args, Debug)]
pub(crate) struct Which {
    /// Its identifier
    #[arg(value_name = "ID")]
    id: String,
}

/// What could be had is shown, and why it was refused is passed on.
pub(super) fn refused(error: ClientError, session: &mut Session<'_>) -> ClientError {
    let ClientError::Offered { offers, .. } = &error else { return error };
    let document = json!({"offers": offers});
    match print(&document, session) {
        Ok(()) => error,
        Err(output) => output,
    }
}

pub(super) async fn list(session: &mut Session<'_>) -> Result<(), ClientError> {
    let answer = session.connection.get("/v1/offers", &[]).await?;
    print(&answer, session)
}

pub(super) async fn accept(which: &Which, session: &mut Session<'_>) -> Result<(), ClientError> {
    let path = format!("/v1/offers/{}/accept", segment(&which.id));
    let answer = session.connection.post(&path, &json!({})).await?;
    super::print_lease(&answer, session)
}

pub(super) async fn decline(which: &Which, session: &mut Session<'_>) -> Result<(), ClientError> {
    session.connection.delete(&format!("/v1/offers/{}", segment(&which.id))).await?;
    if session.json { Ok(()) } else { session.print("The offer, and those made with it, are withdrawn.") }
}

pub(super) async fn waitlist(session: &mut Session<'_>) -> Result<(), ClientError> {
    let answer = session.connection.get("/v1/waitlist", &[]).await?;
    if session.json {
        return session.print_json(&answer);
    }
    let waiting: Vec<Waiting> = read(&answer, "waitlist")?;
    let text = line(&waiting, &session.style, &session.zone)?;
    session.print(&text)
}

/// Prints a request that waits.
pub(super) fn print_waiting(answer: &Value, session: &mut Session<'_>) -> Result<(), ClientError> {
    if session.json {
        return session.print_json(answer);
    }
    let waiting: Waiting = read(answer, "waitlist_entry")?;
    let until = shown(&waiting.expires_at, &session.zone);
    session.print(&format!(
        "{} cannot be had now. It waits until {until} {}, at place {} ({}).",
        waiting.lease.name,
        zone_name(&session.zone),
        waiting.place,
        waiting.id
    ))
}

/// Leases that recur.
#[derive(Clone, Debug, Deserialize)]
struct Series {
    id: String,
    leases: Vec<Lease>,
    #[serde(default)]
    skipped: Vec<Skipped>,
}

/// A date that was left out.
#[derive(Clone, Debug, Deserialize)]
struct Skipped {
    start_date: String,
    reason: String,
}

/// Prints leases that recur and have been made.
pub(super) fn print_series(answer: &Value, session: &mut Session<'_>) -> Result<(), ClientError> {
    let how = |id: &str| format!("Delete those that have not started with `allot lease delete-series {id}`.");
    print_leases_of_series(answer, how, session)
}

/// Prints leases that would recur. There is nothing to delete: the identifiers are nobody's.
pub(super) fn print_series_preview(answer: &Value, session: &mut Session<'_>) -> Result<(), ClientError> {
    print_leases_of_series(answer, |_| "Nothing has been done.".to_owned(), session)
}

fn print_leases_of_series(
    answer: &Value,
    last_line: impl FnOnce(&str) -> String,
    session: &mut Session<'_>,
) -> Result<(), ClientError> {
    if session.json {
        return session.print_json(answer);
    }
    let Series { id, leases, skipped } = read(answer, "series")?;
    let text = super::show::list(leases, &session.style, &session.zone)?;
    session.print(&text)?;
    for Skipped { start_date, reason } in skipped {
        session.print(&format!("Left out: {}: {reason}", shown(&start_date, &session.zone)))?;
    }
    session.print(&last_line(&id))
}

pub(super) async fn delete_series(which: &Which, session: &mut Session<'_>) -> Result<(), ClientError> {
    session.connection.delete(&format!("/v1/series/{}", segment(&which.id))).await?;
    if session.json { Ok(()) } else { session.print("Those leases that have not started are deleted.") }
}

pub(super) async fn leave(which: &Which, session: &mut Session<'_>) -> Result<(), ClientError> {
    session.connection.delete(&format!("/v1/waitlist/{}", segment(&which.id))).await?;
    if session.json { Ok(()) } else { session.print("The request waits no more.") }
}

fn print(document: &Value, session: &mut Session<'_>) -> Result<(), ClientError> {
    if session.json {
        return session.print_json(document);
    }
    let offers: Vec<Offer> = read(document, "offers")?;
    let text = table(&offers, &session.style, &session.zone)?;
    session.print(&text)
}

fn table(offers: &[Offer], style: &Style, zone: &TimeZone) -> Result<String, ClientError> {
    if offers.is_empty() {
        return Ok("Nothing is offered.".to_owned());
    }
    let mut table = style.table(&["OFFER", "START", "END", "RESERVED", "HOLDS UNTIL", "ID"]);
    for offer in offers {
        let reserved = offer.lease.reservations.iter().map(summary);
        table.add_row([
            offer.what(zone),
            shown(&offer.lease.start_date, zone),
            shown(&offer.lease.end_date, zone),
            reserved.collect::<Vec<_>>().join(", "),
            offer.expires_at.as_deref().map(|date| shown(date, zone)).unwrap_or_default(),
            offer.id.clone().unwrap_or_default(),
        ]);
    }
    let held = offers.iter().any(|offer| offer.id.is_some());
    let how = if held { " Accept one with `allot lease accept ID`." } else { "" };
    Ok(format!("{}\nTimes are {}.{how}", text(&table)?, zone_name(zone)))
}

fn line(waiting: &[Waiting], style: &Style, zone: &TimeZone) -> Result<String, ClientError> {
    if waiting.is_empty() {
        return Ok("Nobody waits.".to_owned());
    }
    let mut table = style.table(&["PLACE", "NAME", "START", "END", "RESERVED", "WAITS UNTIL", "ID"]);
    for entry in waiting {
        let end = entry.latest_end_date.as_deref().unwrap_or(&entry.lease.end_date);
        let reserved = entry.lease.reservations.iter().map(summary);
        table.add_row([
            entry.place.to_string(),
            entry.lease.name.clone(),
            shown(&entry.lease.start_date, zone),
            shown(end, zone),
            reserved.collect::<Vec<_>>().join(", "),
            shown(&entry.expires_at, zone),
            entry.id.clone(),
        ]);
    }
    Ok(format!("{}\nTimes are {}.", text(&table)?, zone_name(zone)))
}
