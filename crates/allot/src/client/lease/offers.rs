//! Offers: what could be had instead of what was refused; and requests that wait for their turn.

use clap::Args;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Value, json};

use super::show::summary;
use crate::client::dates::{shown, zone_name};
use crate::client::identify::Listed;
use crate::client::table::{Table, date, id, prose, word};
use crate::client::wire::{Lease, read};
use crate::client::{ClientError, Consent, Format, Session};

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
    /// Its identifier, or the beginning of it: four characters at least
    #[arg(value_name = "ID")]
    id: String,
}

#[derive(Args, Debug)]
pub(crate) struct DeletedSeries {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    consent: Consent,
}

const OFFERS: Listed = Listed {
    noun: "offer",
    path: "/v1/offers",
    key: "offers",
    id: "/id",
    name: "",
    hint: "it may have expired; `allot lease offers` lists those that are open",
};

const WAITLIST: Listed = Listed {
    noun: "waiting request",
    path: "/v1/waitlist",
    key: "waitlist",
    id: "/id",
    name: "/lease/name",
    hint: "`allot lease waitlist` shows all",
};

const SERIES: Listed = Listed { noun: "series", id: "/series_id", ..super::LEASES };

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
    let path = format!("/v1/offers/{}/accept", OFFERS.find(&which.id, session).await?);
    let answer = session.connection.post(&path, &json!({})).await?;
    super::print_lease(&answer, session)
}

pub(super) async fn decline(which: &Which, session: &mut Session<'_>) -> Result<(), ClientError> {
    let id = OFFERS.find(&which.id, session).await?;
    session.connection.delete(&format!("/v1/offers/{id}")).await?;
    session.done("The offer, and those made with it, are withdrawn.")
}

pub(super) async fn waitlist(session: &mut Session<'_>) -> Result<(), ClientError> {
    let answer = session.connection.get("/v1/waitlist", &[]).await?;
    session.print_answer(&answer, || waiting_table(&answer))
}

/// Prints a request that waits.
pub(super) fn print_waiting(answer: &Value, session: &mut Session<'_>) -> Result<(), ClientError> {
    if session.json {
        return session.print_json(answer);
    }
    let waiting: Waiting = read(answer, "waitlist_entry")?;
    let until = shown(&waiting.expires_at, &session.zone);
    if session.style.format == Format::Name {
        return session.print(&waiting.id);
    }
    session.print(&format!(
        "Added {} to the waitlist at position {}; it expires at {until} {} ({}).",
        waiting.lease.name,
        waiting.place,
        zone_name(&session.zone),
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
    print_leases_of_series(answer, |_| super::DRY_RUN.to_owned(), session)
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
    session.print_table(&super::show::list(leases))?;
    for Skipped { start_date, reason } in skipped {
        session.note_to_people(&format!("Left out: {}: {reason}", shown(&start_date, &session.zone)));
    }
    session.note_to_people(&last_line(&id));
    Ok(())
}

pub(super) async fn delete_series(
    arguments: DeletedSeries,
    session: &mut Session<'_>,
) -> Result<(), ClientError> {
    let DeletedSeries { which, consent } = arguments;
    let id = SERIES.find(&which.id, session).await?;
    consent.require("Delete the leases that have not started of series", &[which.id], session)?;
    session.connection.delete(&format!("/v1/series/{id}")).await?;
    session.done("Those leases that have not started are deleted.")
}

pub(super) async fn leave(which: &Which, session: &mut Session<'_>) -> Result<(), ClientError> {
    let id = WAITLIST.find(&which.id, session).await?;
    session.connection.delete(&format!("/v1/waitlist/{id}")).await?;
    session.done("The request is removed from the waitlist.")
}

fn print(document: &Value, session: &mut Session<'_>) -> Result<(), ClientError> {
    let zone = session.zone.clone();
    session.print_answer(document, || table(document, &zone))?;
    let held = document["offers"].as_array().is_some_and(|offers| offers.iter().any(|o| o["id"].is_string()));
    if held {
        session.note_to_people("Accept one with `allot lease accept ID`.");
    }
    Ok(())
}

pub(crate) fn table(document: &Value, zone: &TimeZone) -> Result<Table, ClientError> {
    let mut table = Table::new([
        prose("OFFER"),
        date("START"),
        date("END"),
        prose("RESERVED").hide(2),
        date("HOLDS UNTIL").hide(1),
        id("ID").key(),
    ])
    .or("No open offers.");
    for offer in read::<Vec<Offer>>(document, "offers")? {
        let reserved = offer.lease.reservations.iter().map(summary);
        table.add_row([
            offer.what(zone),
            offer.lease.start_date.clone(),
            offer.lease.end_date.clone(),
            reserved.collect::<Vec<_>>().join(", "),
            offer.expires_at.unwrap_or_default(),
            offer.id.unwrap_or_default(),
        ]);
    }
    Ok(table)
}

pub(crate) fn waiting_table(answer: &Value) -> Result<Table, ClientError> {
    let mut table = Table::new([
        word("PLACE"),
        word("NAME"),
        date("START"),
        date("END").hide(2),
        prose("RESERVED").hide(1),
        date("WAITS UNTIL"),
        id("ID").key(),
    ])
    .or("The waitlist is empty.");
    for entry in read::<Vec<Waiting>>(answer, "waitlist")? {
        let reserved = entry.lease.reservations.iter().map(summary);
        table.add_row([
            entry.place.to_string(),
            entry.lease.name.clone(),
            entry.lease.start_date.clone(),
            entry.latest_end_date.unwrap_or(entry.lease.end_date),
            reserved.collect::<Vec<_>>().join(", "),
            entry.expires_at,
            entry.id,
        ]);
    }
    Ok(table)
}
