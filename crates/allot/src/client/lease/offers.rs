//! Offers, which are alternatives to refused requests, and requests on the waitlist.

use std::fmt::Display;
use std::io;

use clap::Args;
use htools::io::Io;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Value, json};

use super::show::brief_summary;
use crate::client::ask::{ask, is_interactive};
use crate::client::confirm::{Act, Consent, Found};
use crate::client::dates::{shown, zone_name};
use crate::client::identify::{Listed, is_prefix};
use crate::client::table::{Table, date, id, prose, word};
use crate::client::wire::{Lease, read};
use crate::client::{ClientError, Format, Session};

/// An alternative to a refused request.
#[derive(Clone, Debug, Deserialize)]
struct Offer {
    id: Option<String>,
    /// Number that the user can give instead of the identifier.
    #[serde(default)]
    number: Option<u64>,
    kind: String,
    expires_at: Option<String>,
    lease: Lease,
}

impl Offer {
    /// Describes the difference from the request. A longer timeout is shown here, since no other column has
    /// it.
    fn what(&self, zone: &TimeZone) -> String {
        let kind = self.kind.replace('_', " ");
        match &self.lease.timeout_date {
            Some(timeout) if self.kind == "longer_timeout" => format!("{kind}: {}", shown(timeout, zone)),
            _ => kind,
        }
    }
}

/// A request on the waitlist.
#[derive(Clone, Debug, Deserialize)]
struct Waiting {
    id: String,
    place: u64,
    expires_at: String,
    latest_end_date: Option<String>,
    lease: Lease,
}

/// An offer.
#[derive(Args, Debug)]
pub(crate) struct OneOffer {
    /// Number of the offer, its ID, or the beginning of the ID. `allot lease offers` lists offers
    #[arg(value_name = "NUMBER|ID")]
    offer: String,
}

/// A request or a series.
#[derive(Args, Debug)]
pub(crate) struct Which {
    /// ID, or the beginning of the ID: at least four characters
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
    details: &[],
    hint: "it may have expired; `allot lease offers` lists yours",
};

const WAITLIST: Listed = Listed {
    noun: "waiting request",
    path: "/v1/waitlist",
    key: "waitlist",
    id: "/id",
    name: "/lease/name",
    details: &[],
    hint: "`allot lease waitlist` shows all",
};

const SERIES: Listed = Listed { noun: "series", id: "/series_id", details: &[], ..super::LEASES };

/// Prints the offers of a refusal and returns the refusal. Programs that read names or rows of leases get no
/// offers, which they would take for leases.
pub(super) fn refused(error: ClientError, session: &mut Session<'_>) -> ClientError {
    let ClientError::Offered { offers, .. } = &error else { return error };
    if !session.wants_document() && !session.is_for_people() {
        return error;
    }
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

/// Query parameters that hold the offers of a refusal. The hold is longer on a terminal, since a person takes
/// longer to decide than a program.
pub(super) fn hold() -> &'static str {
    if is_interactive() { "hold_offers=true&hold_for=10m" } else { "hold_offers=true" }
}

/// Prints the offers of a refusal, asks which one to accept, and returns the lease that was created or
/// changed. Returns the refusal if it can't prompt.
pub(super) async fn negotiate(error: ClientError, session: &mut Session<'_>) -> Result<Value, ClientError> {
    let ClientError::Offered { offers, .. } = &error else { return Err(error) };
    let document = json!({"offers": offers});
    let numbered = numbered(&document)?;
    if numbered.is_empty() || !session.may_ask || !session.is_for_people() {
        return Err(refused(error, session));
    }
    let zone = session.zone.clone();
    session.print_table(&table(&document, &zone)?)?;
    session.report(error);
    let Some(id) = choose(&numbered, &mut session.io())? else {
        session.note_to_people(&how_to_accept(numbered.first().map(|(number, _)| *number)));
        return Err(ClientError::Declined);
    };
    let number = numbered.iter().find(|(_, own)| *own == id).map_or(0, |(number, _)| *number);
    accept_offer(&id, number, session).await
}

/// Accepts an offer. `named` is the user's name for it in errors.
async fn accept_offer(id: &str, named: impl Display, session: &Session<'_>) -> Result<Value, ClientError> {
    let answer = session.connection.post(&format!("/v1/offers/{id}/accept"), &json!({})).await;
    answer.map_err(|error| match error {
        ClientError::Refused { status: 404, .. } => no_offer(named),
        error => error,
    })
}

fn no_offer(named: impl Display) -> ClientError {
    let message = format!("there is no offer {named}");
    ClientError::Refused { status: 404, message, hint: Some(OFFERS.hint.to_owned()) }
}

