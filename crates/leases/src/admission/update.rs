//! Changes of a lease (API-update): which ones are allowed in which state, and the resulting allocations.
//!
//! A change is all or nothing: the result is the new lease, to be committed as a whole. An active lease never loses a
//! host or a slot. A starting lease that asks for fewer hosts gives back only hosts that guests block.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use jiff::Timestamp;

use super::{Admission, Refusal};
use crate::host::NetworkId;
use crate::ids::ReservationId;
use crate::lease::{EndAction, Lease, Reservation, before_end_at};
use crate::properties::PropertyChange;
use crate::quota::LeaseUse;
use crate::requirement::Requirement;
use crate::status::{EventStatus, LeaseStatus};
use crate::terms::{
    Affinity, BeforeEndAction, FloatingIpsTerms, HostsTerms, InstanceSize, InstancesTerms, ReservationTerms,
    check_before_end,
};
use crate::window::Window;

/// A change of a lease; `None` keeps the current value. Nothing else about a lease can change, such as its
/// owner, identifiers or status (W8).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Changes {
    pub name: Option<String>,
    pub start: Option<Timestamp>,
    pub end: Option<Timestamp>,
    /// New time of the before-end action.
    pub before_end: Option<Timestamp>,
    /// Whether preemptible instances may run on its unused hosts.
    pub backfill: Option<bool>,
    pub end_action: Option<EndAction>,
    /// New terms of reservations. Reservations that aren't listed keep theirs.
    pub reservations: Vec<(ReservationId, TermsChange)>,
}

impl Changes {
    /// Whether the change affects neither allocations nor dates.
    fn leave_what_is_given(&self) -> bool {
        let Self { name: _, backfill: _, end_action: _, start, end, before_end, reservations } = self;
        start.is_none() && end.is_none() && before_end.is_none() && reservations.is_empty()
    }

    /// Whether the lease could need other hosts, or hosts for longer.
    pub fn ask_for_more(&self, lease: &Lease) -> bool {
        self.start.is_some_and(|start| start != lease.window.start())
            || self.end.is_some_and(|end| end > lease.window.end())
            || self.reservations.iter().any(|(_, change)| *change != TermsChange::None)
    }
}

/// New terms of a reservation; `None` keeps the current value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TermsChange {
    /// No change: clients can name a reservation without changing it.
    None,
    Hosts(HostsChange),
    Instances(InstancesChange),
    /// Any change of a flavor reservation, which is refused (API-update).
    Flavor,
    FloatingIps(FloatingIpsChange),
}

/// New terms of a reservation of whole hosts.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct HostsChange {
    pub min: Option<u32>,
    pub max: Option<u32>,
    /// `hypervisor_properties`.
    pub hypervisor: Option<Requirement>,
    /// `resource_properties`.
    pub resource: Option<Requirement>,
    /// Changes of other host properties.
    pub properties: Vec<PropertyChange>,
    pub before_end: Option<BeforeEndAction>,
}

/// New terms of a reservation of instances.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct InstancesChange {
    pub size: Option<InstanceSize>,
    pub amount: Option<NonZeroU32>,
    pub affinity: Option<Affinity>,
    /// `resource_properties`.
    pub requirement: Option<Requirement>,
}

/// New terms of a reservation of addresses.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct FloatingIpsChange {
    /// Refused unless unchanged.
    pub network: Option<NetworkId>,
    pub amount: Option<u32>,
    /// Refused unless unchanged or empty.
    pub required: Option<BTreeSet<IpAddr>>,
}

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Updated {
    pub lease: Lease,
    /// The before-end action was done and is due again. Listeners are notified.
    pub before_end_rearmed: bool,
}

