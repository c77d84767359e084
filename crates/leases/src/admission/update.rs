//! Changing a lease (spec §1.10): what may change in which state, and what it is then given.
//!
//! Either all of the change can be had or nothing happens: the result is the new lease, to be committed as a
//! whole. A started lease never loses a host or a slot.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::num::NonZeroU32;

use jiff::Timestamp;

use super::{Admission, Refusal, Resource, Search};
use crate::host::NetworkId;
use crate::ids::{FloatingIpId, HostId, ReservationId};
use crate::lease::{Allocation, Lease, Reservation, before_end_at};
use crate::requirement::Requirement;
use crate::status::{EventStatus, LeaseStatus};
use crate::terms::{
    Affinity, BeforeEndAction, FloatingIpsTerms, HostsTerms, InstanceSize, InstancesTerms, ReservationTerms,
    SlotsTerms, check_before_end,
};
use crate::window::Window;

/// What to change; what is absent stays. Nothing else of a lease can be changed: not its owner, not its
/// identifiers, not its status (spec W8).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Changes {
    /// A new name.
    pub name: Option<String>,
    /// A new start.
    pub start: Option<Timestamp>,
    /// A new end.
    pub end: Option<Timestamp>,
    /// When the before-end action is to be due.
    pub before_end: Option<Timestamp>,
    /// New terms of reservations.
    pub reservations: Vec<(ReservationId, TermsChange)>,
}

/// New terms of a reservation; what is absent stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TermsChange {
    /// Nothing: a reservation may be named without a change.
    None,
    /// Of whole hosts.
    Hosts(HostsChange),
    /// Of room for instances.
    Instances(InstancesChange),
    /// Of room for instances of a flavor: refused (spec §1.10).
    Flavor,
    /// Of addresses.
    FloatingIps(FloatingIpsChange),
}

/// New terms of a reservation of whole hosts.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct HostsChange {
    /// At least so many.
    pub min: Option<u32>,
    /// At most so many.
    pub max: Option<u32>,
    /// `hypervisor_properties`.
    pub hypervisor: Option<Requirement>,
    /// `resource_properties`.
    pub resource: Option<Requirement>,
    /// What to do shortly before the end.
    pub before_end: Option<BeforeEndAction>,
}

/// New terms of a reservation of room for instances.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct InstancesChange {
    /// Another size.
    pub size: Option<InstanceSize>,
    /// Another number.
    pub amount: Option<NonZeroU32>,
    /// Another relation to each other.
    pub affinity: Option<Affinity>,
    /// `resource_properties`.
    pub requirement: Option<Requirement>,
}

/// New terms of a reservation of addresses.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct FloatingIpsChange {
    /// Refused, unless it is the same.
    pub network: Option<NetworkId>,
    /// Another number.
    pub amount: Option<u32>,
    /// Refused, unless it is the same, or none.
    pub required: Option<BTreeSet<IpAddr>>,
}

/// A change that can be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Updated {
    /// The lease as it is to be committed.
    pub lease: Lease,
    /// The before-end action had been done and is due anew, which listeners are told.
    pub before_end_rearmed: bool,
}

