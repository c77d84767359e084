//! Invariants that must hold after every commit, checked against the store, the machines and the answers that
//! clients got. The checks are independent of the code they judge: they use no calendar and no admission.

mod backfill;
mod bookings;
mod closed;
mod elsewhere;
mod guests;
mod told;

use std::collections::{BTreeMap, BTreeSet};

use fleet::simulated::SimulatedFleet;
use jiff::{SignedDuration, Timestamp};
use leases::host::Health;
use leases::ids::{GuestId, HostId, LeaseId, ReservationId};
use leases::instance::{Instance, InstanceStatus};
use leases::lease::{Allocation, Lease, Reservation};
use leases::lease_pool::pools as lease_pools;
use leases::lease_type::LeaseType;
use leases::plan::{GuestOwner, ObservedHost, Overcommit, Place};
use leases::resources::Resources;
use leases::status::{EventStatus, LeaseStatus, ReservationStatus};
use leases::terms::ReservationTerms;
use store::{HostRecord, LeaseRecord, Snapshot};

use self::backfill::{BackfillWatch, LEAVING_TAKES};
use self::bookings::check_bookings;
use self::closed::ClosedWatch;
use self::elsewhere::ElsewhereWatch;
use self::told::same_terms;
use crate::verdict::Verdict;

/// A lease as its owner knows it from answers to calls.
#[derive(Clone, Debug)]
struct Known {
    record: LeaseRecord,
    /// A change was answered with a store error, so it's unknown whether it was made.
    uncertain: bool,
    deletion: Deletion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deletion {
    None,
    /// Answered with a store error.
    Uncertain,
    Accepted,
}

/// Checks the invariants of one simulation.
#[derive(Debug)]
pub(crate) struct Checker {
    cleaning_time: SignedDuration,
    known: BTreeMap<LeaseId, Known>,
    /// The leases at the last check.
    before: BTreeMap<LeaseId, LeaseRecord>,
    /// Claimed releases. A late call can release the same host again.
    released: BTreeSet<(HostId, ReservationId)>,
    /// Calls can take effect long after their callers gave up, so a host that was taken back can be handed
    /// over once more.
    late_calls: bool,
    /// Operations on machines take no time.
    immediate: bool,
    /// Several services share the store.
    several: bool,
    /// Maximum error of a service's clock.
    skew: SignedDuration,
    /// Instances that a service reported as started, and whether it also reported their deletion.
    instances: BTreeMap<GuestId, bool>,
    /// Preemptible instances that leave whether or not a lease starts.
    displaced: BTreeSet<GuestId>,
    /// Planned moves of preemptible instances: instance and target host.
    relocated: BTreeSet<(GuestId, HostId)>,
    backfill: BackfillWatch,
    elsewhere: ElsewhereWatch,
    closed: ClosedWatch,
    /// Time for which leases that are over are kept. `None` keeps them forever.
    kept: Option<SignedDuration>,
    /// Number of leases that were forgotten after that time.
    forgotten: u64,
}

impl Checker {
    pub fn new(
        cleaning_time: SignedDuration,
        late_calls: bool,
        immediate: bool,
        several: bool,
        skew: SignedDuration,
    ) -> Self {
        Self {
            cleaning_time,
            known: BTreeMap::new(),
            before: BTreeMap::new(),
            released: BTreeSet::new(),
            late_calls,
            immediate,
            several,
            skew,
            instances: BTreeMap::new(),
            displaced: BTreeSet::new(),
            relocated: BTreeSet::new(),
            backfill: BackfillWatch::default(),
            elsewhere: ElsewhereWatch::default(),
            closed: ClosedWatch::default(),
            kept: None,
            forgotten: 0,
        }
    }

    /// Sets how long leases that are over are kept. `None` means that they are never forgotten.
    #[must_use]
    pub fn forgetting(self, kept: Option<SignedDuration>) -> Self {
        Self { kept, ..self }
    }

