//! When preemptible instances, and preemptible guests that others have started, are preempted for leases (PRE-06).

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

/// What is known of a lease for which guests leave a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// When it starts.
    pub start: Timestamp,
    /// Whether it has begun, and has all that it is to have of the host.
    pub has_room: bool,
}

impl Need {
    /// That of a lease, of a host that was seen so, if it was.
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
    /// Which of the instances on a host are preempted, as far as leases are known, and for each when the lease starts
    /// that needs its place. Before a lease of the whole host all leave that are preemptible; before one of room on it
    /// only as many as it takes for the rest to fit beside what is reserved then, those `elsewhere` among them.
    ///
    /// `instances` are all those of the host that are part of no lease; `needs` knows leases. Nobody leaves for those that
    /// it does not know: what is held for an offer need not become a lease.
    ///
    /// Instances that go whatever becomes of leases ([`Instance::goes_anyway`]) are among them as long as a lease of
    /// room needs the place that they still have: until they have gone that room is not there.
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
        // What is booked begins in the present if the lease has begun, so the lease is asked.
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
                // The lease that lets them on its host tells them itself when they have to leave.
                let backfills = |instance: &&&Instance| instance.backfills == Some(booking.lease);
                staying.iter().filter(|instance| !backfills(instance)).map(|instance| instance.id).collect()
            };
            // A lease that is hardly longer than clocks may differ needs its room all the same.
            let tolerance = FENCE_TOLERANCE.min(window.end().duration_since(start) / 2);
            // One that has not begun, or is to have more, by a request just before its end, has none yet.
            if need.has_room && window.end() <= later(self.now, tolerance) {
                // By somebody else's clock it is over: nobody is told again to leave for it.
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

    /// A host for an instance of the project that is part of no lease and for which there is no room, if as few as can
    /// be of the project's own preemptible instances are preempted for it; and which (PRE-10).
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

    /// The instance as one that may have to be preempted for a lease that starts then.
    fn candidate<'i>(&self, instance: &'i Instance, start: Timestamp) -> Candidate<'i> {
        // Who was asked to leave leaves, whatever was made or deleted since.
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

/// Preemptible guests on a host that others have started: they are no instances on record.
///
/// They come and go without anybody being told, so only leases that start soon have to do with them: what owners of
/// instances are told long before depends on none of them. Before leases of the whole host they leave whatever is
/// decided.
#[derive(Clone, Copy, Debug)]
pub struct Elsewhere<'g> {
    /// These.
    pub guests: &'g [Guest],
    /// They count for leases that start until then.
    pub until: Timestamp,
}

impl Elsewhere<'_> {
    /// Nobody is there.
    pub const NOBODY: Self = Self { guests: &[], until: Timestamp::MIN };
}

/// The guest as one that may have to be preempted. What it has done nobody here knows, so it loses nothing, and leaves
/// before an instance where one of them is enough. Who was asked to leave leaves: that is seen, and need not be on
/// record.
fn started_elsewhere(guest: &Guest) -> Candidate<'_> {
    Candidate {
        id: guest.id,
        size: guest.size,
        work: 0,
        project: guest.project.as_ref(),
        leaves: guest.stopping_since.is_some(),
    }
}

/// An instance that goes anyway: it loses nothing.
fn on_its_way(instance: &Instance) -> Candidate<'_> {
    let project = Some(&instance.owner.project);
    Candidate { id: instance.id, size: instance.size, work: 0, project, leaves: false }
}

/// What is booked of a host for a lease, and is not over.
struct Known<'a> {
    window: Window,
    need: Need,
    booking: &'a Booking,
}

/// What is left of the host then, beside what is booked and that much.
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