impl Admission<'_> {
    /// What a lease would become.
    pub fn update(&self, lease: &Lease, changes: &Changes) -> Result<Updated, Refusal> {
        let mut updated = lease.clone();
        if let Some(name) = &changes.name {
            updated.name.clone_from(name);
        }
        let only_renamed = Changes { name: None, ..changes.clone() } == Changes::default();
        if only_renamed {
            return match lease.status {
                LeaseStatus::Deleting => Err(Refusal::Busy),
                _ => Ok(Updated { lease: updated, before_end_rearmed: false }),
            };
        }
        updated.window = self.new_window(lease, changes)?;
        let before_end_rearmed = self.move_before_end(&mut updated, lease, changes)?;
        check_reservations(lease, changes)?;
        let enforcement = &self.rules.enforcement;
        enforcement.check_update(&lease.owner.project, &lease.window, &updated.window, self.now)?;
        self.reallocate(&mut updated, lease, changes)?;
        for reservation in &mut updated.reservations {
            reservation.resources_changed = false;
        }
        Ok(Updated { lease: updated, before_end_rearmed })
    }

    /// The new window. Checks are made in Blazar's order, so that the same one complains.
    fn new_window(&self, lease: &Lease, changes: &Changes) -> Result<Window, Refusal> {
        let start = changes.start.unwrap_or(lease.window.start());
        let end = changes.end.unwrap_or(lease.window.end());
        // Blazar looks at dates alone, so in the first minute an active lease can be moved away (W11), and in
        // its last minute a terminated one extended (W12).
        let started = lease.status != LeaseStatus::Pending || lease.window.start() < self.now;
        let over = lease.over() || matches!(lease.status, LeaseStatus::Terminated | LeaseStatus::Error);
        if over || lease.window.end() < self.now {
            return Err(if changes.start.is_some_and(|new| new != lease.window.start()) {
                Refusal::Started
            } else {
                Refusal::Over
            });
        }
        match lease.status {
            LeaseStatus::Pending | LeaseStatus::Starting | LeaseStatus::Active => {}
            _ => return Err(Refusal::Busy),
        }
        if start != lease.window.start() {
            if started {
                return Err(Refusal::Started);
            }
            if start < self.now {
                return Err(Refusal::StartInPast);
            }
        }
        if end < self.now {
            return Err(Refusal::EndInPast);
        }
        Window::new(start, end).map_err(|_| Refusal::EndInPast)
    }

    /// Moves the before-end action with the end, or to where it is wanted. Says whether one that was done is
    /// armed again.
    fn move_before_end(
        &self,
        updated: &mut Lease,
        lease: &Lease,
        changes: &Changes,
    ) -> Result<bool, Refusal> {
        check_before_end(&updated.window, changes.before_end)?;
        let distance = lease.before_end.map(|at| lease.window.end().duration_since(at));
        let kept = distance.map(|distance| before_end_at(&updated.window, distance));
        updated.before_end = changes.before_end.or(kept);
        let moved = updated.before_end != lease.before_end;
        // What is due in the past would be done at once, and a second time.
        let ahead = updated.before_end.is_some_and(|at| at > self.now);
        let rearmed = moved && ahead && lease.events.before_end != EventStatus::Undone;
        if rearmed {
            updated.events.before_end = EventStatus::Undone;
        }
        Ok(rearmed && lease.events.before_end == EventStatus::Done)
    }

    /// Gives the reservations what they need under the new terms.
    fn reallocate(&self, updated: &mut Lease, lease: &Lease, changes: &Changes) -> Result<(), Refusal> {
        // A window that was cut to nothing needs nothing any more; the lease keeps what it has until it ends.
        let nothing_left = updated.window.since(self.now).is_empty();
        let started = lease.status != LeaseStatus::Pending;
        let longer = !lease.window.covers(&updated.window);
        let mut search = Search::new(*self, updated.window, Some(lease.id));
        for (position, reservation) in updated.reservations.iter_mut().enumerate() {
            let change = changes.reservations.iter().find(|(id, _)| *id == reservation.id);
            let old = reservation.terms.clone();
            if let Some((_, change)) = change {
                apply(reservation, change, started)?;
            }
            let changed = reservation.terms != old;
            if !nothing_left && (changed || longer || !started) {
                let case = Case { position, started, changed };
                match search.reallocate(reservation, case) {
                    // Less is asked for than was granted. If a host has failed since, healing sees to it.
                    Err(Refusal::NotEnough { .. }) if !changed && !longer => {}
                    result => result?,
                }
            }
            search.take(&reservation.terms, &reservation.allocation);
        }
        Ok(())
    }
}

/// Every reservation must be one of the lease's, and every change of its type.
fn check_reservations(lease: &Lease, changes: &Changes) -> Result<(), Refusal> {
    let unknown: Vec<ReservationId> = changes
        .reservations
        .iter()
        .map(|(id, _)| *id)
        .filter(|id| lease.reservation(*id).is_none())
        .collect();
    if !unknown.is_empty() {
        return Err(Refusal::UnknownReservations(unknown));
    }
    for (id, change) in &changes.reservations {
        let Some(reservation) = lease.reservation(*id) else { continue };
        let same_type = matches!(
            (&reservation.terms, change),
            (_, TermsChange::None)
                | (ReservationTerms::Hosts(_), TermsChange::Hosts(_))
                | (ReservationTerms::Instances(_), TermsChange::Instances(_))
                | (ReservationTerms::Flavor(_), TermsChange::Flavor)
                | (ReservationTerms::FloatingIps(_), TermsChange::FloatingIps(_))
        );
        if !same_type {
            return Err(Refusal::ResourceType(*id));
        }
    }
    Ok(())
}

