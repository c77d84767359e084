//! `allot lease` manages leases.

mod amount;
mod create;
mod end_action;
mod hints;
mod occupancy;
mod offers;
mod plan;
mod recurring;
mod reservations;
mod show;
mod suiting;
mod update;
mod wait;

use std::collections::BTreeMap;

use api::v1::SessionOf;
use api::v1::body::LeaseChange;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use cluster::nearest;
use leases::status::LeaseStatus;
use serde_json::Value;

use super::confirm::{Act, Consent, Found};
use super::dates::of_answer;
use super::identify::{Listed, is_prefix};
use super::table::{Table, short_length};
use super::wire::{Lease, is_uuid, read};
use super::{ClientError, Format, Session};

pub(super) use end_action::EndAction;
#[cfg(test)]
pub(super) use hints::table as hints_table;
#[cfg(test)]
pub(super) use occupancy::table as occupancy_table;
#[cfg(test)]
pub(super) use offers::{table as offers_table, waiting_table as waitlist_table};
#[cfg(test)]
pub(super) use plan::table as plan_table;
#[cfg(test)]
pub(super) use show::list as list_table;

/// Note about the result of a dry run.
const DRY_RUN: &str = "Dry run: no changes were made.";

/// Commands for leases.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List leases by start
    List(List),
    /// Show a lease with its reservations and events
    Show(One),
    /// Show instances being moved out of a lease's way, and the progress
    Plan(One),
    /// Show which instances were seen on a lease's hosts, and when
    Occupancy(One),
    /// Request hosts, instances or floating IPs for a time window
    Create(Box<create::Arguments>),
    /// Change a lease's name, times or reservations
    Update(Box<update::Arguments>),
    /// Extend a lease, like `update --extend-by`
    Extend(update::Extend),
    /// Move a lease to another start; its length stays the same
    Move(update::Move),
    /// Create a lease like another one, at another start
    Copy(create::LeaseCopy),
    /// End running leases now; they stay in lists and usage reports
    End(Several),
    /// Delete leases and the instances in them
    Delete(Several),
    /// List scheduler hints for leases, with their values
    Hints,
    /// Wait until a lease has a status
    Wait(wait::Arguments),
    /// List offers that are held after refused requests
    Offers,
    /// Accept an offer, which creates or changes the lease
    Accept(offers::OneOffer),
    /// Decline an offer and the ones made with it
    Decline(offers::OneOffer),
    /// Delete the leases of a series that haven't started
    DeleteSeries(offers::DeletedSeries),
    /// List requests on the waitlist
    Waitlist,
    /// Remove a request from the waitlist
    LeaveWaitlist(offers::Which),
}

