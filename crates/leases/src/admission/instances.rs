//! Hosts for instances that are started through the service (CLS-08).

use std::borrow::Cow;
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

/// Cost of a look at an observed host or a guest on it.
const OBSERVED: u64 = 50;

/// Hosts that an instance can use.
#[derive(Clone, Copy, Debug)]
pub enum Within<'a> {
    /// Hosts of a reservation in an active lease.
    Reservation(&'a Lease, &'a Reservation),
    /// Hosts of the free pool without bookings, now or later: an instance outside of leases can run forever.
    FreePool(&'a ProjectId),
    /// Hosts of the free pool that aren't booked within this duration from now: the instance is preempted for
    /// the next lease of its host. If all of these are full, hosts of leases that [allow
    /// backfill](super::Backfill).
    Gap(&'a ProjectId, SignedDuration),
}

/// The reason why a host can't take an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum Unfit {
    #[error("it was not seen yet")]
    NotSeen,
    #[error("it does not work")]
    NotWorking,
    /// The host is off, or being switched on or off.
    #[error("it is not switched on")]
    Off,
    /// The host is not reservable, or a filter excludes the project.
    #[error("the project may not have it")]
    Barred,
    #[error("a lease has it, or is about to")]
    NotFree,
    /// The host is booked later, and the instance would stay.
    #[error("it is reserved")]
    Reserved,
    /// A lease starts on the host before the instance could reach its minimum lifetime.
    #[error("a lease of it starts too soon")]
    TooSoon,
    #[error("it is not the reservation's")]
    NotOfLease,
    #[error("the reservation has no free slot there")]
    NoSlot,
    #[error("it has no room")]
    NoRoom,
    #[error("the hint {0} is against it")]
    AgainstHint(Hint),
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoHost {
    /// Hosts match, but all of them are full.
    #[error(
        "No host has room for {} vCPUs, {} MiB of memory and {} GiB of disk; {considered} host(s) may have instances \
         of this kind", .size.vcpus, .size.memory_mib, .size.disk_gib
    )]
    NoRoom {
        size: GuestSize,
        /// Number of hosts that match, with or without room.
        considered: usize,
    },
    #[error("No host is as the hint {hint} wants it")]
    AgainstHint { hint: Hint },
    /// Unknown, because the decision ended early.
    #[error(transparent)]
    Stopped(#[from] Stop),
    #[error("All {0} instances of the reservation are running")]
    AllThere(u64),
}

impl Admission<'_> {
    /// The host for one more instance of this size.
    ///
    /// The placement core chooses among the hosts with room beside the `observed` guests, which include
    /// [guests to come](guests_to_come). Only hosts of a lease are overcommitted, by the ratios of its
    /// [pool](crate::lease_pool). The hints of the instance and of its lease apply.
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
                let allowed: BTreeSet<HostId> = choices.iter().flatten().copied().collect();
                eligible.retain(|(host, _)| allowed.contains(&host.id));
                eligible = self.longest_gaps(eligible, size);
                vec![eligible.iter().map(|(host, _)| host.id).collect()]
            }
            Within::Reservation(..) => without_backfill_first(choices, observed),
            Within::FreePool(_) => choices,
        };
        let hosts: Vec<(Cow<'_, Host>, &Resources)> = eligible
            .iter()
            .map(|(host, used)| {
                let host: &Host = host;
                (pool.map_or(Cow::Borrowed(host), |pool| Cow::Owned(pool.overcommitted(host))), used)
            })
            .collect();
        let place = |on: &Vec<HostId>| {
            let mut cluster = RoomCluster::new(hosts.iter().map(|(host, used)| (&**host, *used)))?;
            cluster.place(&size.resources(), 1, on)
        };
        choices.iter().find_map(place).ok_or(NoHost::NoRoom { size, considered })
    }

    /// For each of these hosts, whether [`Self::host_for`] could choose it. `Ok` contains the end of the
    /// possible stay if a known lease limits it, and `Err` the reason against the host. Without a size, room
    /// isn't checked.
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

    fn charge_for(&self, observed: &Observed) {
        let guests: usize = observed.hosts.values().map(|seen| seen.guests.len()).sum();
        self.budget.charge(OBSERVED * (observed.hosts.len() + guests) as u64);
    }

    /// Start of the first booking of the host that isn't over, which lies in the past if the booking has
    /// begun. Bookings of the lease that allows backfill on the host don't count. An instance there obstructs
    /// no lease until then. `None` if there is no such booking yet.
    fn undisturbed_until(&self, host: HostId) -> Option<Timestamp> {
        let holder = self.backfill.and_then(|backfill| backfill.holder(host));
        let others = self.calendar.bookings(host).filter(|(_, booking)| Some(booking.lease) != holder);
        // Bookings are in order of their starts.
        let first = others.into_iter().find(|(window, _)| window.end() > self.now);
        first.map(|(window, _)| window.start())
    }

    /// The hosts with room that stay unbooked for longest. Hosts of leases come last, because their holders
    /// can claim them at any time.
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

    /// Whether the host can take such an instance, apart from room. `Ok` contains the end of the possible
    /// stay if a known lease limits it. A preemptible instance on a host of a lease can be asked to leave at
    /// once.
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
                // An instance that had to leave right away would be started over and over.
                unless(until.is_some_and(|until| until <= later(self.now, least)), Unfit::TooSoon)?;
                Ok(if backfills { Some(self.now) } else { until })
            }
        }
    }

    /// Whether the host is in that place, on, and available to the project.
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

/// The pool with the overcommit ratios, for a reservation of whole hosts.
fn pool_of(within: Within<'_>) -> Option<&LeasePool> {
    match within {
        Within::Reservation(_, Reservation { terms: ReservationTerms::Hosts(terms), .. }) => {
            Some(&terms.pool)
        }
        _ => None,
    }
}

/// Resources used on the host. Guests that are preempted for the instance don't count: a lease can use all of
/// its own host.
fn used_within(within: Within<'_>, seen: &ObservedHost) -> Resources {
    match (within, seen.place) {
        (Within::Reservation(..), Place::Held(_)) => {
            seen.used_by(|guest| guest.owner != GuestOwner::Preemptible)
        }
        _ => seen.used(),
    }
}

/// Puts, before each choice, its hosts without preemptible guests.
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

/// The instance hint that excludes a host.
fn named(hints: &InstanceHints) -> Hint {
    if hints.on.is_some() { Hint::SameHost } else { Hint::DifferentHost }
}

/// Sets of hosts that the hints allow, best first. A set is tried if the ones before it have no room.
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
        // The first instance goes anywhere.
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

/// Resources that moving guests will use on their destinations.
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

/// Whether the reservation has slots there, and the lease has fewer guests than slots there.
fn slot_is_free(lease: &Lease, reservation: ReservationId, seen: &ObservedHost) -> bool {
    let own = |id: &ReservationId| lease.reservation(*id).is_some();
    let slots: u32 = seen.slots.iter().filter(|(id, _)| own(id)).map(|(_, count)| *count).sum();
    let guests = seen.guests.iter().filter(|guest| guest.owner == GuestOwner::Lease(lease.id)).count();
    seen.slots.get(&reservation).is_some_and(|count| *count > 0) && guests < slots as usize
}

/// The size of all instances of a reservation. `None` for hosts and addresses: instances on whole hosts have
/// any size.
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

/// Adds guests for instances that are expected on a host but were not seen anywhere yet, and marks guests
/// that are about to move.
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