/// Writes new terms into a reservation, as far as its type and state allow.
fn apply(reservation: &mut Reservation, change: &TermsChange, started: bool) -> Result<(), Refusal> {
    let id = reservation.id;
    match (&mut reservation.terms, change) {
        (ReservationTerms::Hosts(terms), TermsChange::Hosts(change)) => change_hosts(terms, change)?,
        (ReservationTerms::Instances(terms), TermsChange::Instances(change)) => {
            change_instances(terms, change, started, id)?;
        }
        (ReservationTerms::FloatingIps(terms), TermsChange::FloatingIps(change)) => {
            change_floating_ips(terms, change, started, id)?;
        }
        (_, TermsChange::Flavor) => return Err(Refusal::FlavorIsFixed(id)),
        // Types were compared before.
        (_, _) => {}
    }
    Ok(())
}

fn change_hosts(terms: &mut HostsTerms, change: &HostsChange) -> Result<(), Refusal> {
    let (min, max) = (change.min.unwrap_or(terms.min()), change.max.unwrap_or(terms.max()));
    *terms = terms.clone().with_range(min, max)?;
    if let Some(hypervisor) = &change.hypervisor {
        terms.hypervisor.clone_from(hypervisor);
    }
    if let Some(resource) = &change.resource {
        terms.resource.clone_from(resource);
    }
    terms.before_end = change.before_end.unwrap_or(terms.before_end);
    Ok(())
}

fn change_instances(
    terms: &mut InstancesTerms,
    change: &InstancesChange,
    started: bool,
    id: ReservationId,
) -> Result<(), Refusal> {
    let before = terms.clone();
    terms.size = change.size.unwrap_or(terms.size);
    terms.affinity = change.affinity.unwrap_or(terms.affinity);
    terms.requirement = change.requirement.clone().unwrap_or_else(|| terms.requirement.clone());
    if started && *terms != before {
        return Err(Refusal::OnlyAmount(id));
    }
    terms.amount = change.amount.unwrap_or(terms.amount);
    if started && terms.amount < before.amount {
        return Err(Refusal::WouldLoseSlots(id));
    }
    Ok(())
}

fn change_floating_ips(
    terms: &mut FloatingIpsTerms,
    change: &FloatingIpsChange,
    started: bool,
    id: ReservationId,
) -> Result<(), Refusal> {
    let refuse = |why| Err(Refusal::FloatingIps { reservation: id, why });
    if change.network.as_ref().is_some_and(|network| *network != terms.network) {
        return refuse("network_id cannot be changed");
    }
    let amount = change.amount.unwrap_or(terms.amount());
    if started && amount < terms.amount() {
        return refuse("the amount of a started reservation cannot be reduced");
    }
    let required = match &change.required {
        Some(required) if required.is_empty() || required == terms.required() => required.clone(),
        Some(_) => return refuse("required_floatingips can only be emptied"),
        None => terms.required().clone(),
    };
    *terms = FloatingIpsTerms::new(terms.network.clone(), amount, required)?;
    Ok(())
}

/// What a reservation is given anew for.
#[derive(Clone, Copy, Debug)]
struct Case {
    position: usize,
    /// The lease has started: it keeps what it has.
    started: bool,
    /// Its terms have changed, not only the window.
    changed: bool,
}