#[derive(Args, Debug)]
pub(crate) struct List {
    /// Only leases in this status
    #[arg(long, value_name = "STATUS", value_parser = statuses(&[]), ignore_case = true)]
    status: Option<String>,
    /// Only leases with this name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Only leases of this series
    #[arg(long, value_name = "SERIES")]
    series: Option<String>,
    /// Only leases of this project (administrators see all projects)
    #[arg(long, value_name = "PROJECT")]
    of_project: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct One {
    /// Name or ID of the lease
    #[arg(value_name = "LEASE")]
    lease: String,
}

#[derive(Args, Debug)]
pub(crate) struct Several {
    /// Names or IDs of the leases
    #[arg(required = true, value_name = "LEASE")]
    leases: Vec<String>,
    #[command(flatten)]
    consent: Consent,
}

pub(crate) async fn run(command: Command, session: &mut Session<'_>) -> Result<(), ClientError> {
    match command {
        Command::List(arguments) => list(&arguments, session).await,
        Command::Show(arguments) => show(&arguments.lease, session).await,
        Command::Plan(arguments) => plan::run(&arguments.lease, session).await,
        Command::Occupancy(arguments) => occupancy::run(&arguments.lease, session).await,
        Command::Create(arguments) => create::run(&arguments, session).await,
        Command::Update(arguments) => update::run(&arguments, session).await,
        Command::Extend(arguments) => update::extend(arguments, session).await,
        Command::Copy(arguments) => create::copy(arguments, session).await,
        Command::Move(arguments) => update::move_lease(arguments, session).await,
        Command::End(arguments) => end(arguments, session).await,
        Command::Delete(arguments) => delete(arguments, session).await,
        Command::Hints => hints::run(session).await,
        Command::Wait(arguments) => wait::run(&arguments, session).await,
        Command::Offers => offers::list(session).await,
        Command::Accept(offer) => offers::accept(&offer, session).await,
        Command::Decline(offer) => offers::decline(&offer, session).await,
        Command::DeleteSeries(arguments) => offers::delete_series(arguments, session).await,
        Command::Waitlist => offers::waitlist(session).await,
        Command::LeaveWaitlist(which) => offers::leave(&which, session).await,
    }
}

async fn list(arguments: &List, session: &mut Session<'_>) -> Result<(), ClientError> {
    let mut query = Vec::new();
    if let Some(status) = &arguments.status {
        query.push(("status", status.to_uppercase()));
    }
    query.extend(arguments.series.clone().map(|series| ("series_id", series)));
    query.extend(arguments.name.clone().map(|name| ("name", name)));
    query.extend(arguments.of_project.clone().map(|project| ("project_id", project)));
    let answer = session.connection.get("/v1/leases", &query).await?;
    if session.wants_document() {
        return session.print_json(&answer);
    }
    let leases: Vec<Lease> = read(&answer, LEASES.key)?;
    if let (Some(name), true) = (&arguments.name, leases.is_empty()) {
        let similar = similar(name, session).await.map(|similar| format!(" Did you mean {similar:?}?"));
        session.note(&format!("No lease called {name:?} found.{}", similar.unwrap_or_default()));
        if session.style.format != Format::Csv {
            return Ok(());
        }
    }
    session.print_table(&listed(leases, !query.is_empty()))
}

fn listed(leases: Vec<Lease>, is_filtered: bool) -> Table {
    let table = show::list(leases);
    if is_filtered { table.or("No matching leases.") } else { table }
}

/// Maximum number of leases that are searched for a similar name.
const MOST_SEARCHED: usize = 500;

/// The most similar name of a lease, if there is one.
async fn similar(name: &str, session: &Session<'_>) -> Option<String> {
    let query = [("limit", MOST_SEARCHED.to_string())];
    let answer = session.connection.get(LEASES.path, &query).await.unwrap_or_default();
    let leases: Vec<Lease> = read(&answer, LEASES.key).unwrap_or_default();
    let others = leases.iter().map(|lease| lease.name.as_str()).filter(|other| *other != name);
    nearest(name, others).map(str::to_owned)
}

/// Leases by identifier, for their names. Leases of other projects can be missing.
pub(super) async fn by_id(session: &Session<'_>) -> BTreeMap<String, Lease> {
    let answer = session.connection.get(LEASES.path, &[]).await.unwrap_or_default();
    let leases: Vec<Lease> = read(&answer, LEASES.key).unwrap_or_default();
    leases.into_iter().map(|lease| (lease.id.clone(), lease)).collect()
}

async fn show(lease: &str, session: &mut Session<'_>) -> Result<(), ClientError> {
    let id = identify(lease, session).await?;
    let answer = get(&id, session).await?;
    print_lease(&answer, session)
}

async fn end(arguments: Several, session: &mut Session<'_>) -> Result<(), ClientError> {
    let Several { leases, consent } = arguments;
    let act = Act { verb: "End", one: "lease", several: "leases" };
    consent
        .carry_out(act, &leases, session, find_running, async |lease: &Found, session: &mut Session<'_>| {
            let change = LeaseChange { end_date: Some("now".to_owned()), ..LeaseChange::default() };
            session.connection.put(&format!("/v1/leases/{}", lease.id), &change).await?;
            session.done(&format!("Lease {} ends now.", lease.name))
        })
        .await
}

/// Finds a lease that has started, and describes it for the prompt.
async fn find_running(lease: &str, session: &mut Session<'_>) -> Result<(String, String), ClientError> {
    let id = identify(lease, session).await?;
    let present: Lease = read(&get(&id, session).await?, "lease")?;
    if present.status == LeaseStatus::Pending.name() {
        return Err(ClientError::Refused {
            status: 409,
            message: format!("lease {lease:?} has not started"),
            hint: Some("`allot lease delete` deletes a lease before its start".to_owned()),
        });
    }
    Ok((id, described(&present, &|date| session.brief(date))))
}

async fn delete(arguments: Several, session: &mut Session<'_>) -> Result<(), ClientError> {
    let Several { leases, consent } = arguments;
    let act = Act { verb: "Delete", one: "lease", several: "leases" };
    consent
        .carry_out(act, &leases, session, find_described, async |lease: &Found, session: &mut Session<'_>| {
            session.connection.delete(&format!("/v1/leases/{}", lease.id)).await?;
            if !session.is_for_people() {
                return Ok(());
            }
            // The service releases hosts in the background.
            let is_left = get(&lease.id, session).await.is_ok();
            session.print(&deleted(&lease.name, is_left))
        })
        .await
}

