//! Hosts for instances that are started through the service (CLS-08).

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

use super::Admission;
use super::backfill::is_used;
use super::room::RoomCluster;
use crate::hints::{GroupPolicy, Hint, InstanceHints};
use crate::host::{Health, Host};
use crate::ids::{HostId, ReservationId};
use crate::instance::Instance;
use crate::lease::{Allocation, Lease, Reservation};
use crate::lease_pool::LeasePool;
use crate::plan::{Guest, GuestOwner, GuestSize, Observed, ObservedHost, Place};
use crate::project::ProjectId;
use crate::resources::Resources;
use crate::terms::ReservationTerms;
use crate::window::later;
use crate::work::Stop;

/// What it costs to look at a host that was observed, or at a guest on it.
const OBSERVED: u64 = 50;

/// Where a host for an instance is looked for.
#[derive(Clone, Copy, Debug)]
pub enum Within<'a> {
    /// In a reservation of an active lease.
    Reservation(&'a Lease, &'a Reservation),
    /// On hosts of the free pool that nobody has reserved, now or later: an instance without a lease may run forever.
    FreePool(&'a ProjectId),
    /// On hosts of the free pool that nobody else has for longer than that: the instance is preempted for whoever has
    /// the host next. If there is no room on any, on hosts of leases that [let it](super::Backfill).
    Gap(&'a ProjectId, SignedDuration),
}

/// Why a host may not have an instance, however much room it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum Unfit {
    /// Nobody knows what is on it.
    #[error("it was not seen yet")]
    NotSeen,
    /// It does not work.
    #[error("it does not work")]
    NotWorking,
    /// It is off, or on its way there or back.
    #[error("it is not switched on")]
    Off,
    /// It is not reservable, or a filter keeps the project from it.
    #[error("the project may not have it")]
    Barred,
    /// It belongs to a lease, or is about to.
    #[error("a lease has it, or is about to")]
    NotFree,
    /// Somebody has it later, and the instance would stay.
    #[error("it is reserved")]
    Reserved,
    /// Somebody has it sooner than the instance could be gone after its least lifetime.
    #[error("a lease of it starts too soon")]
    TooSoon,
    /// It is none of the lease's.
    #[error("it is not the reservation's")]
    NotOfLease,
    /// All of the lease's slots there are in use.
    #[error("the reservation has no free slot there")]
    NoSlot,
    /// What is free of it is not enough.
    #[error("it has no room")]
    NoRoom,
    /// A hint is against it.
    #[error("the hint {0} is against it")]
    AgainstHint(Hint),
}

/// Why there is no host for an instance.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoHost {
    /// None of those that may have it has room.
    #[error(
        "No host has room for {} vCPUs, {} MiB of memory and {} GiB of disk; {considered} host(s) may have instances \
         of this kind", .size.vcpus, .size.memory_mib, .size.disk_gib
    )]
    NoRoom {
        /// What is needed.
        size: GuestSize,
        /// How many hosts may have it.
        considered: usize,
    },
    /// The hints leave none.
    #[error("No host is as the hint {hint} wants it")]
    AgainstHint {
        /// Which.
        hint: Hint,
    },
    /// It is not known: the decision ended early.
    #[error(transparent)]
    Stopped(#[from] Stop),
    /// All instances that the reservation is for are there.
    #[error("All {0} instances of the reservation are running")]
    AllThere(u64),
}

