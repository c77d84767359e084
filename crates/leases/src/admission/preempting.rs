//! Preemption of instances, and of preemptible guests that were started outside of the service, for leases
//! (PRE-06).

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{Admission, Within};
use crate::calendar::Booking;
use crate::host::Host;
use crate::ids::{GuestId, HostId, LeaseId};
use crate::instance::{Instance, InstanceKind};
use crate::lease::{Allocation, Lease, Reservation};
use crate::plan::{FENCE_TOLERANCE, Guest, GuestSize, Observed, ObservedHost};
use crate::preemption::{Candidate, victims, victims_within};
use crate::project::ProjectId;
use crate::resources::Resources;
use crate::status::LeaseStatus;
use crate::window::{Window, later};

/// A lease for which guests leave a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    pub start: Timestamp,
    /// The lease has begun and has everything that it needs of the host.
    pub has_room: bool,
}

impl Need {
    /// The need of a lease on a host. If the host was not observed, a lease that has begun counts as having
    /// its room.
    pub fn of(lease: &Lease, host: HostId, seen: Option<&ObservedHost>) -> Self {
        let begun = !matches!(lease.status, LeaseStatus::Pending | LeaseStatus::Starting);
        let has = |reservation: &Reservation, seen: &ObservedHost| match &reservation.allocation {
            Allocation::Hosts(hosts) => !hosts.contains(&host) || seen.place.holder() == Some(reservation.id),
            Allocation::Slots(slots) => {
                let granted = seen.slots.get(&reservation.id).copied().unwrap_or_default();
                slots.get(&host).is_none_or(|slots| granted >= *slots)
            }
            Allocation::FloatingIps(_) => true,
        };
        let has_all = |seen| lease.reservations.iter().all(|reservation| has(reservation, seen));
        Self { start: lease.window.start(), has_room: begun && seen.is_none_or(has_all) }
    }
}

impl Admission<'_> {
    /// The instances on a host that must leave for leases known so far, each with the start of the lease that
    /// needs its place.
    ///
    /// Before a lease of the whole host, all preemptible instances leave. Before a lease of slots, instances
    /// leave until the rest fits together with the bookings at that time. Guests that were started
    /// `elsewhere` are included.
    ///
    /// `instances` are all instances on the host that aren't part of a lease. `needs` returns the need of a
    /// lease. Bookings of leases that it doesn't know preempt nothing: a held offer isn't certain to become a
    /// lease.
    ///
    /// Instances that leave in any case ([`Instance::goes_anyway`]) are included as long as a lease of slots
    /// needs the place that they still have. Until they are gone, the room isn't there.
    pub fn preempted_for_leases<'i>(
        &self,
        host: &Host,
        instances: impl IntoIterator<Item = &'i Instance>,
        elsewhere: Elsewhere<'_>,
        needs: impl Fn(LeaseId) -> Option<Need>,
    ) -> BTreeMap<GuestId, Timestamp> {
        let (going, instances): (Vec<&Instance>, Vec<&Instance>) =
            instances.into_iter().partition(|instance| instance.goes_anyway());
        let (mut staying, others): (Vec<&Instance>, Vec<&Instance>) =
            instances.into_iter().partition(|instance| instance.kind == InstanceKind::Preemptible);
        let mut beside = Resources::default();
        for other in others {
            beside.add(1, &other.size.resources());
        }
        let mut guests: Vec<&Guest> = elsewhere.guests.iter().collect();
        let mut leaving = BTreeMap::new();
        let known = self.calendar.bookings(host.id).filter(|(window, _)| window.end() > self.now);
        // The booking of a lease that has begun is cut off at the present, so use the lease's own start.
        let known: Vec<Known<'_>> = known
            .filter_map(|(window, booking)| Some(Known { window, need: needs(booking.lease)?, booking }))
            .collect();
        for Known { window, need, booking } in &known {
            let start = need.start;
            let counted = guests.iter().filter(|_| start <= elsewhere.until);
            let candidates = staying.iter().map(|instance| self.candidate(instance, start));
            let candidates: Vec<Candidate<'_>> =
                candidates.chain(counted.map(|guest| started_elsewhere(guest))).collect();
            let mut now_leaving = if booking.used.is_some() {
                victims(&candidates, &room_beside(host, &beside, &known, window.start()))
            } else {
                // The lease that allows backfill on its host asks its instances to leave itself.
                let backfills = |instance: &&&Instance| instance.backfills == Some(booking.lease);
                staying.iter().filter(|instance| !backfills(instance)).map(|instance| instance.id).collect()
            };
            // A lease hardly longer than the clock tolerance still needs its room.
            let tolerance = FENCE_TOLERANCE.min(window.end().duration_since(start) / 2);
            // A lease has no room yet if it has not begun, or if a request just before its end gives it more.
            if need.has_room && window.end() <= later(self.now, tolerance) {
                // The clock of another service could already be past the lease, so no more guests are asked
                // to leave for it.
                let told = |instance: &&&Instance| {
                    instance.departure.is_some_and(|departure| departure.gone_by == start)
                };
                let told = staying.iter().filter(told).map(|told| told.id);
                let asked =
                    guests.iter().filter(|guest| guest.stopping_since.is_some()).map(|guest| guest.id);
                let told: BTreeSet<GuestId> = told.chain(asked).collect();
                now_leaving.retain(|id| told.contains(id));
            }
            staying.retain(|instance| !now_leaving.contains(&instance.id));
            guests.retain(|guest| !now_leaving.contains(&guest.id));
            leaving.extend(now_leaving.into_iter().map(|id| (id, start)));
            if booking.used.is_some() && !going.is_empty() {
                let mut room = room_beside(host, &beside, &known, window.start());
                for instance in &staying {
                    room.subtract(1, &instance.size.resources());
                }
                let counted = guests.iter().filter(|_| start <= elsewhere.until);
                counted.for_each(|guest| room.subtract(1, &guest.size.resources()));
                let candidates: Vec<Candidate<'_>> =
                    going.iter().map(|instance| on_its_way(instance)).collect();
                for id in victims(&candidates, &room) {
                    leaving.entry(id).or_insert(start);
                }
            }
        }
        leaving
    }

    /// Finds room for an instance outside of leases by preempting instances of the same project, as few as
    /// possible. Returns the host and the instances to preempt (PRE-10).
    pub fn displacing<'i>(
        &self,
        project: &ProjectId,
        size: GuestSize,
        observed: &Observed,
        instances: impl IntoIterator<Item = &'i Instance>,
    ) -> Option<(HostId, BTreeSet<GuestId>)> {
        let own = |instance: &&Instance| {
            instance.kind == InstanceKind::Preemptible
                && instance.owner.project == *project
                && instance.is_to_run()
                && !instance.leaves_anyway()
        };
        let mut by_host: BTreeMap<HostId, Vec<Candidate<'_>>> = BTreeMap::new();
        for instance in instances.into_iter().filter(own) {
            by_host.entry(instance.host).or_default().push(self.candidate(instance, self.now));
        }
        let mut best: Option<((usize, u64, HostId), BTreeSet<GuestId>)> = None;
        for (id, candidates) in by_host {
            let Some((host, seen)) = self.inventory.host(id).zip(observed.hosts.get(&id)) else { continue };
            if self.fits(Within::FreePool(project), host, Some(seen)).is_err() {
                continue;
            }
            let mut used = size.resources();
            let goes = |guest: &Guest| candidates.iter().any(|candidate| candidate.id == guest.id);
            for guest in seen.guests.iter().filter(|guest| !goes(guest)) {
                used.add(1, &guest.size.resources());
            }
            let mut room = host.capacity();
            if !used.fits_into(&room) {
                continue;
            }
            room.subtract(1, &used);
            if self.budget.stopped().is_some() {
                return None;
            }
            let going = victims_within(&candidates, &room, self.budget);
            let work = candidates.iter().filter(|candidate| going.contains(&candidate.id));
            let cost = (going.len(), work.map(|candidate| candidate.work).sum(), id);
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, going));
            }
        }
        self.settled_or_none(best.map(|((.., host), going)| (host, going)))
    }

    /// The instance as a candidate for preemption by a lease that starts at `start`.
    fn candidate<'i>(&self, instance: &'i Instance, start: Timestamp) -> Candidate<'i> {
        // An instance that was asked to leave will leave, even if leases have been made or deleted since.
        let asked = |start| instance.departure.is_some_and(|known| known.gone_by <= start);
        Candidate {
            id: instance.id,
            size: instance.size,
            work: instance.work_by(start),
            project: Some(&instance.owner.project),
            leaves: instance.is_departing(self.now) && asked(start),
        }
    }
}

