//! Notifications for listeners (API-notifications): Blazar's events and a few of our own.
//!
//! | event | when |
//! | --- | --- |
//! | `lease.create`, `lease.update`, `lease.delete` | the lease was created, changed (except for its name), removed |
//! | `lease.event.start_lease`, `.before_end_lease`, `.end_lease` | the event ended |
//! | `lease.event.before_start_lease` | its hosts are clear of preemptible guests, and it starts soon (not in Blazar) |
//! | `lease.event.before_end_lease.stop` | the before-end action was done and is armed again |
//! | `lease.event.start_lease.error` | the lease could not start before its end or its timeout (not in Blazar) |
//! | `lease.waitlist.added`, `.served`, `.expired`, `.removed` | a request waits; was served; wasn't served in time; was withdrawn (not in Blazar) |
//! | `lease.reminder.start_lease`, `.end_lease` | the lease starts or ends soon (not in Blazar) |
//! | `lease.unused`, `lease.reclaimed` | the lease is unused; it was ended because of that (not in Blazar) |
//! | `lease.degraded`, `lease.healed` | the lease has less than it was promised; it is complete again (not in Blazar) |
//! | `lease.host_replaced` | the lease got other hosts without its owner asking for it (not in Blazar) |
//! | `instance.departure.planned` | an instance will be preempted, at another time than announced, or is asked at the end of its lifetime (not in Blazar) |
//! | `instance.departure.withdrawn` | it can stay; also for guests started outside the service that were asked to leave (not in Blazar) |
//! | `instance.preempted` | it was preempted and is gone (not in Blazar) |
//! | `lease.instance.started`, `lease.instance.ended` | a server of the cloud was first seen in a lease; is no longer in it (not in Blazar) |
//! | `host.boot_failed` | a host was switched on and doesn't come up (not in Blazar) |
//!
//! If metering is on, the notifications of [`meters`] are added, one per reservation of the lease.
//!
//! Notifications about a host belong to no project, so only administrators and the listener see them.

use std::collections::{BTreeMap, BTreeSet};

use api::v1::Names;
use jiff::Timestamp;
use leases::host::Host;
use leases::housekeeping::Marks;
use leases::ids::{FloatingIpId, GuestId, HostId, LeaseId, ReservationId};
use leases::instance::InstanceStatus;
use leases::lease::Lease;
use leases::plan::{PlanRules, Prepared};
use leases::project::ProjectId;
use leases::status::{EventStatus, LeaseStatus};
use leases::usage::{Held, Size, Span};
use serde_json::Value;
use store::{Commit, InstanceRecord, LeaseRecord, NewNotification, Write};

use crate::lifetimes::{expiry_of, known_departure};
use crate::meters;
use crate::payload;
use crate::state::State;

pub(crate) const CREATE: &str = "lease.create";
pub(crate) const UPDATE: &str = "lease.update";
pub(crate) const DELETE: &str = "lease.delete";
pub(crate) const WAITS: &str = "lease.waitlist.added";
pub(crate) const SERVED: &str = "lease.waitlist.served";
pub(crate) const EXPIRED: &str = "lease.waitlist.expired";
pub(crate) const WITHDRAWN: &str = "lease.waitlist.removed";
pub(crate) const BOOT_FAILED: &str = "host.boot_failed";
const START: &str = "lease.event.start_lease";
const END: &str = "lease.event.end_lease";
const DEGRADED: &str = "lease.degraded";
const HEALED: &str = "lease.healed";
const DEPARTURE_PLANNED: &str = "instance.departure.planned";
const DEPARTURE_WITHDRAWN: &str = "instance.departure.withdrawn";
const PREEMPTED: &str = "instance.preempted";
const GUEST_STARTED: &str = "lease.instance.started";
const GUEST_ENDED: &str = "lease.instance.ended";
pub(crate) const HOST_REPLACED: &str = "lease.host_replaced";
const UNUSED: &str = "lease.unused";
pub(crate) const BEFORE_END_STOP: &str = "lease.event.before_end_lease.stop";

/// Notification of an event of a lease, with the lease's current state.
pub(crate) fn notice(event_type: &str, record: &LeaseRecord) -> NewNotification {
    NewNotification {
        lease: Some(record.lease.id),
        project: record.lease.owner.project.clone(),
        event_type: event_type.to_owned(),
        payload: in_full(record),
    }
}

