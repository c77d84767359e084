//! Leases in requests (API-create, API-update).

use std::collections::BTreeMap;

use jiff::Timestamp;
use leases::admission::Changes;
use leases::ids::ReservationId;
use leases::lease::{EndAction, Lease};
use leases::lease_type::{Deadlines, LeaseType};
use leases::terms::{ReservationTerms, Terms};
use serde_json::Value;
use store::Wording;

use super::date::{Dates, read_date, read_date_beside};
use super::end_action::end_action;
use super::error::RequestError;
use super::fields::{Fields, UnknownFields, boolean, list, read_name, text};
use super::hints::read_hints;
use super::id::parse_uuid;
use super::lease;
use super::lease_dates::LeaseDates;
use super::limits::{LEASE_NAME, Limits};
use super::repeat::Repeat;
use super::reservation_request::{FindFlavor, read_change, read_reservation};
use super::sent_back::{READ_ONLY, changed_fields};

/// A lease in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRequest {
    /// Its name.
    pub name: String,
    /// The requested terms. The hosts of other leases that its hints name aren't known yet.
    pub terms: Terms,
    /// The wording of each reservation.
    pub wording: Vec<Wording>,
    /// Unknown fields of its reservations.
    pub ignored: Vec<UnknownFields>,
    /// End action, if the request has one.
    pub end_action: Option<EndAction>,
    /// Whether the request joins the waitlist if capacity is short.
    pub waits: bool,
    /// Recurrence of the lease. `None` for a single lease.
    pub repeat: Option<Repeat>,
}

impl LeaseRequest {
    /// Reads the body of `POST /leases`.
    ///
    /// Clients always send `events`. Blazar shows such an event and never executes it, or it breaks the lease
    /// (W13). Here events are ignored, except for one that names the type of the lease: the events of a lease
    /// follow from its dates. Other read-only fields of answers are also ignored, so a lease that was read
    /// can be sent as a new one.
    pub fn read(
        body: &Value,
        now: Timestamp,
        deadlines: &Deadlines,
        flavors: FindFlavor<'_>,
        limits: &Limits,
    ) -> Result<Self, RequestError> {
        let dates = Dates::new(now, limits);
        let mut fields = Fields::body(body)?;
        fields.ignore(READ_ONLY);
        let events = list("events", fields.get("events"))?;
        let LeaseDates { window, lease_type, within } =
            LeaseDates::read(&mut fields, events, dates, deadlines)?;
        let name = name(fields.required("name")?)?;
        let before_end = fields.filled("before_end_date");
        let before_end = before_end.map(|value| read_date("before_end_date", value, dates)).transpose()?;
        let end_action = fields.filled("end_action").map(end_action).transpose()?;
        let duration = body.get("duration");
        let repeat = fields.filled("repeat");
        let repeat = repeat.map(|value| Repeat::read(value, duration, dates, limits.series)).transpose()?;
        let waits = fields.filled("waitlist").map(|value| boolean("waitlist", value)).transpose()?;
        let backfill = backfill(&mut fields)?.unwrap_or(false);
        let hints = fields.filled("scheduler_hints").map(read_hints).transpose()?.unwrap_or_default();
        let mut reservations = Vec::<ReservationTerms>::new();
        let mut wording = Vec::<Wording>::new();
        let mut ignored = Vec::new();
        let entries = list("reservations", fields.get("reservations"))?;
        if entries.len() > limits.reservations {
            let (parameter, size, most) = ("reservations".to_owned(), entries.len(), limits.reservations);
            return Err(RequestError::TooMany { parameter, size, most, setting: "limits.reservations" });
        }
        for (position, value) in entries.iter().enumerate() {
            let (terms, words, unknown) = read_reservation(position, value, flavors)?;
            // Equal terms, and equal wordings, share their text in memory.
            reservations.push(reservations.iter().find(|known| **known == terms).cloned().unwrap_or(terms));
            wording.push(wording.iter().find(|known| **known == words).cloned().unwrap_or(words));
            ignored.extend(unknown);
        }
        fields.finish()?;
        check_whole_hosts(end_action, &reservations)?;
        check_backfill(backfill, &reservations)?;
        let terms = Terms::new(window, before_end, reservations)?;
        let terms = terms.of_type(lease_type).hinting(hints).backfilled(backfill);
        let terms = match within {
            Some(within) => terms.anywhere_in(within)?,
            None => terms,
        };
        let waits = waits.unwrap_or(false);
        if repeat.is_some() && (waits || lease_type != LeaseType::Schedule || within.is_some()) {
            let expected = "absent unless the lease is a SCHEDULE lease with dates, and does not wait";
            return Err(RequestError::malformed("repeat", expected));
        }
        Ok(Self { name, terms, wording, ignored, end_action, waits, repeat })
    }
}

/// A requested change of a lease.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LeaseUpdate {
    /// What is to be different.
    pub changes: Changes,
    /// New wordings of reservations.
    pub wording: BTreeMap<ReservationId, Wording>,
    /// Unknown fields of its reservations.
    pub ignored: Vec<UnknownFields>,
}