fn deleted(lease: &str, is_left: bool) -> String {
    format!("Lease {lease} is {}.", if is_left { "being deleted" } else { "deleted" })
}

/// Finds a lease and describes it for the prompt. Without a prompt, the description is what the user gave.
async fn find_described(lease: &str, session: &mut Session<'_>) -> Result<(String, String), ClientError> {
    let id = identify(lease, session).await?;
    if !session.may_ask {
        return Ok((id, lease.to_owned()));
    }
    let present: Lease = read(&get(&id, session).await?, "lease")?;
    Ok((id, described(&present, &|date| session.brief(date))))
}

/// Describes a lease for a prompt: name, identifier prefix and state. `brief` formats dates.
fn described(lease: &Lease, brief: &dyn Fn(&str) -> String) -> String {
    let length = short_length([lease.id.as_str()].into_iter());
    let id = lease.id.get(..length).unwrap_or(&lease.id);
    let state = match lease.status.as_str() {
        status if status == LeaseStatus::Terminated.name() => status.to_owned(),
        status if status == LeaseStatus::Pending.name() => {
            format!("{status}, starts {}", brief(&lease.start_date))
        }
        status => format!("{status} until {}", brief(&lease.end_date)),
    };
    format!("{} ({id}, {state})", lease.name)
}

async fn get(id: &str, session: &Session<'_>) -> Result<Value, ClientError> {
    session.connection.get(&format!("/v1/leases/{id}"), &[("detail", "true".to_owned())]).await
}

fn print_lease(answer: &Value, session: &mut Session<'_>) -> Result<(), ClientError> {
    if session.wants_document() {
        return session.print_json(answer);
    }
    let lease: Lease = read(answer, "lease")?;
    if !session.is_for_people() || session.style.columns.is_some() {
        return session.print_table(&show::list(vec![lease]));
    }
    session.print(&show::one(&lease, &session.zone))?;
    session.note_zone();
    Ok(())
}

/// Prints a lease that was created or changed, with its cost.
async fn print_made(mut answer: Value, session: &mut Session<'_>) -> Result<(), ClientError> {
    // Only a read has the cost.
    let id = answer["lease"]["id"].as_str().filter(|id| is_uuid(id) && session.is_for_people());
    let detailed = match id {
        Some(id) => get(id, session).await.unwrap_or_default(),
        None => Value::Null,
    };
    let cost = &detailed["lease"]["cost"];
    if let (Some(lease), false) = (answer.get_mut("lease").and_then(Value::as_object_mut), cost.is_null()) {
        lease.insert("cost".to_owned(), cost.clone());
    }
    print_lease(&answer, session)
}

/// Prints the lease that a dry run would have created or changed.
fn print_preview(answer: &Value, session: &mut Session<'_>) -> Result<(), ClientError> {
    print_lease(answer, session)?;
    session.note_to_people(DRY_RUN);
    Ok(())
}

/// Notes times that clocks skip or show twice. Each time is given as written and as sent.
fn note_oddities<const N: usize>(
    times: [(Option<&String>, Option<&String>); N],
    now: jiff::Timestamp,
    session: &mut Session<'_>,
) {
    for (written, sent) in times {
        let Some((written, taken)) = written.zip(sent.and_then(|sent| of_answer(sent))) else { continue };
        if let Some(oddity) = super::dates::oddity(written, taken, now, &session.zone) {
            session.note(&format!("Note: {oddity}"));
        }
    }
}