/// Numbers and identifiers of the offers that have a number.
fn numbered(document: &Value) -> Result<Vec<(u64, String)>, ClientError> {
    let offers: Vec<Offer> = read(document, OFFERS.key)?;
    Ok(offers.into_iter().filter_map(|offer| offer.number.zip(offer.id)).collect())
}

/// Asks which offer to accept until the answer is valid. An empty answer or the end of input declines all.
/// `y` accepts the only offer.
fn choose(offers: &[(u64, String)], io: &mut Io<'_>) -> io::Result<Option<String>> {
    let numbers: Vec<String> = offers.iter().map(|(number, _)| number.to_string()).collect();
    let question = format!("Accept? [{}/n]", numbers.join("/"));
    loop {
        let answer = ask(&question, io)?.to_lowercase();
        if matches!(answer.as_str(), "" | "n" | "no") {
            return Ok(None);
        }
        let is_meant = |number: &u64| {
            number.to_string() == answer || (offers.len() == 1 && matches!(answer.as_str(), "y" | "yes"))
        };
        if let Some((_, id)) = offers.iter().find(|(number, _)| is_meant(number)) {
            return Ok(Some(id.clone()));
        }
        writeln!(io.err, "Answer {} or n.", numbers.join(", "))?;
    }
}

/// Finds the identifier of an offer by number, identifier or prefix.
async fn find(given: &str, session: &Session<'_>) -> Result<String, ClientError> {
    let Some(number) = number(given) else { return OFFERS.find(given, session).await };
    let answer = session.connection.get(OFFERS.path, &[]).await?;
    let found = numbered(&answer)?.into_iter().find(|(own, _)| *own == number);
    Ok(found.ok_or_else(|| no_offer(number))?.1)
}

/// Parses the number of an offer. Numbers are shorter than identifier prefixes.
fn number(text: &str) -> Option<u64> {
    if is_prefix(text) { None } else { text.parse().ok() }
}

pub(super) async fn accept(offer: &OneOffer, session: &mut Session<'_>) -> Result<(), ClientError> {
    let id = find(&offer.offer, session).await?;
    let answer = accept_offer(&id, &offer.offer, session).await?;
    super::print_made(answer, session).await
}

pub(super) async fn decline(offer: &OneOffer, session: &mut Session<'_>) -> Result<(), ClientError> {
    let id = find(&offer.offer, session).await?;
    session.connection.delete(&format!("/v1/offers/{id}")).await?;
    session.done("The offer and the ones made with it are withdrawn.")
}

pub(super) async fn waitlist(session: &mut Session<'_>) -> Result<(), ClientError> {
    let answer = session.connection.get("/v1/waitlist", &[]).await?;
    session.print_answer(&answer, || waiting_table(&answer))
}

pub(super) fn print_waiting(answer: &Value, session: &mut Session<'_>) -> Result<(), ClientError> {
    if session.wants_document() {
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

/// A series of recurring leases.
#[derive(Clone, Debug, Deserialize)]
struct Series {
    id: String,
    leases: Vec<Lease>,
    #[serde(default)]
    skipped: Vec<Skipped>,
}

/// A date of a series that was left out.
#[derive(Clone, Debug, Deserialize)]
struct Skipped {
    start_date: String,
    reason: String,
}

/// Prints a new series, and the command to delete it.
pub(super) fn print_series(answer: &Value, session: &mut Session<'_>) -> Result<(), ClientError> {
    let how = |id: &str| format!("`allot lease delete-series {id}` deletes the leases that haven't started.");
    print_leases_of_series(answer, how, session)
}

/// Prints the preview of a series. It has nothing to delete: its identifiers don't exist.
pub(super) fn print_series_preview(answer: &Value, session: &mut Session<'_>) -> Result<(), ClientError> {
    print_leases_of_series(answer, |_| super::DRY_RUN.to_owned(), session)
}

fn print_leases_of_series(
    answer: &Value,
    last_line: impl FnOnce(&str) -> String,
    session: &mut Session<'_>,
) -> Result<(), ClientError> {
    if session.wants_document() {
        return session.print_json(answer);
    }
    let Series { id, leases, skipped } = read(answer, "series")?;
    session.print_table(&super::show::list(leases))?;
    for Skipped { start_date, reason } in skipped {
        session.note_to_people(&format!("Skipped {}: {reason}", shown(&start_date, &session.zone)));
    }
    session.note_to_people(&last_line(&id));
    Ok(())
}

pub(super) async fn delete_series(
    arguments: DeletedSeries,
    session: &mut Session<'_>,
) -> Result<(), ClientError> {
    let DeletedSeries { which, consent } = arguments;
    let act = Act { verb: "Delete the leases that haven't started of", one: "series", several: "series" };
    consent
        .carry_out(
            act,
            &[which.id],
            session,
            async |series, session: &mut Session<'_>| SERIES.find_described(series, session).await,
            async |series: &Found, session: &mut Session<'_>| {
                session.connection.delete(&format!("/v1/series/{}", series.id)).await?;
                session.done("Leases that hadn't started are deleted.")
            },
        )
        .await
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
        session.note_to_people(&how_to_accept(numbered(document)?.first().map(|(number, _)| *number)));
    }
    Ok(())
}

