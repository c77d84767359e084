//! Converts the responses of Blazar's API to records of a store. No I/O happens here.

mod addresses;
mod instants;

use std::collections::{BTreeMap, BTreeSet};

use api::v1::{FlavorRequest, host_id, lease_id, read_reserved, reservation_id};
use fleet_openstack::BlazarReservation;
use jiff::Timestamp;
use leases::host::Host;
use leases::ids::{HostId, LeaseId, ReservationId};
use leases::lease::{Allocation, EndAction, EventKind, EventStatuses, Lease, NewLease, Reservation};
use leases::plan::Recipe;
use leases::project::{Owner, ProjectId, UserId};
use leases::status::{self, EventStatus, LeaseStatus, ReservationStatus};
use leases::terms::{ReservationTerms, Terms};
use leases::text::{Quoted, counted};
use leases::usage::{Account, Entries};
use leases::window::Window;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use store::archive::Archive;
use store::{HostRecord, LeaseRecord, PropertyRecord, Version, Wording};

use self::addresses::Addresses;
pub(super) use self::addresses::{Given, read as read_address};
use self::instants::{instant, instant_or};
use super::saved::Saved;

/// Host fields that aren't capabilities, in addition to those that every host has.
const NO_CAPABILITIES: [&str; 5] = ["status", "trust_id", "created_at", "updated_at", "disabled"];

/// Records to import, and entries that can't be imported.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// For import into an empty store.
    pub archive: Archive,
    /// Reservations of hosts and instances that exist in the cloud, from leases that aren't over.
    pub reservations: Vec<BlazarReservation>,
    pub left_out: Vec<LeftOut>,
    /// Starts and ends that Blazar hasn't carried out, sorted by due date.
    pub undone: Vec<Undone>,
}

/// An entry that can't be imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// Kind of entry, with its identifier and name if they're known.
    pub what: String,
    pub why: String,
}

/// A start or end of a lease that Blazar hasn't carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Undone {
    pub at: Timestamp,
    pub kind: EventKind,
    pub lease: LeaseId,
    pub name: String,
}

#[derive(Deserialize)]
struct BlazarLease {
    id: String,
    name: String,
    user_id: String,
    project_id: String,
    start_date: String,
    end_date: String,
    status: String,
    created_at: Option<String>,
    updated_at: Option<String>,
    events: Vec<BlazarEvent>,
    reservations: Vec<Map<String, Value>>,
}

#[derive(Deserialize)]
struct BlazarEvent {
    event_type: String,
    time: String,
    status: String,
}

#[derive(Deserialize)]
struct BlazarHost {
    id: Value,
    hypervisor_hostname: String,
    service_name: Option<String>,
    vcpus: u32,
    memory_mb: u32,
    local_gb: u32,
    cpu_info: Option<Value>,
    hypervisor_type: Option<String>,
    hypervisor_version: Option<u64>,
    availability_zone: Option<String>,
    reservable: Option<bool>,
    created_at: Option<String>,
    updated_at: Option<String>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Deserialize)]
struct BlazarAllocation {
    resource_id: Value,
    reservations: Vec<AllocatedReservation>,
}

#[derive(Deserialize)]
struct AllocatedReservation {
    id: String,
}

#[derive(Deserialize)]
struct BlazarProperty {
    property: String,
    #[serde(default)]
    private: bool,
}

/// Number of allocations of each host, by reservation.
type Allocated = BTreeMap<String, BTreeMap<HostId, u32>>;