    /// Number of leases that were forgotten without having been deleted by a client.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Whether the lease was over long enough to be gone without a client's deletion.
    fn may_be_forgotten(&self, id: LeaseId, now: Timestamp) -> bool {
        let (Some(kept), Some(before)) = (self.kept, self.before.get(&id)) else { return false };
        let changed_at = before.updated_at.unwrap_or(before.created_at);
        before.lease.over() && now.duration_since(changed_at) + self.skew * 2 >= kept
    }

    /// Turns on deadlines: without mishaps, every host is observed once per `observe_interval`, and guests
    /// have `grace` to leave.
    #[must_use]
    pub fn punctual(mut self, observe_interval: SignedDuration, grace: SignedDuration) -> Self {
        self.backfill.noticed_within = Some(observe_interval);
        self.elsewhere.gone_within = Some(observe_interval + grace + LEAVING_TAKES);
        self
    }

    /// Suspends deadlines until then, because a fault is injected.
    pub fn disturbed(&mut self, until: Timestamp) {
        self.backfill.disturbed_until = self.backfill.disturbed_until.max(until);
        self.elsewhere.disturbed_until = self.elsewhere.disturbed_until.max(until);
    }

    /// Number of instances that ran on hosts of consenting leases, and number of instances that had to leave
    /// for such a lease.
    pub fn backfilled(&self) -> (u64, u64) {
        (self.backfill.ran.len() as u64, self.backfill.cleared.len() as u64)
    }

    /// Notes a crash of the process. If operations take time, the ones it started are still under way.
    pub fn crashed(&mut self) {
        self.late_calls |= !self.immediate;
    }

    /// Notes a lease that a call returned.
    pub fn acknowledged(&mut self, record: &LeaseRecord) {
        let known = Known { record: record.clone(), uncertain: false, deletion: Deletion::None };
        self.known.insert(record.lease.id, known);
    }

    /// Notes that a change of the lease was answered with a store error.
    pub fn change_uncertain(&mut self, id: LeaseId) {
        if let Some(known) = self.known.get_mut(&id) {
            known.uncertain = true;
        }
    }

    pub fn instance_started(&mut self, id: GuestId) {
        self.instances.insert(id, false);
    }

    pub fn instance_deleted(&mut self, id: GuestId) {
        self.instances.insert(id, true);
    }

    /// Notes a deletion: accepted if `certain`, otherwise answered with a store error.
    pub fn deleted(&mut self, id: LeaseId, certain: bool) {
        if let Some(known) = self.known.get_mut(&id)
            && known.deletion != Deletion::Accepted
        {
            known.deletion = if certain { Deletion::Accepted } else { Deletion::Uncertain };
        }
    }

    /// Checks all invariants that hold at any time, not only at the end.
    pub fn check(&mut self, contents: &Snapshot, fleet: &SimulatedFleet, now: Timestamp) -> Verdict {
        let leases: BTreeMap<LeaseId, LeaseRecord> =
            contents.leases.iter().map(|record| (record.lease.id, record.clone())).collect();
        self.check_acknowledged(&leases, now)?;
        // A service whose clock is ahead ends a lease and frees its hosts. By a clock that is behind, that is
        // up to twice the skew before the lease's end.
        let cleaning_time = self.cleaning_time.saturating_sub(self.skew * 2).max(SignedDuration::ZERO);
        check_bookings(contents, cleaning_time, now)?;
        for record in leases.values() {
            let lease = &record.lease;
            if !lease.consistent() {
                return Err(format!("the parts of {lease:?} do not fit together"));
            }
            self.check_course(record, contents, fleet, now)?;
            check_promise(lease, &contents.hosts)?;
        }
        self.check_ends(&leases, contents, fleet)?;
        let instances = || contents.instances.iter().map(|record| &record.instance);
        let displaced = instances().filter(|instance| instance.leaves_anyway());
        self.displaced.extend(displaced.map(|instance| instance.id));
        self.relocated.extend(instances().filter_map(|instance| Some((instance.id, instance.moves_to()?))));
        self.backfill.follow(contents)?;
        self.closed.follow(contents, self.several, now)?;
        self.before = leases;
        self.check_machines(contents, fleet, now)
    }