/// Tells the user how to accept the first of several offers.
fn how_to_accept(number: Option<u64>) -> String {
    let first = number.map_or_else(|| "ID".to_owned(), |number| number.to_string());
    format!("Accept one with `allot lease accept {first}`.")
}

pub(crate) fn table(document: &Value, zone: &TimeZone) -> Result<Table, ClientError> {
    let mut table = Table::new([
        word("#"),
        word("NAME"),
        prose("OFFER"),
        date("START"),
        date("END"),
        prose("RESERVED").hide(2),
        date("HOLDS UNTIL").hide(1),
        id("ID").hide(3).key(),
    ])
    .or("No open offers.");
    for offer in read::<Vec<Offer>>(document, "offers")? {
        let reserved = offer.lease.reservations.iter().map(brief_summary);
        table.add_row([
            offer.number.map(|number| number.to_string()).unwrap_or_default(),
            offer.lease.name.clone(),
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
        let reserved = entry.lease.reservations.iter().map(brief_summary);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Identifier chosen from `many` offers by the typed lines, and the text shown.
    fn chosen_of(many: u64, mut typed: &[u8]) -> (Option<String>, String) {
        let offers: Vec<_> = (1..=many).map(|number| (number, format!("offer-{number}"))).collect();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut io = Io { stdin: &mut typed, out: &mut out, err: &mut err };
        let chosen = choose(&offers, &mut io).expect("an answer");
        (chosen, String::from_utf8(err).expect("text"))
    }

    /// Identifier chosen from three offers, and the number of prompts.
    fn chosen(typed: &[u8]) -> (Option<String>, usize) {
        let (chosen, shown) = chosen_of(3, typed);
        (chosen, shown.matches("Accept? [1/2/3/n] ").count())
    }

    #[test]
    fn yes_means_the_only_offer_and_an_unknown_answer_is_explained() {
        let only = Some("offer-1".to_owned());
        assert_eq!(chosen_of(1, b"y\n"), (only.clone(), "Accept? [1/n] ".to_owned()));
        assert_eq!(
            chosen_of(1, b"2\nYes\n"),
            (only, "Accept? [1/n] Answer 1 or n.\nAccept? [1/n] ".to_owned())
        );
        let (none, shown) = chosen_of(3, b"y\n");
        assert!(none.is_none() && shown.contains("] Answer 1, 2, 3 or n.\n"), "{shown}");
    }

    #[test]
    fn an_offer_is_chosen_by_its_number_and_nothing_by_default() {
        let offer = |number: u64| Some(format!("offer-{number}"));
        assert_eq!(chosen(b"2\n"), (offer(2), 1));
        assert_eq!(chosen(b" 3 \n"), (offer(3), 1));
        for none in [&b"n\n"[..], b"No\n", b"\n", b""] {
            assert_eq!(chosen(none), (None, 1));
        }
        assert_eq!(chosen(b"4\n0\nyes\n1\n"), (offer(1), 4), "it is asked again");
        assert_eq!(chosen(b"4\n"), (None, 2));
    }

    #[test]
    fn numbers_are_shorter_than_beginnings_of_identifiers() {
        assert_eq!((number("2"), number("123"), number("1234")), (Some(2), Some(123), None));
        assert_eq!((number("0c7b"), number("-1"), number("2a"), number("")), (None, None, None, None));
    }

    #[test]
    fn only_held_offers_to_the_user_have_numbers() {
        let lease = json!({"id": "1", "name": "web", "start_date": "2030-01-02T10:00:00.000000",
            "end_date": "2030-01-02T11:00:00.000000", "reservations": []});
        let offer = |id: Option<&str>, number: Option<u64>| json!({"id": id, "number": number, "kind": "later_start", "expires_at": null, "lease": lease});
        let offers =
            json!({"offers": [offer(Some("a"), Some(1)), offer(Some("b"), None), offer(None, None)]});
        assert_eq!(numbered(&offers).expect("offers"), [(1, "a".to_owned())]);
        let text = table(&offers, &TimeZone::UTC).expect("a table").in_pipe();
        let first: Vec<_> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(first, ["#", "1", "web", "web"], "{text}");
        assert_eq!(how_to_accept(Some(1)), "Accept one with `allot lease accept 1`.");
        assert_eq!(how_to_accept(None), "Accept one with `allot lease accept ID`.");
    }
}