/// Preemptible guests on a host that were started outside of the service and aren't on record as instances.
///
/// They come and go without notice, so only leases that start soon take them into account. Early notices to
/// the owners of instances don't depend on them. Before a lease of the whole host they leave in any case.
#[derive(Clone, Copy, Debug)]
pub struct Elsewhere<'g> {
    pub guests: &'g [Guest],
    /// They count for leases that start no later than this.
    pub until: Timestamp,
}

impl Elsewhere<'_> {
    pub const NOBODY: Self = Self { guests: &[], until: Timestamp::MIN };
}

/// A guest as a candidate for preemption. Its work is unknown, so it counts as losing nothing, and leaves
/// before an instance if either would do. A guest that was asked to leave will leave. That is observed and
/// need not be on record.
fn started_elsewhere(guest: &Guest) -> Candidate<'_> {
    Candidate {
        id: guest.id,
        size: guest.size,
        work: 0,
        project: guest.project.as_ref(),
        leaves: guest.stopping_since.is_some(),
    }
}

/// An instance that leaves anyway loses nothing.
fn on_its_way(instance: &Instance) -> Candidate<'_> {
    let project = Some(&instance.owner.project);
    Candidate { id: instance.id, size: instance.size, work: 0, project, leaves: false }
}

/// A booking of a host that isn't over, with the need of its lease.
struct Known<'a> {
    window: Window,
    need: Need,
    booking: &'a Booking,
}

/// Room left on the host at an instant, after subtracting its bookings and the `beside` resources.
fn room_beside(host: &Host, beside: &Resources, known: &[Known<'_>], at: Timestamp) -> Resources {
    let mut used = beside.clone();
    let then = known.iter().filter(|known| known.window.contains(at));
    for slots in then.filter_map(|known| known.booking.used.as_ref()) {
        used.add(1, slots);
    }
    let mut room = host.capacity();
    room.subtract(1, &used);
    room
}