impl Search<'_> {
    fn reallocate(&self, reservation: &mut Reservation, case: Case) -> Result<(), Refusal> {
        let allocation = match (&reservation.terms, &reservation.allocation) {
            (ReservationTerms::Hosts(terms), Allocation::Hosts(held)) if case.started => {
                Allocation::Hosts(self.more_hosts(terms, held, case)?)
            }
            (ReservationTerms::Hosts(terms), Allocation::Hosts(held)) => {
                Allocation::Hosts(self.hosts(case.position, terms, held)?)
            }
            (ReservationTerms::Instances(terms), Allocation::Slots(held)) => {
                Allocation::Slots(self.same_slots(reservation.id, &terms.slots(), held, case)?)
            }
            (ReservationTerms::Flavor(terms), Allocation::Slots(held)) => {
                Allocation::Slots(self.same_slots(reservation.id, &terms.slots(), held, case)?)
            }
            (ReservationTerms::FloatingIps(terms), Allocation::FloatingIps(held)) => {
                Allocation::FloatingIps(self.same_floating_ips(reservation.id, terms, held, case)?)
            }
            // An allocation is of its terms' type: nothing makes another.
            (_, kept) => kept.clone(),
        };
        if !case.started {
            // It has been given all it asked for, on hosts that work.
            reservation.missing_resources = false;
        }
        reservation.allocation = allocation;
        Ok(())
    }

    /// The hosts of a started reservation, and more if its terms now want more.
    fn more_hosts(
        &self,
        terms: &HostsTerms,
        held: &BTreeSet<HostId>,
        case: Case,
    ) -> Result<BTreeSet<HostId>, Refusal> {
        let keeps = |host: &HostId| {
            let matches = || {
                let host = self.admission.inventory.host(*host);
                host.is_some_and(|host| terms.hypervisor.matches(host) && terms.resource.matches(host))
            };
            self.host_free(*host) && (!case.changed || matches())
        };
        let mut lost: Vec<HostId> = held.iter().copied().filter(|host| !keeps(host)).collect();
        // Surplus hosts would have to go as well; any of them could.
        let surplus = held.len().saturating_sub(terms.max() as usize);
        lost.extend(held.iter().rev().take(surplus).filter(|host| !lost.contains(host)).collect::<Vec<_>>());
        if !lost.is_empty() {
            lost.sort_unstable();
            return Err(Refusal::WouldLoseHosts(lost));
        }
        if !case.changed {
            return Ok(held.clone());
        }
        let (free, report) = self.free_hosts(terms);
        let others: Vec<_> = free.into_iter().filter(|host| !held.contains(&host.id)).collect();
        let wanted = terms.max() as usize - held.len();
        let mut hosts = self.best(&others, wanted, held);
        hosts.extend(held);
        if hosts.len() < terms.min() as usize {
            let (needed, found) = (terms.min().into(), hosts.len() as u64);
            let resource = Resource::Hosts(report);
            return Err(Refusal::NotEnough { position: case.position, resource, needed, found });
        }
        Ok(hosts)
    }

    /// Slots under new terms; a started reservation has each of its slots where it was.
    fn same_slots(
        &self,
        id: ReservationId,
        asked: &SlotsTerms<'_>,
        held: &BTreeMap<HostId, u32>,
        case: Case,
    ) -> Result<BTreeMap<HostId, u32>, Refusal> {
        if case.started && !case.changed {
            let fits = |(host, count): (&HostId, &u32)| self.still_fits(*host, *count, asked);
            let lost: Vec<HostId> =
                held.iter().filter(|slots| !fits(*slots)).map(|(host, _)| *host).collect();
            return if lost.is_empty() { Ok(held.clone()) } else { Err(Refusal::WouldLoseHosts(lost)) };
        }
        let slots = self.slots(case.position, asked, held)?;
        let kept = |(host, count): (&HostId, &u32)| slots.get(host).is_some_and(|now| now >= count);
        if case.started && !held.iter().all(kept) {
            return Err(Refusal::WouldLoseSlots(id));
        }
        Ok(slots)
    }

    /// Addresses under new terms; a started reservation keeps its own.
    fn same_floating_ips(
        &self,
        id: ReservationId,
        terms: &FloatingIpsTerms,
        held: &BTreeSet<FloatingIpId>,
        case: Case,
    ) -> Result<BTreeSet<FloatingIpId>, Refusal> {
        let calendar = self.admission.calendar;
        let free = |ip: &FloatingIpId| calendar.floating_ip_free(*ip, &self.window, self.own);
        if case.started && !held.iter().all(free) {
            let why = "a started reservation keeps its addresses, and they are not free";
            return Err(Refusal::FloatingIps { reservation: id, why });
        }
        if case.started && !case.changed {
            return Ok(held.clone());
        }
        let ips = self.floating_ips(case.position, terms, held)?;
        if case.started && !held.is_subset(&ips) {
            let why = "a started reservation keeps its addresses";
            return Err(Refusal::FloatingIps { reservation: id, why });
        }
        Ok(ips)
    }
}