impl Admission<'_> {
    /// The host for one more instance of that size. The placement core chooses among those that have room beside what
    /// was `observed`, which has [guests to come](guests_to_come) as well. Hosts of a lease are over-committed as its
    /// [pool](crate::lease_pool) says, no others are. It is where the hints of its lease and its own allow it.
    pub fn host_for(
        &self,
        within: Within<'_>,
        size: GuestSize,
        hints: &InstanceHints,
        observed: &Observed,
    ) -> Result<HostId, NoHost> {
        let found = self.best_host_for(within, size, hints, observed);
        self.budget.stopped().map_or(found, |stop| Err(stop.into()))
    }

    fn best_host_for(
        &self,
        within: Within<'_>,
        size: GuestSize,
        hints: &InstanceHints,
        observed: &Observed,
    ) -> Result<HostId, NoHost> {
        self.charge_for(observed);
        let coming = coming(observed);
        let mut eligible: Vec<(&Host, Resources)> = self
            .inventory
            .hosts()
            .filter_map(|host| Some((host, observed.hosts.get(&host.id)?)))
            .filter(|(host, seen)| self.fits(within, host, Some(seen)).is_ok())
            .map(|(host, seen)| {
                let mut used = used_within(within, seen);
                if let Some(coming) = coming.get(&host.id) {
                    used.add(1, coming);
                }
                (host, used)
            })
            .collect();
        let considered = eligible.len();
        let pool = pool_of(within);
        if let Within::Reservation(_, reservation) = within
            && matches!(reservation.allocation, Allocation::Slots(_))
            && considered == 0
        {
            return Err(NoHost::AllThere(reservation.allocation.amount()));
        }
        let on: Vec<HostId> = eligible.iter().map(|(host, _)| host.id).collect();
        let choices = choices(within, hints, observed, on)?;
        let choices = match within {
            Within::Gap(..) => {
                eligible.retain(|(host, _)| choices.iter().any(|on| on.contains(&host.id)));
                eligible = self.longest_gaps(eligible, size);
                vec![eligible.iter().map(|(host, _)| host.id).collect()]
            }
            Within::Reservation(..) => without_backfill_first(choices, observed),
            Within::FreePool(_) => choices,
        };
        let host = |host: &Host| pool.map_or_else(|| host.clone(), |pool| pool.overcommitted(host));
        let hosts: Vec<(Host, &Resources)> = eligible.iter().map(|(own, used)| (host(own), used)).collect();
        let place = |on: &Vec<HostId>| {
            let mut cluster = RoomCluster::new(hosts.iter().map(|(host, used)| (host, *used)))?;
            cluster.place(&size.resources(), 1, on)
        };
        choices.iter().find_map(place).ok_or(NoHost::NoRoom { size, considered })
    }

    /// Which of these hosts may have an instance, for each until when if that is bounded by a lease that is known, or
    /// why not: what [`Self::host_for`] chooses from. Without a size it is not asked whether they have room.
    pub fn filter<'h>(
        &self,
        within: Within<'_>,
        size: Option<GuestSize>,
        hints: &InstanceHints,
        (hosts, observed): (impl Iterator<Item = &'h Host>, &Observed),
    ) -> Vec<(&'h Host, Result<Option<Timestamp>, Unfit>)> {
        self.charge_for(observed);
        let coming = if size.is_some() { coming(observed) } else { BTreeMap::new() };
        let pool = pool_of(within);
        let has_room = |host: &Host, seen: &ObservedHost| {
            let Some(size) = size else { return true };
            let mut used = used_within(within, seen);
            if let Some(coming) = coming.get(&host.id) {
                used.add(1, coming);
            }
            let capacity = pool.map_or_else(|| host.capacity(), |pool| pool.overcommitted(host).capacity());
            capacity.slots(&used, &size.resources()) > 0
        };
        let verdict = |host: &'h Host| {
            let seen = observed.hosts.get(&host.id);
            let fits = self.fits(within, host, seen);
            let room = |_: &_| seen.is_none_or(|seen| has_room(host, seen));
            (host, fits.and_then(|until| Some(until).filter(room).ok_or(Unfit::NoRoom)))
        };
        let mut verdicts: Vec<_> = hosts.map(verdict).collect();
        let on = verdicts.iter().filter(|(_, fits)| fits.is_ok()).map(|(host, _)| host.id).collect();
        let (allowed, hint): (BTreeSet<HostId>, Hint) = match choices(within, hints, observed, on) {
            Ok(choices) => (choices.into_iter().flatten().collect(), Hint::Group),
            Err(NoHost::AgainstHint { hint }) => (BTreeSet::new(), hint),
            Err(_) => return verdicts,
        };
        for (host, fits) in
            verdicts.iter_mut().filter(|(host, fits)| fits.is_ok() && !allowed.contains(&host.id))
        {
            let against = if hints.allow(host.id) { hint } else { named(hints) };
            *fits = Err(Unfit::AgainstHint(against));
        }
        verdicts
    }

    /// Charges a look at all that was observed.
    fn charge_for(&self, observed: &Observed) {
        let guests: usize = observed.hosts.values().map(|seen| seen.guests.len()).sum();
        self.budget.charge(OBSERVED * (observed.hosts.len() + guests) as u64);
    }

    /// From when on somebody has the host, or some of it, beside the lease that lets preemptible instances on it, if
    /// there is one; never if that is not known yet. What runs there until then is in nobody's way. What has begun
    /// already counts from when it began.
    fn undisturbed_until(&self, host: HostId) -> Option<Timestamp> {
        let holder = self.backfill.and_then(|backfill| backfill.holder(host));
        let others = self.calendar.bookings(host).filter(|(_, booking)| Some(booking.lease) != holder);
        // They are in the order of their starts.
        let first = others.into_iter().find(|(window, _)| window.end() > self.now);
        first.map(|(window, _)| window.start())
    }

    /// Of hosts with room for it, those that nobody else has for longest. Hosts of leases come last: their holders may
    /// want them at any time.
    fn longest_gaps<'h>(
        &self,
        on: Vec<(&'h Host, Resources)>,
        size: GuestSize,
    ) -> Vec<(&'h Host, Resources)> {
        let has_room = |(host, used): &(&Host, Resources)| host.capacity().slots(used, &size.resources()) > 0;
        let gap = |host: &Host| {
            let held = self.backfill.is_some_and(|backfill| backfill.holder(host.id).is_some());
            (!held, self.undisturbed_until(host.id).unwrap_or(Timestamp::MAX))
        };
        let with_room: Vec<_> = on.into_iter().filter(has_room).collect();
        let longest = with_room.iter().map(|(host, _)| gap(host)).max();
        with_room.into_iter().filter(|(host, _)| Some(gap(host)) == longest).collect()
    }

    /// Whether the host may have such an instance, as far as that is no question of room; and until when it may stay
    /// there, if that is bounded by a lease that is known. On a host of a lease a preemptible one may be asked to leave
    /// at once.
    pub fn fits(
        &self,
        within: Within<'_>,
        host: &Host,
        seen: Option<&ObservedHost>,
    ) -> Result<Option<Timestamp>, Unfit> {
        let seen = seen.ok_or(Unfit::NotSeen)?;
        let unless = |wrong: bool, why: Unfit| if wrong { Err(why) } else { Ok(()) };
        unless(seen.health != Health::Up, Unfit::NotWorking)?;
        match within {
            Within::Reservation(lease, reservation) => {
                match &reservation.allocation {
                    Allocation::Hosts(hosts) => {
                        let own = hosts.contains(&host.id) && seen.place == Place::Held(reservation.id);
                        unless(!own, Unfit::NotOfLease)?;
                    }
                    Allocation::Slots(slots) => {
                        unless(!slots.contains_key(&host.id), Unfit::NotOfLease)?;
                        unless(!slot_is_free(lease, reservation.id, seen), Unfit::NoSlot)?;
                    }
                    Allocation::FloatingIps(_) => return Err(Unfit::NotOfLease),
                }
                Ok(Some(lease.window.end()))
            }
            Within::FreePool(project) => {
                self.open_to(project, host, (seen, Place::FreePool))?;
                unless(self.booked(host.id, None), Unfit::Reserved)?;
                Ok(None)
            }
            Within::Gap(project, least) => {
                let backfills = self.backfill.is_some_and(|backfill| backfill.is_open(host.id, seen));
                let place = if backfills { seen.place } else { Place::FreePool };
                self.open_to(project, host, (seen, place))?;
                let until = self.undisturbed_until(host.id);
                // One that were asked to leave this moment would be started over and over again.
                unless(until.is_some_and(|until| until <= later(self.now, least)), Unfit::TooSoon)?;
                Ok(if backfills { Some(self.now) } else { until })
            }
        }
    }

    /// Whether the host is in that place, on, and the project may have it.
    fn open_to(
        &self,
        project: &ProjectId,
        host: &Host,
        (seen, place): (&ObservedHost, Place),
    ) -> Result<(), Unfit> {
        if !host.power.is_on() {
            Err(Unfit::Off)
        } else if seen.place != place {
            Err(Unfit::NotFree)
        } else if self.asked_by(project).barred(host, self.now).is_some() {
            Err(Unfit::Barred)
        } else {
            Ok(())
        }
    }
}