impl Records {
    /// Converts everything. `given` has the holders of floating IPs, and is empty if the cloud wasn't asked.
    /// `uuid` generates identifiers for records that have none in Blazar's responses.
    pub(super) fn of(saved: &Saved, given: &Given, mut uuid: impl FnMut() -> u128) -> Self {
        let mut records = Self::default();
        for value in &saved.hosts {
            match read_host(value, saved.read_at) {
                Ok(host) => records.archive.snapshot.hosts.push(host),
                Err(why) => records.leave_out("host", value, "hypervisor_hostname", why),
            }
        }
        records.archive.snapshot.hosts.sort_by_key(|record| record.host.id);
        let (allocated, unread) = allocated(&saved.allocations);
        records.left_out.extend(unread);
        let hosts: BTreeSet<HostId> =
            records.archive.snapshot.hosts.iter().map(|record| record.host.id).collect();
        let mut leases = Vec::new();
        for value in &saved.leases {
            match read_lease(value, &allocated, &hosts, saved.read_at) {
                Ok(record) => leases.push(record),
                Err(why) => records.leave_out("lease", value, "name", why),
            }
        }
        for value in &saved.floating_ips {
            match read_address(value, saved.read_at) {
                Ok(record) => records.archive.snapshot.floating_ips.push(record),
                Err(why) => records.leave_out("floating IP", value, "floating_ip_address", why),
            }
        }
        records.archive.snapshot.floating_ips.sort_by_key(|record| record.floating_ip.id);
        // If two leases conflict, the later one is left out.
        leases.sort_by_key(|record| (record.created_at, record.lease.id));
        let known: Vec<&Lease> = leases.iter().map(|record| &record.lease).collect();
        let mut addresses = Addresses::new(&records.archive.snapshot.floating_ips, given, &known);
        let lacking = addresses.give(leases.iter_mut().map(|record| &mut record.lease));
        let mut held = Held::default();
        for record in leases {
            let lacks = lacking.get(&record.lease.id).cloned();
            match lacks.map_or(Ok(()), Err).and_then(|()| held.enter(&record.lease)) {
                Ok(()) => records.take(record),
                Err(why) => records.left_out.push(LeftOut { what: called(&record.lease), why }),
            }
        }
        for value in &saved.properties {
            let Ok(property) = BlazarProperty::deserialize(value) else { continue };
            if property.private {
                let (name, created_at) = (property.property, saved.read_at);
                let id = uuid();
                let record = PropertyRecord { id, name, private: true, created_at, updated_at: None };
                records.archive.snapshot.properties.push(record);
            }
        }
        records.archive.snapshot.leases.sort_by_key(|record| record.lease.id);
        records.undone.sort_by_key(|undone| (undone.at, undone.lease));
        records.archive.usage = usage(&records.archive);
        // With 0, the service would take this for a new store next to a fleet whose hosts another service has
        // handed over.
        records.archive.last_fence = 1;
        records
    }

    /// Messages about floating IPs that have a holder in the cloud, but belong to no imported lease: the
    /// service would take them away.
    pub(super) fn addresses_of_others(&self, given: &Given) -> Vec<String> {
        let leases = self.archive.snapshot.leases.iter().map(|record| &record.lease);
        let kept = leases.filter(|lease| lease.keeps_resources()).flat_map(|lease| &lease.reservations);
        let known: BTreeSet<ReservationId> = kept.map(|own| own.id).collect();
        let addresses = self.archive.snapshot.floating_ips.iter().map(|record| &record.floating_ip);
        let of_others =
            addresses.filter(|ip| given.get(&ip.id).is_some_and(|holder| !known.contains(holder)));
        of_others
            .map(|ip| {
                format!(
                    "the floating IP {} is in use, but not by a lease that was read: delete it, or the lease",
                    ip.address
                )
            })
            .collect()
    }

    /// Starts and ends that are due at `now`.
    pub(super) fn due(&self, now: Timestamp) -> impl Iterator<Item = &Undone> {
        self.undone.iter().filter(move |undone| undone.at <= now)
    }

    fn leave_out(&mut self, kind: &str, value: &Value, name: &str, why: String) {
        let text = |key: &str| match &value[key] {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => "without".to_owned(),
        };
        let what = format!("{kind} {} ({})", Quoted(&text("id")), Quoted(&text(name)));
        self.left_out.push(LeftOut { what, why });
    }

    fn take(&mut self, record: LeaseRecord) {
        let lease = &record.lease;
        let events = [
            (EventKind::StartLease, lease.window.start(), lease.events.start),
            (EventKind::EndLease, lease.window.end(), lease.events.end),
        ];
        if matches!(lease.status, LeaseStatus::Pending | LeaseStatus::Active) {
            let undone = events.into_iter().filter(|(.., status)| *status == EventStatus::Undone);
            let undone =
                undone.map(|(kind, at, _)| Undone { at, kind, lease: lease.id, name: lease.name.clone() });
            self.undone.extend(undone);
            self.reservations.extend(lease.reservations.iter().filter_map(|own| in_cloud(lease, own)));
        }
        self.archive.snapshot.leases.push(record);
    }
}

/// The reservation as it exists in the cloud. `None` for floating IPs.
fn in_cloud(lease: &Lease, reservation: &Reservation) -> Option<BlazarReservation> {
    let hosts = match &reservation.allocation {
        Allocation::Hosts(hosts) => hosts.iter().map(|host| (*host, 1)).collect(),
        Allocation::Slots(slots) => slots.clone(),
        Allocation::FloatingIps(_) => return None,
    };
    Some(BlazarReservation {
        id: reservation.id,
        lease: lease.id,
        project: lease.owner.project.clone(),
        recipe: Recipe::of(&reservation.terms)?,
        hosts,
        started: lease.status == LeaseStatus::Active,
    })
}