pub(crate) fn boot_failed(host: &Host) -> NewNotification {
    let power = host.power.state.name();
    let since = host.power.state.since().map(|since| since.to_string());
    let more = [("power", power.into()), ("switched_on_at", since.into())];
    of_host(BOOT_FAILED, host, more)
}

/// Notification of an event of a host, with additional fields. It belongs to no project.
fn of_host<const N: usize>(event_type: &str, host: &Host, more: [(&str, Value); N]) -> NewNotification {
    let mut payload = serde_json::json!({
        "host_id": host.id.to_string(),
        "hypervisor_hostname": host.name,
    });
    for (name, value) in more {
        payload[name] = value;
    }
    NewNotification {
        lease: None,
        project: ProjectId(String::new()),
        event_type: event_type.to_owned(),
        payload: payload::write(&payload, &format!("/v1/os-hosts/{}", host.id)),
    }
}

/// Notification for the owner of a preemptible instance about a write. `successor` is the instance that is
/// queued in its place.
pub(crate) fn of_instance(
    before: &InstanceRecord,
    write: &Write,
    rules: &PlanRules,
    successor: Option<GuestId>,
    now: Timestamp,
) -> Option<NewNotification> {
    let known = |record: &InstanceRecord| known_departure(rules, &record.instance);
    let (event_type, record) = match write {
        Write::Instance { record, .. } if preempted(before, write, now) => (PREEMPTED, &**record),
        Write::Instance { record, .. } => match (known(before), known(record)) {
            // The owner isn't told which host it moves to. An instance that is asked to leave at the end of its lifetime is
            // announced again, because the limit may be new or lower since the last notification.
            (Some(was), Some(is))
                if was.is_at(&is) && before.instance.leaves_anyway() == record.instance.leaves_anyway() =>
            {
                return None;
            }
            (_, Some(_)) => (DEPARTURE_PLANNED, &**record),
            (_, None) if before.instance.departure.is_some() => (DEPARTURE_WITHDRAWN, &**record),
            // No departure was planned, or an instance with a limited lifetime has ended by itself.
            (_, None) => return None,
        },
        Write::ForgetInstance { .. } if preempted(before, write, now) => (PREEMPTED, before),
        _ => return None,
    };
    let instance = &record.instance;
    let departure = known(record).map(|known| known.for_owner(rules.notice(instance.class.as_ref())));
    let deadline = expiry_of(rules, instance).map(|expiry| expiry.gone_by);
    let shown = api::v1::Instance::of(record, departure, None, None).with_deadline(deadline);
    let mut value = serde_json::to_value(shown).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        // Only operators see where it runs.
        fields.remove("host");
        fields.remove("safe_until");
        if let Some(id) = fields.remove("id") {
            fields.insert("instance_id".to_owned(), id);
        }
        fields.extend(successor.map(|id| ("requeued_as".to_owned(), id.to_string().into())));
    }
    Some(NewNotification {
        lease: None,
        project: record.instance.owner.project.clone(),
        event_type: event_type.to_owned(),
        payload: payload::write(&value, &format!("/v1/instances/{}", record.instance.id)),
    })
}

/// Notification that a preemptible guest started outside the service was asked to leave its host, and can
/// stay.
pub(crate) fn guest_resumed(guest: GuestId, project: &ProjectId) -> NewNotification {
    let payload = serde_json::json!({"instance_id": guest.to_string(), "project_id": project.0});
    NewNotification {
        lease: None,
        project: project.clone(),
        event_type: DEPARTURE_WITHDRAWN.to_owned(),
        payload: payload::write(&payload, &format!("/v1/instances/{guest}")),
    }
}

/// Notification that a guest started in a lease. `span` is its usage.
pub(crate) fn guest_started(span: &Span) -> Option<NewNotification> {
    of_guest(GUEST_STARTED, span, ("started_at", span.window.start()))
}

/// Notification that a guest is no longer in its lease. `span` is its usage.
pub(crate) fn guest_ended(span: &Span) -> Option<NewNotification> {
    of_guest(GUEST_ENDED, span, ("ended_at", span.window.end()))
}