    /// Sets the current offers and waiting requests, which aren't among the leases that [`Self::check`] gets.
    /// Must be called before it.
    pub fn offers(&mut self, proposals: &[LeaseRecord]) {
        self.closed.offers(proposals.iter());
    }

    /// Leases match what their owners were told.
    fn check_acknowledged(&mut self, leases: &BTreeMap<LeaseId, LeaseRecord>, now: Timestamp) -> Verdict {
        let gone = self.known.keys().filter(|id| !leases.contains_key(id));
        let forgotten: Vec<LeaseId> = gone.filter(|id| self.may_be_forgotten(**id, now)).copied().collect();
        for id in forgotten {
            self.forgotten += 1;
            self.known.remove(&id);
        }
        for (id, known) in &mut self.known {
            match (leases.get(id), known.deletion) {
                // The client of an immediate lease waits for its start. Until then, the lease doesn't count
                // as acknowledged.
                (None, Deletion::None) if !at_once(&known.record.lease) => {
                    return Err(format!("lease {id} was acknowledged and is lost"));
                }
                (None, _) => {}
                (Some(record), Deletion::Accepted) if record.lease.status != LeaseStatus::Deleting => {
                    return Err(format!("lease {id} was deleted and is {}", record.lease.status.name()));
                }
                (Some(record), deletion) => {
                    let deleted = record.lease.status == LeaseStatus::Deleting;
                    if deletion == Deletion::None && deleted && at_once(&record.lease) {
                        continue;
                    }
                    if deletion == Deletion::None && deleted {
                        return Err(format!("nobody has deleted lease {id}"));
                    }
                    if known.uncertain {
                        known.record = record.clone();
                    } else if deletion == Deletion::None && !same_terms(&known.record.lease, &record.lease) {
                        let (told, is) = (&known.record.lease, &record.lease);
                        return Err(format!("the owner was told {told:?}, but it is {is:?}"));
                    }
                }
            }
        }
        self.known.retain(|id, known| {
            leases.contains_key(id) || (known.deletion == Deletion::None && !at_once(&known.record.lease))
        });
        Ok(())
    }

    /// At the end of the simulation, deleted instances have no records.
    pub fn check_instances(&self, contents: &Snapshot) -> Verdict {
        let deleted = |id| self.instances.get(id) == Some(&true);
        match contents.instances.iter().find(|record| deleted(&record.instance.id)) {
            Some(record) => Err(format!("{:?} was deleted and is still there", record.instance)),
            None => Ok(()),
        }
    }

    /// Only a lease's own guests, and guests it consents to, run on its hosts, and no host is held for an
    /// unknown lease.
    pub fn check_machines(&mut self, contents: &Snapshot, fleet: &SimulatedFleet, now: Timestamp) -> Verdict {
        if let Some(violation) = fleet.violations().first() {
            return Err(violation.to_string());
        }
        for record in &contents.hosts {
            let host = record.host.id;
            let Some(seen) = fleet.look(host) else { continue };
            check_guests(contents, fleet, &seen)?;
            self.elsewhere.follow(fleet, (host, &seen), now);
            let Place::Held(holder) = seen.place else { continue };
            let holds = |record: &&LeaseRecord| record.lease.reservation(holder).is_some();
            let Some(record) = self.before.values().find(holds) else {
                if self.late_calls {
                    continue;
                }
                return Err(format!("host {host} is held for reservation {holder}, which nobody knows"));
            };
            self.backfill.check(contents, (host, &seen), &record.lease, now)?;
        }
        Ok(())
    }