/// Name of a lease in messages.
fn called(lease: &Lease) -> String {
    format!("lease {} ({})", lease.id, Quoted(&lease.name))
}

/// Parses the number of a host. Blazar writes it as text.
fn number(value: &Value) -> Option<HostId> {
    match value {
        Value::String(text) => host_id(text),
        Value::Number(number) => number.as_u64().map(HostId),
        _ => None,
    }
}

fn read_host(value: &Value, read_at: Timestamp) -> Result<HostRecord, String> {
    let read = BlazarHost::deserialize(value).map_err(|error| error.to_string())?;
    let id = number(&read.id).ok_or("its ID isn't a number")?;
    let mut host = Host::new(id, &read.hypervisor_hostname, read.vcpus, read.memory_mb, read.local_gb);
    host.service_name = read.service_name.unwrap_or(read.hypervisor_hostname);
    host.cpu_info = read.cpu_info.map(plain).unwrap_or_default();
    host.hypervisor_type = read.hypervisor_type.unwrap_or_default();
    host.hypervisor_version = read.hypervisor_version.unwrap_or_default();
    host.availability_zone = read.availability_zone.unwrap_or_default();
    host.reservable = read.reservable.unwrap_or(true);
    let capabilities = read.others.into_iter();
    let capabilities =
        capabilities.filter(|(name, value)| !NO_CAPABILITIES.contains(&name.as_str()) && !value.is_null());
    host.capabilities = capabilities.map(|(name, value)| (name, plain(value))).collect();
    let updated_at = read.updated_at.as_deref().map(instant).transpose()?;
    let created_at = instant_or(read.created_at.as_ref(), read_at)?;
    Ok(HostRecord { host, version: Version::FIRST, created_at, updated_at })
}