impl LeaseUpdate {
    /// Reads the body of `PUT /leases/{id}`. Fields with the value that the client reads in `shown` are
    /// ignored. Other fields can only be changed if they are read here (W8).
    pub fn read(
        body: &Value,
        now: Timestamp,
        lease: &Lease,
        shown: &lease::Lease,
        limits: &Limits,
    ) -> Result<Self, RequestError> {
        let body = changed_fields(body, shown);
        let mut fields = Fields::body(&body)?;
        let dates = Dates::new(now, limits);
        let mut date = |field: &'static str, present: Option<Timestamp>| {
            let read = |value| match present {
                Some(present) => read_date_beside(present, field, value, dates),
                None => read_date(field, value, dates),
            };
            fields.filled(field).map(read).transpose()
        };
        let mut update = Self::default();
        update.changes.start = date("start_date", Some(lease.window.start()))?;
        update.changes.end = date("end_date", Some(lease.window.end()))?;
        update.changes.before_end = date("before_end_date", lease.before_end)?;
        update.changes.name = fields.filled("name").map(name).transpose()?;
        update.changes.backfill = backfill(&mut fields)?;
        check_backfill(
            update.changes.backfill == Some(true),
            lease.reservations.iter().map(|own| &own.terms),
        )?;
        update.changes.end_action = fields.filled("end_action").map(end_action).transpose()?;
        check_whole_hosts(update.changes.end_action, lease.reservations.iter().map(|own| &own.terms))?;
        let reservations = list("reservations", fields.get("reservations"))?;
        if fields.get("scheduler_hints").is_some() {
            return Err(RequestError::HintsChanged);
        }
        fields.finish().map_err(|error| {
            let fixed = ["lease_type", "timeout_date", "events"];
            error.or_read_only(READ_ONLY).or_read_only(&fixed)
        })?;
        update.read_reservations(reservations, lease)?;
        Ok(update)
    }

    fn read_reservations(&mut self, entries: &[Value], lease: &Lease) -> Result<(), RequestError> {
        let mut unknown = Vec::new();
        for (position, value) in entries.iter().enumerate() {
            let mut fields = Fields::entry("reservations", position, value)?;
            let id = fields.filled("id").ok_or(RequestError::Missing("reservation ID".to_owned()))?;
            let id = text("id", id)?;
            let reservation = parse_uuid(&id).and_then(|uuid| lease.reservation(ReservationId(uuid)));
            let Some(reservation) = reservation else {
                unknown.push(id);
                continue;
            };
            let (change, words, ignored) = read_change(fields, reservation)?;
            if self.wording.insert(reservation.id, words).is_some() {
                return Err(RequestError::malformed(
                    format!("reservations[{position}].id"),
                    "of a reservation that is changed once",
                ));
            }
            self.changes.reservations.push((reservation.id, change));
            self.ignored.extend(ignored);
        }
        if unknown.is_empty() { Ok(()) } else { Err(RequestError::ReservationIds(unknown)) }
    }
}

fn name(value: &Value) -> Result<String, RequestError> {
    read_name("name", &text("name", value)?, LEASE_NAME)
}

/// Whether preemptible instances may run on hosts that the lease doesn't use. `None` if the request doesn't
/// say.
fn backfill(fields: &mut Fields<'_>) -> Result<Option<bool>, RequestError> {
    fields.filled("backfill").map(|value| boolean("backfill", value)).transpose()
}

/// Rejects `backfill` unless whole hosts are reserved.
fn check_backfill<'a>(
    backfill: bool,
    reservations: impl IntoIterator<Item = &'a ReservationTerms>,
) -> Result<(), RequestError> {
    let whole = |terms: &ReservationTerms| matches!(terms, ReservationTerms::Hosts(_));
    if backfill && !reservations.into_iter().any(whole) {
        return Err(RequestError::malformed("backfill", "absent unless whole hosts are reserved"));
    }
    Ok(())
}