/// How far hosts of the lease are over-committed, if it has whole hosts.
fn pool_of(within: Within<'_>) -> Option<&LeasePool> {
    match within {
        Within::Reservation(_, Reservation { terms: ReservationTerms::Hosts(terms), .. }) => {
            Some(&terms.pool)
        }
        _ => None,
    }
}

/// What guests use of the host that are not to be preempted for such an instance: who uses its own host has all of it.
fn used_within(within: Within<'_>, seen: &ObservedHost) -> Resources {
    match (within, seen.place) {
        (Within::Reservation(..), Place::Held(_)) => {
            seen.used_by(|guest| guest.owner != GuestOwner::Preemptible)
        }
        _ => seen.used(),
    }
}

/// Of each choice first the hosts where nobody is preempted.
fn without_backfill_first(choices: Vec<Vec<HostId>>, observed: &Observed) -> Vec<Vec<HostId>> {
    let backfilled = |host: &HostId| {
        let preemptible = |guest: &Guest| guest.owner == GuestOwner::Preemptible;
        observed.hosts.get(host).is_some_and(|seen| seen.guests.iter().any(preemptible))
    };
    let mut ordered = Vec::new();
    for on in choices {
        let without: Vec<HostId> = on.iter().copied().filter(|host| !backfilled(host)).collect();
        if !without.is_empty() && without.len() < on.len() {
            ordered.push(without);
        }
        ordered.push(on);
    }
    ordered
}