/// A JSON value as text. Strings lose their quotation marks.
fn plain(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn allocated(values: &[Value]) -> (Allocated, Vec<LeftOut>) {
    let (mut allocated, mut unread) = (Allocated::new(), Vec::new());
    for value in values {
        let read = BlazarAllocation::deserialize(value).map_err(|error| error.to_string());
        let read = read.and_then(|read| {
            number(&read.resource_id).map(|host| (host, read)).ok_or("its host has no number".to_owned())
        });
        match read {
            Ok((host, read)) => {
                for reservation in read.reservations {
                    *allocated.entry(reservation.id).or_default().entry(host).or_default() += 1;
                }
            }
            Err(why) => unread.push(LeftOut { what: "allocations of a host".to_owned(), why }),
        }
    }
    (allocated, unread)
}

fn read_lease(
    value: &Value,
    allocated: &Allocated,
    hosts: &BTreeSet<HostId>,
    read_at: Timestamp,
) -> Result<LeaseRecord, String> {
    let read = BlazarLease::deserialize(value).map_err(|error| error.to_string())?;
    let id = lease_id(&read.id).ok_or("its ID isn't a UUID")?;
    let status =
        LeaseStatus::from_name(&read.status).ok_or_else(|| format!("status {}", Quoted(&read.status)))?;
    if !status.stable() {
        return Err(format!(
            "it is {status}: wait until Blazar has done that, and read again",
            status = read.status
        ));
    }
    let (start, end) = (instant(&read.start_date)?, instant(&read.end_date)?);
    let window = Window::starting(start, end.duration_since(start));
    let mut reservations = Vec::new();
    for value in &read.reservations {
        reservations.push(read_reservation(value, allocated, hosts, status)?);
    }
    let (mut wording, mut terms, mut allocations, mut ids) = (BTreeMap::new(), vec![], vec![], vec![]);
    for read in &reservations {
        if read.wording != Wording::default() {
            wording.insert(read.id, read.wording.clone());
        }
        terms.push(read.terms.clone());
        allocations.push(read.allocation.clone());
        ids.push(read.id);
    }
    let terms = Terms::new(window, None, terms).map_err(|error| error.to_string())?;
    let owner = Owner { project: ProjectId(read.project_id), user: UserId(read.user_id) };
    let new = NewLease { id, name: read.name, owner, end_action: EndAction::default(), reservations: ids };
    let mut lease = Lease::new(new, terms, allocations, None);
    lease.status = status;
    for (own, read) in lease.reservations.iter_mut().zip(&reservations) {
        own.status = read.status;
        own.missing_resources = read.missing_resources;
        own.resources_changed = read.resources_changed;
    }
    read_events(&mut lease, &read.events)?;
    let own = lease.reservations.iter().map(|own| own.status);
    if !status::fits(status, own, lease.events.start, lease.events.end) {
        return Err("its status contradicts its events and reservations".to_owned());
    }
    let created_at = instant_or(read.created_at.as_ref(), read_at)?;
    let updated_at = read.updated_at.as_deref().map(instant).transpose()?;
    let updated_at = updated_at.filter(|updated| *updated > created_at);
    Ok(LeaseRecord { updated_at, ..LeaseRecord::new(lease, wording, created_at) })
}

/// Sets the events of a lease. Start and end events must be due at the dates of the lease.
fn read_events(lease: &mut Lease, events: &[BlazarEvent]) -> Result<(), String> {
    lease.events = EventStatuses::UNDONE;
    for event in events {
        let status = EventStatus::from_name(&event.status)
            .ok_or_else(|| format!("an event has the status {}", Quoted(&event.status)))?;
        let at = instant(&event.time)?;
        let due = match event.event_type.as_str() {
            "start_lease" => {
                lease.events.start = status;
                lease.window.start()
            }
            "end_lease" => {
                lease.events.end = status;
                lease.window.end()
            }
            "before_end_lease" => {
                lease.events.before_end = status;
                lease.before_end = Some(at);
                at
            }
            other => return Err(format!("it has an event {}", Quoted(other))),
        };
        if at != due {
            return Err(format!("its event {} is not due when it starts or ends", event.event_type));
        }
    }
    Ok(())
}

/// A parsed reservation.
struct Read {
    id: ReservationId,
    terms: ReservationTerms,
    wording: Wording,
    allocation: Allocation,
    status: ReservationStatus,
    missing_resources: bool,
    resources_changed: bool,
}

fn read_reservation(
    value: &Map<String, Value>,
    allocated: &Allocated,
    hosts: &BTreeSet<HostId>,
    lease: LeaseStatus,
) -> Result<Read, String> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let truth = |name: &str| value.get(name).and_then(Value::as_bool).unwrap_or_default();
    let id = reservation_id(text("id")).ok_or("a reservation's ID isn't a UUID")?;
    let status = ReservationStatus::from_name(text("status"))
        .ok_or_else(|| format!("a reservation has the status {}", Quoted(text("status"))))?;
    let (terms, wording) = read_terms(value).map_err(|why| format!("reservation {id}: {why}"))?;
    let none = BTreeMap::new();
    let given = allocated.get(text("id")).unwrap_or(&none);
    if let Some(unknown) = given.keys().find(|host| !hosts.contains(host)) {
        return Err(format!("reservation {id} has host {unknown}, which Blazar does not list"));
    }
    let allocation = match terms {
        ReservationTerms::Hosts(_) => Allocation::Hosts(given.keys().copied().collect::<BTreeSet<_>>()),
        // Addresses are assigned later, when all leases are known.
        ReservationTerms::FloatingIps(_) => Allocation::FloatingIps(BTreeSet::new()),
        _ => Allocation::Slots(given.clone()),
    };
    let missing_resources = truth("missing_resources");
    let least = match &terms {
        ReservationTerms::Hosts(terms) => u64::from(terms.min()),
        other => u64::from(other.number()),
    };
    let keeps = matches!(lease, LeaseStatus::Pending | LeaseStatus::Active);
    let within = (least..=u64::from(terms.number())).contains(&allocation.amount());
    let of_addresses = matches!(terms, ReservationTerms::FloatingIps(_));
    if keeps && !within && !missing_resources && !of_addresses {
        let amount = counted(allocation.amount(), "allocation", "allocations");
        return Err(format!("reservation {id} has {amount}, not the requested amount"));
    }
    let resources_changed = truth("resources_changed");
    Ok(Read { id, terms, wording, allocation, status, missing_resources, resources_changed })
}