fn of_guest(event_type: &str, span: &Span, (when, at): (&str, Timestamp)) -> Option<NewNotification> {
    let (Held::Instance(id), Some(lease)) = (span.held, span.lease) else { return None };
    let payload = serde_json::json!({
        "instance_id": id.to_string(),
        "lease_id": lease.to_string(),
        "reservation_id": span.reservation.map(|reservation| reservation.to_string()),
        "project_id": span.owner.project.0,
        "user_id": span.owner.user.0,
        "vcpus": span.size.cores,
        "memory_mb": span.size.memory_mib,
        "disk_gb": span.size.disk_gib,
        when: api::v1::rfc_3339(at),
    });
    Some(NewNotification {
        // The payload describes a guest, not the lease.
        lease: None,
        project: span.owner.project.clone(),
        event_type: event_type.to_owned(),
        payload: payload::write(&payload, &format!("/v1/leases/{lease}")),
    })
}

/// Whether the instance is forgotten or shelved because it was preempted for a lease.
pub(crate) fn preempted(before: &InstanceRecord, write: &Write, now: Timestamp) -> bool {
    let gone = match write {
        Write::ForgetInstance { .. } => true,
        Write::Instance { record, .. } => record.instance.status == InstanceStatus::Shelved,
        _ => false,
    };
    gone && before.instance.gone_as_preempted(now)
}

/// The lease as in the API, except that `id` is named `lease_id`. [`complete`] adds its resources at commit.
fn in_full(record: &LeaseRecord) -> String {
    written(api::v1::Lease::from(record), None)
}

/// Payload of a lease with an additional field.
fn written(lease: api::v1::Lease, more: Option<(&str, Value)>) -> String {
    let path = format!("/v1/leases/{}", lease.id);
    let mut value = serde_json::to_value(lease).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        if let Some(id) = fields.remove("id") {
            fields.insert("lease_id".to_owned(), id);
        }
        fields.extend(more.map(|(name, value)| (name.to_owned(), value)));
    }
    payload::write(&value, &path)
}

/// Names of hosts that a lease lost, and of hosts that it got instead.
struct Replaced {
    from: Vec<String>,
    to: Vec<String>,
}

impl Replaced {
    fn field(&self) -> (&'static str, Value) {
        ("hosts_replaced", serde_json::json!({"from": self.from, "to": self.to}))
    }
}

/// Hint for the owner of an unused lease. It contains the lease's ID rather than its name, because a name can
/// have characters that a shell interprets.
fn how_to_keep(lease: LeaseId) -> String {
    format!("Any change keeps the lease, for example: allot lease update {lease} --keep")
}

/// Looks up names of hosts and addresses.
struct Known<'a> {
    state: &'a State,
    /// Whether the fleet prepares reservations.
    prepares: bool,
}

impl Names for Known<'_> {
    fn host(&self, id: HostId) -> Option<String> {
        self.state.hosts.get(&id).map(|record| record.host.name.clone())
    }

    fn floating_ip(&self, id: FloatingIpId) -> Option<String> {
        self.state.floating_ips.get(&id).map(|record| record.floating_ip.address.to_string())
    }

    fn prepared(&self, _: ReservationId) -> Option<Prepared> {
        // The creation is notified before the fleet prepares anything.
        self.prepares.then(Prepared::default)
    }
}

/// Completes the notifications of a commit. Notifications of leases get the hosts and addresses that the
/// leases have after the commit. Owners are notified if their leases got other hosts for any reason. If
/// `metered`, notifications for metering are added.
pub(crate) fn complete(commit: &mut Commit, state: &State, prepares: bool, metered: bool) {
    let names = Known { state, prepares };
    let mut replaced: BTreeMap<LeaseId, Replaced> = BTreeMap::new();
    let mut added = Vec::new();
    let written_now = store::leases_after(&commit.writes);
    for (id, record) in &written_now {
        let (id, Some(record)) = (*id, record) else { continue };
        let before = state.leases.get(id).map(|before| &before.lease);
        let Some(hosts) = before.and_then(|before| exchanged(before, &record.lease, &names)) else {
            continue;
        };
        replaced.insert(id, hosts);
        let told = |told: &NewNotification| told.lease == Some(id) && told.event_type == UPDATE;
        if !commit.notifications.iter().any(told) {
            added.push(notice(HOST_REPLACED, record));
        }
    }
    commit.notifications.extend(added);
    let mut events = BTreeSet::new();
    let mut of_reservations = Vec::new();
    for told in &mut commit.notifications {
        let Some(id) = told.lease else { continue };
        let record =
            written_now.get(&id).copied().flatten().or_else(|| state.leases.get(id).map(AsRef::as_ref));
        let Some(record) = record else { continue };
        let lease = api::v1::Lease::from(record).with_resources(record, &names);
        let more = match told.event_type.as_str() {
            UPDATE | HOST_REPLACED => replaced.get(&id).map(Replaced::field),
            UNUSED => Some(("keep", how_to_keep(id).into())),
            _ => None,
        };
        if let Some(event) = event_for_meters(&told.event_type).filter(|_| metered)
            && events.insert((id, event))
        {
            let pairs = lease.reservations.iter().zip(&record.lease.reservations);
            of_reservations.extend(pairs.map(|(shown, reservation)| {
                let reserved = Size::of_reservation(reservation, |host| state.inventory.host(host));
                meters::notification(event, &lease, shown, reserved)
            }));
        }
        told.payload = written(lease, more);
    }
    commit.notifications.extend(of_reservations);
}