    /// An ended lease leaves nothing behind, except on hosts that don't answer.
    fn check_ends(
        &self,
        leases: &BTreeMap<LeaseId, LeaseRecord>,
        contents: &Snapshot,
        fleet: &SimulatedFleet,
    ) -> Verdict {
        if self.late_calls {
            return Ok(());
        }
        let over = |id| leases.get(id).is_none_or(|record| record.lease.over());
        let ended = self.before.iter().filter(|(id, record)| !record.lease.over() && over(id));
        for (id, record) in ended {
            let own = |reservation: &ReservationId| record.lease.reservation(*reservation).is_some();
            for host in contents.hosts.iter().filter(|host| host.host.health == Health::Up) {
                let Some(seen) = fleet.look(host.host.id).filter(|seen| seen.health == Health::Up) else {
                    continue;
                };
                let held = matches!(seen.place, Place::Held(holder) if own(&holder));
                let inhabited = seen.guests.iter().any(|guest| guest.owner == GuestOwner::Lease(*id))
                    && record.lease.end_action.deletes()
                    && self.immediate;
                if held || inhabited || seen.slots.keys().any(own) {
                    return Err(format!("lease {id} has ended, but host {} is {seen:?}", host.host.id));
                }
            }
        }
        Ok(())
    }

    /// Status changes follow the allowed transitions, and a lease becomes ACTIVE only with all its hosts.
    fn check_course(
        &self,
        record: &LeaseRecord,
        contents: &Snapshot,
        fleet: &SimulatedFleet,
        now: Timestamp,
    ) -> Verdict {
        let Some(before) = self.before.get(&record.lease.id) else { return Ok(()) };
        let (from, to) = (before.lease.status, record.lease.status);
        if from == to {
            return Ok(());
        }
        let one_step = record.version == before.version.next();
        if one_step && !from.may_become(to) {
            return Err(format!("lease {} went from {} to {}", record.lease.id, from.name(), to.name()));
        }
        if to != LeaseStatus::Active || !one_step || record.lease.window.is_empty() {
            return Ok(());
        }
        if now + self.skew < record.lease.window.start() {
            return Err(format!("lease {} is active before its start", record.lease.id));
        }
        if record.lease.lease_type.deadline().is_some_and(|deadline| deadline + self.skew <= now) {
            return Err(format!("lease {} is active although it has timed out", record.lease.id));
        }
        for reservation in &record.lease.reservations {
            if let Allocation::Slots(slots) = &reservation.allocation {
                slots.keys().try_for_each(|host| self.check_way_made(contents, fleet, *host, now))?;
            }
            let Allocation::Hosts(hosts) = &reservation.allocation else { continue };
            for host in hosts {
                let place = fleet.look(*host).map(|seen| seen.place);
                let late = self.released.contains(&(*host, reservation.id));
                if place != Some(Place::Held(reservation.id)) && !late {
                    let id = record.lease.id;
                    return Err(format!("lease {id} is active, but its host {host} is {place:?}"));
                }
            }
        }
        Ok(())
    }