/// Parses the terms of a reservation in the same way as a request for it.
fn read_terms(value: &Map<String, Value>) -> Result<(ReservationTerms, Wording), String> {
    let resource_type = value.get("resource_type").and_then(Value::as_str).unwrap_or_default();
    let fields: &[&str] = match resource_type {
        "physical:host" => &["min", "max", "hypervisor_properties", "resource_properties", "before_end"],
        // Only forks of Blazar have the last two.
        "virtual:instance" => &[
            "vcpus",
            "memory_mb",
            "disk_gb",
            "amount",
            "affinity",
            "resource_properties",
            "ephemeral_gb",
            "extra_specs",
        ],
        "flavor:instance" => &["amount", "affinity"],
        "virtual:floatingip" => &["network_id", "amount", "required_floatingips"],
        other => return Err(format!("there is no resource type {}", Quoted(other))),
    };
    let mut request = Map::from_iter([("resource_type".to_owned(), json!(resource_type))]);
    let given = fields.iter().filter_map(|name| Some(((*name).to_owned(), value.get(*name)?.clone())));
    request.extend(given);
    if resource_type != "flavor:instance" {
        return read_reserved(&Value::Object(request), &|_| None).map_err(|error| error.to_string());
    }
    // Blazar keeps a copy of the flavor, as JSON, from the time of the request.
    let words = value.get("resource_properties").and_then(Value::as_str).unwrap_or_default();
    let flavor: Map<String, Value> =
        serde_json::from_str(words).map_err(|_| "its flavor is not in resource_properties".to_owned())?;
    let id = flavor.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let known = ["name", "vcpus", "ram", "disk", "OS-FLV-EXT-DATA:ephemeral", "extra_specs"];
    let known = known.iter().filter_map(|name| Some(((*name).to_owned(), flavor.get(*name)?.clone())));
    let record = FlavorRequest::read(&Value::Object(known.collect()));
    let record = record.and_then(|flavor| flavor.record(id.clone(), Timestamp::UNIX_EPOCH));
    let record = record.map_err(|error| format!("its flavor: {error}"))?;
    request.extend([("flavor_id".to_owned(), json!(id)), ("resource_properties".to_owned(), json!(""))]);
    let read = read_reserved(&Value::Object(request), &|_| Some(record.clone()));
    let (terms, wording) = read.map_err(|error| error.to_string())?;
    Ok((terms, Wording { resource_properties: Some(words.into()), ..wording }))
}

/// Leases by host, to find conflicts. Blazar can allocate a host to two leases at the same time if they're
/// requested at once.
#[derive(Default)]
struct Held(BTreeMap<HostId, Vec<Holding>>);

struct Holding {
    window: Window,
    whole: bool,
    /// Name of the lease, for messages.
    called: String,
}

impl Held {
    /// Adds the hosts of a lease. The error names the lease that conflicts with it.
    fn enter(&mut self, lease: &Lease) -> Result<(), String> {
        if !lease.keeps_resources() {
            return Ok(());
        }
        let mut own: BTreeMap<HostId, bool> = BTreeMap::new();
        for reservation in &lease.reservations {
            let whole = matches!(reservation.allocation, Allocation::Hosts(_));
            for host in reservation.allocation.hosts() {
                *own.entry(host).or_default() |= whole;
            }
        }
        for (host, whole) in &own {
            let mut others = self.0.get(host).into_iter().flatten();
            let clash = |other: &&Holding| (other.whole || *whole) && other.window.overlaps(&lease.window);
            if let Some(other) = others.find(clash) {
                return Err(format!("it has host {host} at the same time as {}", other.called));
            }
        }
        for (host, whole) in own {
            let holding = Holding { window: lease.window, whole, called: called(lease) };
            self.0.entry(host).or_default().push(holding);
        }
        Ok(())
    }
}

/// Usage by pending and running leases, running ones from their start. Leases that are over aren't in our
/// accounts.
fn usage(archive: &Archive) -> Entries {
    let hosts: BTreeMap<HostId, &Host> =
        archive.snapshot.hosts.iter().map(|record| (record.host.id, &record.host)).collect();
    let mut usage = Entries::default();
    for record in &archive.snapshot.leases {
        let lease = &record.lease;
        let mut pending = lease.clone();
        (pending.status, pending.events) = (LeaseStatus::Pending, EventStatuses::UNDONE);
        let steps = match lease.status {
            LeaseStatus::Pending => vec![(record.created_at, None, lease)],
            LeaseStatus::Active => {
                vec![(record.created_at, None, &pending), (lease.window.start(), Some(&pending), lease)]
            }
            _ => continue,
        };
        for (at, before, after) in steps {
            let mut account = Account::new(at, |id: HostId| hosts.get(&id).copied());
            account.lease(before, Some(after));
            let entries = account.entries();
            usage.opened.extend(entries.opened);
            usage.events.extend(entries.events);
        }
    }
    usage.events.sort_by_key(|event| event.at);
    usage
}

#[cfg(test)]
mod tests;