/// The reservation event that follows from a lease event.
fn event_for_meters(event_type: &str) -> Option<meters::Event> {
    match event_type {
        CREATE => Some(meters::Event::Create),
        START => Some(meters::Event::Start),
        UPDATE | HOST_REPLACED | DEGRADED | HEALED => Some(meters::Event::Update),
        END => Some(meters::Event::End),
        DELETE => Some(meters::Event::Delete),
        _ => None,
    }
}

/// Hosts that were replaced. `None` unless hosts were both lost and gained.
fn exchanged(before: &Lease, after: &Lease, names: &impl Names) -> Option<Replaced> {
    let hosts = |lease: &Lease| -> BTreeSet<HostId> {
        lease.reservations.iter().flat_map(|reservation| reservation.allocation.hosts()).collect()
    };
    let (was, is) = (hosts(before), hosts(after));
    let named = |some: &BTreeSet<HostId>, without: &BTreeSet<HostId>| -> Vec<String> {
        some.difference(without).filter_map(|id| names.host(*id)).collect()
    };
    let (from, to) = (named(&was, &is), named(&is, &was));
    let exchanged = before.standing.is_firm() && !from.is_empty() && !to.is_empty();
    exchanged.then_some(Replaced { from, to })
}

/// Notifications that follow from changed housekeeping marks.
fn of_marks(old: &Marks, new: &Marks) -> impl Iterator<Item = &'static str> {
    let notices = [
        (old.start_reminded != new.start_reminded, "lease.reminder.start_lease"),
        (old.end_reminded != new.end_reminded, "lease.reminder.end_lease"),
        (old.unused_warned_at != new.unused_warned_at, UNUSED),
        (old.reclaimed_at != new.reclaimed_at, "lease.reclaimed"),
    ];
    notices.into_iter().filter(|(told, _)| *told).map(|(_, event_type)| event_type)
}

/// Notifications of a change that the service made to a lease by itself.
pub(crate) fn of_change(before: &Lease, after: &LeaseRecord) -> Vec<NewNotification> {
    let (old, new) = (before.events, after.lease.events);
    let came = |old: EventStatus, new: EventStatus, to| old != to && new == to;
    let mut types = Vec::new();
    let cleared = |lease: &Lease| lease.before_start.map(|before_start| before_start.status);
    if cleared(before) != cleared(&after.lease) && cleared(&after.lease) == Some(EventStatus::Done) {
        types.push("lease.event.before_start_lease");
    }
    if came(old.start, new.start, EventStatus::Done) {
        types.push(START);
    }
    if came(old.start, new.start, EventStatus::Error) {
        types.push("lease.event.start_lease.error");
    }
    if came(old.before_end, new.before_end, EventStatus::Done) {
        types.push("lease.event.before_end_lease");
    }
    if came(old.end, new.end, EventStatus::Done) {
        types.push(END);
    }
    // A best-effort lease was advanced.
    if after.lease.status == LeaseStatus::Pending && before.window != after.lease.window {
        types.push(UPDATE);
    }
    types.extend(of_marks(&before.marks, &after.lease.marks));
    match (before.degraded(), after.lease.degraded()) {
        (false, true) => types.push(DEGRADED),
        (true, false) => types.push(HEALED),
        _ => {}
    }
    types.into_iter().map(|event_type| notice(event_type, after)).collect()
}