    /// Preemptible guests leave enough capacity on the host for the slots held there, if these fit at all.
    /// Guests started outside the service count only once they have been there long enough to have been
    /// noticed and removed.
    fn check_way_made(
        &self,
        contents: &Snapshot,
        fleet: &SimulatedFleet,
        host: HostId,
        now: Timestamp,
    ) -> Verdict {
        let Some(seen) = fleet.look(host) else { return Ok(()) };
        let Some(record) = contents.hosts.iter().find(|record| record.host.id == host) else { return Ok(()) };
        let mut used = Resources::default();
        let leases = contents.leases.iter().map(|record| &record.lease);
        for reservation in leases.flat_map(|lease| &lease.reservations) {
            let size = match &reservation.terms {
                ReservationTerms::Instances(terms) => terms.slots().size,
                ReservationTerms::Flavor(terms) => terms.slots().size,
                ReservationTerms::Hosts(_) | ReservationTerms::FloatingIps(_) => continue,
            };
            used.add(seen.slots.get(&reservation.id).copied().unwrap_or(0), &size);
        }
        let capacity = record.host.capacity();
        if !used.fits_into(&capacity) {
            return Ok(());
        }
        for guest in seen.guests.iter().filter(|guest| guest.owner == GuestOwner::Preemptible) {
            if fleet.is_instance(guest.id) || self.elsewhere.should_be_gone(guest.id, host, now) {
                used.add(1, &guest.size.resources());
            }
        }
        if used.fits_into(&capacity) {
            return Ok(());
        }
        Err(format!("preemptible guests are in the way on host {host}: {seen:?}"))
    }
}

/// Held hosts have the overcommit ratios that their running leases ask for, on fleets that support them.
pub(crate) fn check_ratios(contents: &Snapshot, fleet: &SimulatedFleet) -> Verdict {
    for lease in contents.leases.iter().map(|record| &record.lease) {
        for (reservation, terms) in lease_pools(lease) {
            for host in reservation.allocation.hosts() {
                let Some(seen) = fleet.look(host) else { continue };
                let held = seen.place == Place::Held(reservation.id) && seen.health == Health::Up;
                if held && seen.overcommit.is_some_and(|told| !told.is(terms.pool.ratios)) {
                    let wanted = terms.pool.ratios;
                    return Err(format!(
                        "lease {} wants {wanted:?} of host {host}, which is {seen:?}",
                        lease.id
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Every guest that runs for an instance has a record.
fn check_guests(contents: &Snapshot, fleet: &SimulatedFleet, seen: &ObservedHost) -> Verdict {
    let known = |id| contents.instances.iter().any(|record| record.instance.id == id);
    match seen.guests.iter().find(|guest| fleet.is_instance(guest.id) && !known(guest.id)) {
        Some(guest) => Err(format!("{guest:?} runs, and there is no such instance")),
        None => Ok(()),
    }
}

/// After faults have stopped and all windows have passed: every lease is over, and all machines are free.
pub(crate) fn check_calm(contents: &Snapshot, fleet: &SimulatedFleet) -> Verdict {
    for record in &contents.leases {
        let lease = &record.lease;
        if !lease.over() {
            return Err(format!("the time is over, but lease {} is not: {lease:?}", lease.id));
        }
    }
    let instances: BTreeMap<GuestId, &Instance> =
        contents.instances.iter().map(|record| (record.instance.id, &record.instance)).collect();
    for record in &contents.hosts {
        let Some(seen) = fleet.look(record.host.id) else { continue };
        check_guests(contents, fleet, &seen)?;
        // A host that is off, or on its way there or back, is fenced.
        let sleeps = !record.host.power.is_on() && matches!(seen.place, Place::Fenced { .. });
        let over_committed = seen.overcommit.is_some_and(|told| told != Overcommit::default());
        if (seen.place != Place::FreePool && !sleeps) || !seen.slots.is_empty() || over_committed {
            return Err(format!("host {} is not free at the end: {seen:?}", record.host.id));
        }
    }
    for instance in instances.values() {
        let runs =
            fleet.look(instance.host).is_some_and(|seen| seen.guests.iter().any(|g| g.id == instance.id));
        let expected = match instance.status {
            InstanceStatus::Active => runs,
            InstanceStatus::Error | InstanceStatus::Shelved => !runs,
            InstanceStatus::Building | InstanceStatus::Deleting => false,
            // No host is powered on for a queued instance.
            InstanceStatus::Queued => {
                if let Some(host) = contents.hosts.iter().find(|host| has_room(host, instance, fleet)) {
                    let id = host.host.id;
                    return Err(format!("in the end {instance:?} waits, and there is room on host {id}"));
                }
                true
            }
        };
        if !expected {
            return Err(format!("in the end there is {instance:?}; running: {runs}"));
        }
    }
    let somebodys = |kept: &GuestId| {
        instances.contains_key(kept) || instances.values().any(|instance| instance.resumes == Some(*kept))
    };
    if let Some(kept) = fleet.kept().into_iter().find(|kept| !somebodys(kept)) {
        return Err(format!("guest {kept} is kept for nobody"));
    }
    if let Some(left) = fleet.prepared().first() {
        return Err(format!("what was made for reservation {left} is still there"));
    }
    for ip in &contents.floating_ips {
        if let Some(holder) = fleet.holder_of(ip.floating_ip.id) {
            return Err(format!("floating IP {} is still of {holder}", ip.floating_ip.id));
        }
    }
    Ok(())
}

/// Whether the host is on and reservable, and has capacity for a guest of this size beside its current ones.
fn has_room(record: &HostRecord, instance: &Instance, fleet: &SimulatedFleet) -> bool {
    let seen = fleet.look(record.host.id).filter(|seen| seen.place == Place::FreePool);
    seen.filter(|_| record.host.power.is_on() && record.host.reservable).is_some_and(|seen| {
        let mut used = seen.used();
        used.add(1, &instance.size.resources());
        used.fits_into(&record.host.capacity())
    })
}

/// Whether the lease is immediate and hasn't started. If it can't start at once, it vanishes without a trace.
fn at_once(lease: &Lease) -> bool {
    matches!(lease.lease_type, LeaseType::Immediate { .. }) && lease.events.start != EventStatus::Done
}

/// Largest part of the reservation within one of the failure domains whose loss it must survive; 0 if it
/// needn't survive any.
fn largest_domain(reservation: &Reservation, hosts: &[HostRecord]) -> u64 {
    let domain = match &reservation.terms {
        ReservationTerms::Hosts(terms) => terms.properties.survives.as_ref(),
        ReservationTerms::Instances(terms) => terms.survives.as_ref(),
        ReservationTerms::Flavor(terms) => terms.survives.as_ref(),
        ReservationTerms::FloatingIps(_) => None,
    };
    let Some(domain) = domain else { return 0 };
    let place = |id: HostId| match domain.property() {
        None => id.to_string(),
        Some(property) => {
            let host = hosts.iter().find(|record| record.host.id == id);
            host.and_then(|record| record.host.capabilities.get(property)).cloned().unwrap_or_default()
        }
    };
    let on: Vec<(HostId, u64)> = match &reservation.allocation {
        Allocation::Hosts(hosts) => hosts.iter().map(|host| (*host, 1)).collect(),
        Allocation::Slots(slots) => slots.iter().map(|(host, count)| (*host, u64::from(*count))).collect(),
        Allocation::FloatingIps(_) => Vec::new(),
    };
    let mut in_each: BTreeMap<String, u64> = BTreeMap::new();
    for (host, count) in on {
        *in_each.entry(place(host)).or_insert(0) += count;
    }
    in_each.into_values().max().unwrap_or(0)
}

/// A lease has the amounts it was promised, or is marked as missing resources.
fn check_promise(lease: &Lease, hosts: &[HostRecord]) -> Verdict {
    if !lease.keeps_resources() {
        return Ok(());
    }
    for reservation in &lease.reservations {
        let has = reservation.allocation.amount();
        // Amount left whichever domain fails.
        let counts = has - largest_domain(reservation, hosts);
        let (least, most) = match &reservation.terms {
            ReservationTerms::Hosts(terms) => (u64::from(terms.min()), u64::from(terms.max())),
            terms => (terms.number().into(), terms.number().into()),
        };
        // Floating IPs don't fail, so none can be missing.
        let fails = !matches!(reservation.terms, ReservationTerms::FloatingIps(_));
        let enough = counts <= most && (counts >= least || (fails && missing(reservation)));
        if !enough {
            return Err(format!("lease {} has {has} for {reservation:?}", lease.id));
        }
    }
    Ok(())
}

fn missing(reservation: &Reservation) -> bool {
    reservation.missing_resources || reservation.status == ReservationStatus::Deleted
}