impl Admission<'_> {
    /// Changes a lease. The refusal of an extension includes the latest possible end, if there is one.
    pub fn update(&self, lease: &Lease, changes: &Changes) -> Result<Updated, Refusal> {
        let updated = self.changed(lease, changes).map(|mut updated| {
            updated.lease.marks.keep();
            updated
        });
        updated.map_err(|refusal| self.ends_too_late(lease, changes, refusal))
    }

    /// Changes a lease, without the latest possible end in refusals.
    pub(super) fn changed(&self, lease: &Lease, changes: &Changes) -> Result<Updated, Refusal> {
        let mut updated = lease.clone();
        if let Some(name) = &changes.name {
            updated.name.clone_from(name);
        }
        updated.backfill = changes.backfill.unwrap_or(lease.backfill);
        updated.end_action = changes.end_action.unwrap_or(lease.end_action);
        if updated.end_action != lease.end_action {
            // Near its end, its guests can already be deleted or moved.
            self.new_window(lease, &Changes::default())?;
        }
        if changes.leave_what_is_given() {
            return match lease.status {
                LeaseStatus::Deleting => Err(Refusal::Busy),
                _ => Ok(Updated { lease: updated, before_end_rearmed: false }),
            };
        }
        updated.window = self.new_window(lease, changes)?;
        let before_end_rearmed = self.move_before_end(&mut updated, lease, changes)?;
        check_reservations(lease, changes)?;
        self.check_new_length(lease, &updated.window)?;
        self.reallocate(&mut updated, lease, changes)?;
        for reservation in &mut updated.reservations {
            reservation.resources_changed = false;
        }
        Ok(Updated { lease: updated, before_end_rearmed })
    }

    /// Minimum use of the lease after a change. `None` if the change is invalid.
    pub fn least_use(&self, lease: &Lease, changes: &Changes) -> Option<LeaseUse> {
        let changed = self.on_changed_terms(lease, changes).ok()?;
        let terms = changed.reservations.iter().map(|reservation| &reservation.terms);
        Some(LeaseUse::of_reservations(changed.window, terms))
    }

    /// Changes a lease to the dates, terms and hosts of an accepted offer.
    pub fn accepted_change(&self, lease: &Lease, offered: &Lease) -> Result<Updated, Refusal> {
        let (start, end) = (Some(offered.window.start()), Some(offered.window.end()));
        let window = self.new_window(lease, &Changes { start, end, ..Changes::default() })?;
        let terms = |lease: &Lease| -> Vec<_> { lease.reservations.iter().map(|r| r.id).collect() };
        if terms(lease) != terms(offered) {
            return Err(Refusal::Busy);
        }
        let mut updated = Lease { window, ..lease.clone() }.with_preferences_of(offered);
        updated.marks.keep();
        let rearmed = self.arm_before_end(&mut updated, lease, offered.before_end);
        for (reservation, offered) in updated.reservations.iter_mut().zip(&offered.reservations) {
            reservation.terms = offered.terms.clone();
        }
        let mut as_offered = updated.clone();
        for (reservation, offered) in as_offered.reservations.iter_mut().zip(&offered.reservations) {
            reservation.allocation = offered.allocation.clone();
        }
        let keeps = |(before, after): (&Reservation, &Reservation)| {
            before.allocation.hosts().is_subset(&after.allocation.hosts())
        };
        let started = lease.status != LeaseStatus::Pending;
        let loses = started && !lease.reservations.iter().zip(&as_offered.reservations).all(keeps);
        if !loses && self.stands(&as_offered) {
            updated = as_offered;
        } else {
            updated.reservations = self.given_again(lease, &updated)?;
        }
        for reservation in &mut updated.reservations {
            reservation.resources_changed = false;
        }
        Ok(Updated { lease: updated, before_end_rearmed: rearmed })
    }

    /// The new window. Checks run in Blazar's order, so that the same one fails first.
    fn new_window(&self, lease: &Lease, changes: &Changes) -> Result<Window, Refusal> {
        let start = changes.start.unwrap_or(lease.window.start());
        let end = changes.end.unwrap_or(lease.window.end());
        // Blazar only looks at dates. So an active lease can get another start in its first minute (W11), and
        // a terminated one can be extended in its last minute (W12). Here the status counts as well.
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
        if !started && lease.lease_type.deadline().is_some_and(|deadline| start >= deadline) {
            return Err(Refusal::StartAfterDeadline);
        }
        Window::new(start, end).map_err(|_| Refusal::EndInPast)
    }

    /// Moves the before-end action along with the end, or to the requested time. Returns whether a finished
    /// action is armed again.
    fn move_before_end(
        &self,
        updated: &mut Lease,
        lease: &Lease,
        changes: &Changes,
    ) -> Result<bool, Refusal> {
        check_before_end(&updated.window, changes.before_end)?;
        let distance = lease.before_end.map(|at| lease.window.end().duration_since(at));
        let kept = distance.map(|distance| before_end_at(&updated.window, distance));
        Ok(self.arm_before_end(updated, lease, changes.before_end.or(kept)))
    }

    /// Sets the time of the before-end action. Returns whether a finished action is armed again.
    fn arm_before_end(&self, updated: &mut Lease, lease: &Lease, at: Option<Timestamp>) -> bool {
        updated.before_end = at;
        let moved = updated.before_end != lease.before_end;
        // An action that is due in the past would run at once, and a second time.
        let ahead = updated.before_end.is_some_and(|at| at > self.now);
        let rearmed = moved && ahead && lease.events.before_end != EventStatus::Undone;
        if rearmed {
            updated.events.before_end = EventStatus::Undone;
        }
        rearmed && lease.events.before_end == EventStatus::Done
    }

    /// Checks changed host requirements against the operator's filters. Unchanged ones aren't checked,
    /// because they were promised under earlier filters.
    fn check_asked_again(&self, before: &ReservationTerms, after: &ReservationTerms) -> Result<(), Refusal> {
        let (ReservationTerms::Hosts(before), ReservationTerms::Hosts(after)) = (before, after) else {
            return Ok(());
        };
        let asked =
            |terms: &HostsTerms| (terms.hypervisor.clone(), terms.resource.clone(), terms.properties.clone());
        if asked(before) == asked(after) { Ok(()) } else { self.rules.check_hosts(after) }
    }

    /// The lease with its new dates and terms, and its old allocations.
    pub(super) fn on_changed_terms(&self, lease: &Lease, changes: &Changes) -> Result<Lease, Refusal> {
        let mut changed = lease.clone();
        changed.window = self.new_window(lease, changes)?;
        check_reservations(lease, changes)?;
        let started = lease.status != LeaseStatus::Pending;
        for (id, change) in &changes.reservations {
            if let Some(reservation) = changed.reservations.iter_mut().find(|r| r.id == *id) {
                let before = reservation.terms.clone();
                apply(reservation, change, started)?;
                self.check_asked_again(&before, &reservation.terms)?;
            }
        }
        Ok(changed)
    }

    /// Allocates the resources for the new terms.
    fn reallocate(&self, updated: &mut Lease, lease: &Lease, changes: &Changes) -> Result<(), Refusal> {
        updated.reservations = self.on_changed_terms(lease, changes)?.reservations;
        if !updated.window.since(self.now).is_empty() {
            updated.reservations = self.given_again(lease, updated)?;
            return Ok(());
        }
        // A window that has been cut to nothing needs no resources. The lease keeps its resources until it
        // ends, and its terms can't change.
        let terms =
            |lease: &Lease| -> Vec<_> { lease.reservations.iter().map(|r| r.terms.clone()).collect() };
        if terms(updated) == terms(lease) { Ok(()) } else { Err(Refusal::Over) }
    }
}

/// Checks that each reservation belongs to the lease and each change matches its type.
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

/// Applies new terms to a reservation, as far as its type and state allow.
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
        // Types were checked before.
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
    for property in &change.properties {
        Arc::make_mut(&mut terms.properties).apply(property.clone());
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
    if let Some(extras) = &terms.extras {
        extras.check_size(&terms.size)?;
    }
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