/// The hint that a host is against that they do not allow.
fn named(hints: &InstanceHints) -> Hint {
    if hints.on.is_some() { Hint::SameHost } else { Hint::DifferentHost }
}

/// Sets of hosts that the hints allow, the best first: one is tried if there is no room on those before it.
fn choices(
    within: Within<'_>,
    hints: &InstanceHints,
    observed: &Observed,
    mut on: Vec<HostId>,
) -> Result<Vec<Vec<HostId>>, NoHost> {
    let refused = |hint| Err(NoHost::AgainstHint { hint });
    if on.is_empty() {
        return Ok(Vec::new());
    }
    on.retain(|host| hints.allow(*host));
    if on.is_empty() {
        return refused(named(hints));
    }
    let group = match within {
        Within::Reservation(lease, _) => lease.hints.group.map(|policy| (lease, policy)),
        Within::FreePool(_) | Within::Gap(..) => None,
    };
    let Some((lease, policy)) = group else { return Ok(vec![on]) };
    let (with, without): (Vec<_>, Vec<_>) =
        on.iter().partition(|host| observed.hosts.get(host).is_some_and(|seen| is_used(lease.id, seen)));
    let anywhere = observed.hosts.values().any(|seen| is_used(lease.id, seen));
    let wanted = match policy {
        // The first one goes anywhere.
        GroupPolicy::Affinity | GroupPolicy::SoftAffinity if !anywhere => return Ok(vec![on]),
        policy if policy.together() => with,
        _ => without,
    };
    match (wanted.is_empty(), policy.soft()) {
        (true, false) => refused(Hint::Group),
        (true, true) => Ok(vec![on]),
        (false, false) => Ok(vec![wanted]),
        (false, true) => Ok(vec![wanted, on]),
    }
}

/// What guests that are moving use of the hosts that they are moving to.
fn coming(observed: &Observed) -> BTreeMap<HostId, Resources> {
    let mut coming: BTreeMap<HostId, Resources> = BTreeMap::new();
    for (id, host) in &observed.hosts {
        for guest in &host.guests {
            if let Some(to) = guest.moving_to.filter(|to| to != id) {
                coming.entry(to).or_default().add(1, &guest.size.resources());
            }
        }
    }
    coming
}

/// Whether the lease has fewer guests there than slots, and the reservation has any.
fn slot_is_free(lease: &Lease, reservation: ReservationId, seen: &ObservedHost) -> bool {
    let own = |id: &ReservationId| lease.reservation(*id).is_some();
    let slots: u32 = seen.slots.iter().filter(|(id, _)| own(id)).map(|(_, count)| *count).sum();
    let guests = seen.guests.iter().filter(|guest| guest.owner == GuestOwner::Lease(lease.id)).count();
    seen.slots.get(&reservation).is_some_and(|count| *count > 0) && guests < slots as usize
}

/// The size of all instances of a reservation; none if it leaves that to who starts them.
pub fn size_of_instances(terms: &ReservationTerms) -> Option<GuestSize> {
    let size = match terms {
        ReservationTerms::Instances(terms) => terms.slots().size,
        ReservationTerms::Flavor(terms) => terms.slots().size,
        ReservationTerms::Hosts(_) | ReservationTerms::FloatingIps(_) => return None,
    };
    let number = |amount: u64| u32::try_from(amount).unwrap_or(u32::MAX);
    Some(GuestSize {
        vcpus: number(size.vcpus),
        memory_mib: number(size.memory_mib),
        disk_gib: number(size.disk_gib),
    })
}

/// What was observed, with a guest for each instance that is expected on its host and was not seen anywhere: it is
/// about to be there; and with those moving that are about to be moved.
pub fn guests_to_come<'a>(observed: &mut Observed, instances: impl Iterator<Item = &'a Instance>) {
    let mut expected: BTreeMap<_, _> =
        instances.filter(|instance| instance.needs_place()).map(|instance| (instance.id, instance)).collect();
    for guest in observed.hosts.values_mut().flat_map(|host| &mut host.guests) {
        if let Some(instance) = expected.remove(&guest.id) {
            guest.moving_to = guest.moving_to.or(instance.moves_to());
        }
    }
    for instance in expected.into_values() {
        if let Some(host) = observed.hosts.get_mut(&instance.host) {
            host.guests.push(Guest {
                project: Some(instance.owner.project.clone()),
                size: instance.size,
                ..Guest::new(instance.id, instance.kind.guest_owner())
            });
        }
    }
}
