//! Hosts for instances that are started through the service (spec CLS-08).

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

use super::Admission;
use super::room::RoomCluster;
use crate::hints::{GroupPolicy, Hint, InstanceHints};
use crate::host::{Health, Host};
use crate::ids::{HostId, ReservationId};
use crate::instance::Instance;
use crate::lease::{Allocation, Lease, Reservation};
use crate::plan::{Guest, GuestOwner, GuestSize, Observed, ObservedHost, Place};
use crate::project::ProjectId;
use crate::resources::Resources;
use crate::terms::ReservationTerms;
use crate::window::later;

/// Where a host for an instance is looked for.
#[derive(Clone, Copy, Debug)]
pub enum Within<'a> {
    /// In a reservation of an active lease.
    Reservation(&'a Lease, &'a Reservation),
    /// On hosts of the free pool that nobody has reserved, now or later: an instance without a lease may run for ever.
    FreePool(&'a ProjectId),
    /// On hosts of the free pool that nobody else has for at least so long: the instance makes way for whoever has the
    /// host next.
    Gap(&'a ProjectId, SignedDuration),
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
        let coming = coming(observed);
        let eligible: Vec<(&Host, Resources)> = self
            .inventory
            .hosts()
            .filter_map(|host| Some((host, observed.hosts.get(&host.id)?)))
            .filter(|(host, seen)| seen.health == Health::Up && self.eligible(within, host, seen))
            .map(|(host, seen)| {
                let mut used = seen.used();
                if let Some(coming) = coming.get(&host.id) {
                    used.add(1, coming);
                }
                (host, used)
            })
            .collect();
        let considered = eligible.len();
        let eligible = match within {
            Within::Gap(..) => self.longest_gaps(eligible, size),
            _ => eligible,
        };
        if let Within::Reservation(_, reservation) = within
            && matches!(reservation.allocation, Allocation::Slots(_))
            && considered == 0
        {
            return Err(NoHost::AllThere(reservation.allocation.amount()));
        }
        let on: Vec<HostId> = eligible.iter().map(|(host, _)| host.id).collect();
        let choices = choices(within, hints, observed, on)?;
        let pool = match within {
            Within::Reservation(_, Reservation { terms: ReservationTerms::Hosts(terms), .. }) => {
                Some(&terms.pool)
            }
            _ => None,
        };
        let host = |host: &Host| pool.map_or_else(|| host.clone(), |pool| pool.overcommitted(host));
        let hosts: Vec<(Host, &Resources)> = eligible.iter().map(|(own, used)| (host(own), used)).collect();
        let place = |on: &Vec<HostId>| {
            let mut cluster = RoomCluster::new(hosts.iter().map(|(host, used)| (host, *used)))?;
            cluster.place(&size.resources(), 1, on)
        };
        choices.iter().find_map(place).ok_or(NoHost::NoRoom { size, considered })
    }

    /// From when on somebody else has the host, or some of it; never if that is not known yet. What runs there until then
    /// is in nobody's way.
    pub fn undisturbed_until(&self, host: HostId) -> Option<Timestamp> {
        let bookings = self.calendar.bookings(host).filter(|(window, _)| window.end() > self.now);
        bookings.map(|(window, _)| window.start().max(self.now)).min()
    }

    /// Of hosts with room for it, those that nobody else has for longest.
    fn longest_gaps<'h>(
        &self,
        on: Vec<(&'h Host, Resources)>,
        size: GuestSize,
    ) -> Vec<(&'h Host, Resources)> {
        let has_room = |(host, used): &(&Host, Resources)| host.capacity().slots(used, &size.resources()) > 0;
        let until = |host: &Host| self.undisturbed_until(host.id).unwrap_or(Timestamp::MAX);
        let with_room: Vec<_> = on.into_iter().filter(has_room).collect();
        let longest = with_room.iter().map(|(host, _)| until(host)).max();
        with_room.into_iter().filter(|(host, _)| Some(until(host)) == longest).collect()
    }

    fn eligible(&self, within: Within<'_>, host: &Host, seen: &ObservedHost) -> bool {
        match within {
            Within::Reservation(lease, reservation) => match &reservation.allocation {
                Allocation::Hosts(hosts) => {
                    hosts.contains(&host.id) && seen.place == Place::Held(reservation.id)
                }
                Allocation::Slots(_) => slot_is_free(lease, reservation.id, seen),
                Allocation::FloatingIps(_) => false,
            },
            Within::FreePool(project) => self.open_to(project, host, seen) && !self.booked(host.id, None),
            Within::Gap(project, least) => {
                let from_then_on = later(self.now, least);
                self.open_to(project, host, seen)
                    && self.undisturbed_until(host.id).is_none_or(|until| until >= from_then_on)
            }
        }
    }

    /// Whether the host is in the free pool, on, and the project may have it.
    fn open_to(&self, project: &ProjectId, host: &Host, seen: &ObservedHost) -> bool {
        seen.place == Place::FreePool && host.power.is_on() && self.asked_by(project).barred(host).is_none()
    }
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
        let named = if hints.on.is_some() { Hint::SameHost } else { Hint::DifferentHost };
        return refused(named);
    }
    let group = match within {
        Within::Reservation(lease, _) => lease.hints.group.map(|policy| (lease, policy)),
        Within::FreePool(_) | Within::Gap(..) => None,
    };
    let Some((lease, policy)) = group else { return Ok(vec![on]) };
    let (with, without): (Vec<_>, Vec<_>) =
        on.iter().partition(|host| observed.hosts.get(host).is_some_and(|seen| has_guest_of(lease, seen)));
    let anywhere = observed.hosts.values().any(|seen| has_guest_of(lease, seen));
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

/// Whether a guest of the lease is there, or about to be.
fn has_guest_of(lease: &Lease, seen: &ObservedHost) -> bool {
    seen.guests.iter().any(|guest| guest.owner == GuestOwner::Lease(lease.id))
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
/// about to be there.
pub fn guests_to_come<'a>(observed: &mut Observed, instances: impl Iterator<Item = &'a Instance>) {
    let mut expected: BTreeMap<_, _> =
        instances.filter(|instance| instance.needs_place()).map(|instance| (instance.id, instance)).collect();
    for guest in observed.hosts.values().flat_map(|host| &host.guests) {
        expected.remove(&guest.id);
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