/// Accepts the statuses of leases and `others`.
fn statuses(others: &[&'static str]) -> PossibleValuesParser {
    let known = LeaseStatus::ALL.into_iter().map(LeaseStatus::name);
    PossibleValuesParser::new(known.chain(others.iter().copied()))
}

/// Notes that a new lease has the same name as another lease of the project that isn't over.
async fn note_same_name(made: &Value, session: &mut Session<'_>) -> Result<(), ClientError> {
    if !session.is_for_people() {
        return Ok(());
    }
    let made: Lease = read(made, "lease")?;
    // The lease exists even if this request fails.
    let Ok(answer) = session.connection.get(LEASES.path, &[("name", made.name.clone())]).await else {
        return Ok(());
    };
    let others: Vec<Lease> = read(&answer, LEASES.key)?;
    let is_over = |status: &str| status == LeaseStatus::Terminated.name();
    let is_same = |other: &Lease| other.name == made.name && other.project_id == made.project_id;
    if others.iter().any(|other| is_same(other) && other.id != made.id && !is_over(&other.status)) {
        session.note(&format!(
            "Note: another lease is called {}. Use IDs, or rename this one: allot lease update {} --name NAME",
            made.name, made.id
        ));
    }
    Ok(())
}

pub(super) const LEASES: Listed = Listed {
    noun: "lease",
    path: "/v1/leases",
    key: "leases",
    id: "/id",
    name: "/name",
    details: &["/status", "/start_date"],
    hint: "`allot lease list` shows all",
};

/// Finds the identifier of a lease by name, identifier or prefix.
pub(crate) async fn identify(lease: &str, session: &Session<'_>) -> Result<String, ClientError> {
    if is_uuid(lease) {
        return Ok(lease.to_owned());
    }
    match find(lease, session).await {
        Err(ClientError::Refused { status, message, hint }) if message == LEASES.unknown(lease) => {
            let message = format!("{message}{}", in_project(session).await);
            let hint = hint.unwrap_or_default();
            let similar = similar(lease, session).await.filter(|_| !hint.starts_with("did you mean"));
            let similar = similar.map(|similar| format!("did you mean {similar:?}? ")).unwrap_or_default();
            let hint = format!("{similar}{hint}");
            Err(ClientError::Refused { status, message, hint: Some(hint) })
        }
        found => found,
    }
}

/// Names the project in an error, for users who can't see the leases of other projects. Empty for
/// administrators.
async fn in_project(session: &Session<'_>) -> String {
    let answer = session.connection.get("/v1/session", &[]).await.unwrap_or_default();
    let Ok(own) = read::<SessionOf>(&answer, "session") else { return String::new() };
    if own.authentication == "none" || own.roles.iter().any(|role| role == "admin") {
        return String::new();
    }
    format!(" in project {}", own.project_name.unwrap_or(own.project_id))
}

async fn find(lease: &str, session: &Session<'_>) -> Result<String, ClientError> {
    // Query by name, since the list of all leases can be long.
    let answer = session.connection.get(LEASES.path, &[("name", lease.to_owned())]).await?;
    let found: Vec<Value> = read(&answer, LEASES.key)?;
    let of_name = found.into_iter().filter(|found| found["name"] == lease);
    let is_over = |found: &Value| found["status"] == LeaseStatus::Terminated.name();
    let (over, going): (Vec<Value>, Vec<Value>) = of_name.partition(is_over);
    // A name refers to the lease that isn't over, if there is one.
    let named = if going.is_empty() { over } else { going };
    if named.is_empty() && is_prefix(lease) {
        return LEASES.find(lease, session).await;
    }
    LEASES.one_of(&named, lease, &|date| session.brief(date))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::client::table::Style;

    #[test]
    fn an_empty_list_says_whether_leases_were_filtered() {
        for (is_filtered, note) in [(false, "There are no leases."), (true, "No matching leases.")] {
            let (zone, now) = (jiff::tz::TimeZone::UTC, jiff::Timestamp::UNIX_EPOCH);
            let rendered = listed(Vec::new(), is_filtered).render(&Style::default(), &zone, now);
            assert_eq!(rendered.expect("a table").notes, [note]);
        }
    }

    #[test]
    fn a_question_says_which_lease_and_how_long_it_lasts() {
        let lease = |status: &str| {
            let lease = json!({"id": "4c3e1396-d38d-4032-a9e3-3a8dbcc06753", "name": "train", "status": status,
                "start_date": "START", "end_date": "END"});
            let lease: Lease = serde_json::from_value(lease).expect("a lease");
            described(&lease, &|date| date.replace("START", "Tue 08:18").replace("END", "Wed 08:18"))
        };
        assert_eq!(lease("ACTIVE"), "train (4c3e1396, ACTIVE until Wed 08:18)");
        assert_eq!(lease("PENDING"), "train (4c3e1396, PENDING, starts Tue 08:18)");
        assert_eq!(lease("TERMINATED"), "train (4c3e1396, TERMINATED)");
    }

    #[test]
    fn a_lease_that_is_still_there_is_being_deleted() {
        assert_eq!(deleted("web", true), "Lease web is being deleted.");
        assert_eq!(deleted("web", false), "Lease web is deleted.");
    }
}