/// Rejects end actions for whole hosts where hosts are shared.
fn check_whole_hosts<'a>(
    end_action: Option<EndAction>,
    reservations: impl IntoIterator<Item = &'a ReservationTerms>,
) -> Result<(), RequestError> {
    let shared = |terms: &ReservationTerms| {
        matches!(terms, ReservationTerms::Instances(_) | ReservationTerms::Flavor(_))
    };
    if end_action.is_some_and(EndAction::needs_whole_hosts) && reservations.into_iter().any(shared) {
        let expected = "delete or keep where instances are reserved: the others are for whole hosts";
        return Err(RequestError::malformed("end_action", expected));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use leases::terms::ReservationTerms;
    use proptest::prelude::*;
    use serde_json::{Map, json};

    use super::super::SchedulerHints;
    use super::super::body::{LeaseCreate, ReservationCreate};
    use super::*;

    fn read(body: &Value) -> Result<LeaseRequest, RequestError> {
        let now = "2030-01-01T10:00:30Z".parse().expect("an instant");
        LeaseRequest::read(body, now, &Deadlines::default(), &|_| None, &Limits::default())
    }

    #[test]
    fn what_our_own_clients_write_is_read() {
        let instances = ReservationCreate::Instances {
            vcpus: 1,
            memory_mb: 512,
            disk_gb: 0,
            ephemeral_gb: Some(4),
            amount: 2,
            affinity: Some(false),
            resource_properties: None,
            extra_specs: [("hw:cpu_policy".to_owned(), "dedicated".to_owned())].into(),
            survives: Some("host".to_owned()),
        };
        let hosts = ReservationCreate::Hosts {
            min: 1,
            max: 2,
            hypervisor_properties: None,
            resource_properties: Some("[\"==\", \"$rack\", \"r1\"]".to_owned()),
            before_end: None,
            region: None,
            availability_zone: Some("az1".to_owned()),
            vcpus: Some(16),
            memory_mib: None,
            disk_gib: None,
            homogeneous: true,
            alike: vec!["cpu_mhz".to_owned()],
            survives: Some("rack".to_owned()),
            extra_specs: [("capabilities:cpu_info:arch".to_owned(), "x86_64".to_owned())].into(),
            image_properties: BTreeMap::new(),
            pool_name: None,
        };
        let ips = ReservationCreate::FloatingIps {
            network_id: "n".to_owned(),
            amount: 1,
            required_floatingips: vec!["203.0.113.9".to_owned()],
        };
        let body = LeaseCreate {
            name: "l".to_owned(),
            start_date: Some("now".to_owned()),
            duration: Some("P1D".to_owned()),
            lease_type: Some("BEST-EFFORT".to_owned()),
            timeout: Some("PT2H".to_owned()),
            before_end_date: Some("2030-01-02 09:00".to_owned()),
            reservations: vec![instances, hosts, ips],
            events: Vec::new(),
            scheduler_hints: Some(SchedulerHints {
                group: Some("affinity".to_owned()),
                ..SchedulerHints::default()
            }),
            end_action: Some("keep".to_owned()),
            ..LeaseCreate::default()
        };
        let request = read(&serde_json::to_value(&body).expect("JSON")).expect("well formed");
        let types: Vec<_> = request.terms.reservations.iter().map(ReservationTerms::resource_type).collect();
        assert_eq!(types, ["virtual:instance", "physical:host", "virtual:floatingip"]);
        assert_eq!(request.end_action, Some(EndAction::KeepGuests));
        assert!(request.terms.hints.group.is_some());
        let imaging = LeaseCreate { end_action: Some("snapshot".to_owned()), ..body };
        let refused =
            read(&serde_json::to_value(&imaging).expect("JSON")).expect_err("instances are reserved");
        assert_eq!(refused.to_string(), "Malformed parameter end_action");
    }

    #[test]
    fn cls_09_images_are_for_leases_of_whole_hosts() {
        let read = |resource_type: &str| {
            let size = json!({"vcpus": 1, "memory_mb": 1, "disk_gb": 1, "amount": 1, "affinity": null});
            let hosts = json!({"min": 1, "max": 1, "hypervisor_properties": ""});
            let mut reservation = if resource_type == "physical:host" { hosts } else { size };
            reservation["resource_type"] = json!(resource_type);
            reservation["resource_properties"] = json!("");
            let body = json!({"name": "l", "start_date": "now", "end_date": "2030-01-02 10:00",
                "reservations": [reservation], "end_action": "snapshot"});
            read(&body).map(|request| request.end_action)
        };
        assert_eq!(read("physical:host"), Ok(Some(EndAction::SnapshotGuests)));
        assert_eq!(
            read("virtual:instance").expect_err("no image").to_string(),
            "Malformed parameter end_action"
        );
    }

    /// JSON of all forms, with names and words from requests.
    fn any_json() -> impl Strategy<Value = Value> {
        let words = prop::sample::select(vec![
            "physical:host",
            "virtual:instance",
            "virtual:floatingip",
            "now",
            "2030-01-02 10:00",
            "None",
            "",
            "[]",
            "[\"and\", []]",
            "==",
            "$a",
            "and",
            "-1",
            "4294967296",
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            words.prop_map(Value::from),
        ];
        let names = prop::sample::select(vec![
            "name",
            "start_date",
            "end_date",
            "duration",
            "lease_type",
            "timeout",
            "before_end_date",
            "reservations",
            "events",
            "resource_type",
            "min",
            "max",
            "hypervisor_properties",
            "resource_properties",
            "vcpus",
            "homogeneous",
            "alike",
            "survives",
            "extra_specs",
            "amount",
            "network_id",
            "x",
        ]);
        leaf.prop_recursive(4, 64, 8, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((names.clone(), inner), 0..8).prop_map(|fields| {
                    let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
                    Value::Object(fields.collect::<Map<_, _>>())
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn nothing_that_is_sent_is_worse_than_refused(body in any_json(), reservation in any_json()) {
            let _ = read(&body);
            let lease = json!({
                "name": "l", "start_date": "now", "end_date": "2030-01-02 10:00", "reservations": [reservation],
            });
            if let Err(error) = read(&lease) {
                prop_assert!(!error.to_string().is_empty() && (400..500).contains(&error.status()));
            }
        }
    }
}
