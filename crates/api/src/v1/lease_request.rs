//! Leases in requests (spec §1.8, §1.10).

use std::collections::BTreeMap;

use jiff::Timestamp;
use leases::admission::Changes;
use leases::ids::ReservationId;
use leases::lease::{EndAction, Lease};
use leases::terms::{Terms, TermsError};
use leases::window::Window;
use serde_json::Value;
use store::Wording;

use super::date::read_date;
use super::error::RequestError;
use super::fields::{Fields, list, text};
use super::id::parse_uuid;
use super::reservation_request::{FindFlavor, read_change, read_reservation};

/// Longest name of a lease, in characters, as in Blazar's database.
const MAX_NAME: usize = 80;

/// A lease that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRequest {
    /// Its name.
    pub name: String,
    /// What is asked for.
    pub terms: Terms,
    /// The words, one per reservation.
    pub wording: Vec<Wording>,
    /// What becomes of guests at the end.
    pub end_action: EndAction,
}

impl LeaseRequest {
    /// Reads the body of `POST /leases`.
    ///
    /// Clients always send `events`: an event there is shown by Blazar and never happens, or breaks the lease
    /// (W13). Here they are passed over; the events of a lease follow from its dates.
    pub fn read(body: &Value, now: Timestamp, flavors: FindFlavor<'_>) -> Result<Self, RequestError> {
        let mut fields = Fields::body(body)?;
        fields.require(&["name", "start_date", "end_date"])?;
        let name = name(fields.required("name")?)?;
        let start = read_date(fields.required("start_date")?, now)?;
        let end = read_date(fields.required("end_date")?, now)?;
        let before_end = fields.given("before_end_date").map(|value| read_date(value, now)).transpose()?;
        let end_action = fields.given("end_action").map_or(Ok(EndAction::default()), end_action)?;
        list("events", fields.get("events"))?;
        let (mut reservations, mut wording) = (Vec::new(), Vec::new());
        for (position, value) in list("reservations", fields.get("reservations"))?.iter().enumerate() {
            let (terms, words) = read_reservation(position, value, flavors)?;
            reservations.push(terms);
            wording.push(words);
        }
        fields.finish()?;
        let window = Window::new(start, end).map_err(|_| TermsError::EndNotAfterStart)?;
        Ok(Self { name, terms: Terms::new(window, before_end, reservations)?, wording, end_action })
    }
}

/// A change of a lease that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LeaseUpdate {
    /// What is to be different.
    pub changes: Changes,
    /// New words of reservations.
    pub wording: BTreeMap<ReservationId, Wording>,
}

impl LeaseUpdate {
    /// Reads the body of `PUT /leases/{id}`. What may be there is listed here, nothing else passes (W8).
    pub fn read(body: &Value, now: Timestamp, lease: &Lease) -> Result<Self, RequestError> {
        let mut fields = Fields::body(body)?;
        let date = |value: Option<&Value>| value.map(|value| read_date(value, now)).transpose();
        let mut update = Self::default();
        update.changes.name = fields.get("name").map(name).transpose()?;
        update.changes.start = date(fields.given("start_date"))?;
        update.changes.end = date(fields.given("end_date"))?;
        update.changes.before_end = date(fields.given("before_end_date"))?;
        let reservations = list("reservations", fields.get("reservations"))?;
        fields.finish()?;
        update.read_reservations(reservations, lease)?;
        Ok(update)
    }

    fn read_reservations(&mut self, entries: &[Value], lease: &Lease) -> Result<(), RequestError> {
        let mut unknown = Vec::new();
        for (position, value) in entries.iter().enumerate() {
            let mut fields = Fields::entry("reservations", position, value)?;
            let id = fields.given("id").ok_or(RequestError::Missing("reservation ID".to_owned()))?;
            let id = text("id", id)?;
            let reservation = parse_uuid(&id).and_then(|uuid| lease.reservation(ReservationId(uuid)));
            let Some(reservation) = reservation else {
                unknown.push(id);
                continue;
            };
            let (change, words) = read_change(fields, reservation)?;
            self.changes.reservations.push((reservation.id, change));
            self.wording.insert(reservation.id, words);
        }
        if unknown.is_empty() { Ok(()) } else { Err(RequestError::ReservationIds(unknown)) }
    }
}

fn name(value: &Value) -> Result<String, RequestError> {
    let name = text("name", value)?;
    if name.chars().count() > MAX_NAME {
        return Err(RequestError::malformed("name", "at most 80 characters long"));
    }
    Ok(name)
}

fn end_action(value: &Value) -> Result<EndAction, RequestError> {
    match value.as_str() {
        Some("delete") => Ok(EndAction::DeleteGuests),
        Some("keep") => Ok(EndAction::KeepGuests),
        _ => Err(RequestError::malformed("end_action", "delete or keep")),
    }
}
