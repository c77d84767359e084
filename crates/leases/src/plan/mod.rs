//! The planner: compares the state every host should have with its observed state, and plans the next steps.
//!
//! It is level-triggered: a plan depends only on the leases and on observations, never on whether an earlier
//! step happened. It can run at any time and any number of times. After a crash, an outage or a lost reply,
//! the next plan continues from the observed state (W4, W5).
//!
//! A host handover is always *fence*, *drain*, *verify*, *hold*; only a host verified to be empty is held. A
//! lease becomes ACTIVE once it holds everything it was given, and not before. A host is taken back from its
//! previous lease before another lease gets it. Leases wait for each other only at hosts they share (W3).
//!
//! The caller's cycle: observe, heal ([`crate::admission::heal_all`]), plan, commit the changes, perform the
//! steps that are due and record their outcomes. Repeat immediately if anything changed, otherwise at
//! [`Plan::wake_at`] or on a new observation.

mod backfill;
mod effort;
mod handover;
mod instances;
mod leaving;
mod life;
mod observed;
mod reservations;
mod rules;
mod shares;
mod step;
mod taking;
#[cfg(test)]
mod tests;
mod world;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use self::effort::Effort;
pub use self::effort::Waiting;
pub use self::instances::InstanceChange;
pub use self::observed::{
    Guest, GuestOwner, GuestSize, Mobility, Observed, ObservedHost, Overcommit, Place, Powered, Prepared,
    Recipe, Told,
};
pub use self::reservations::{is_prepared, plan_reservations};
pub(crate) use self::rules::FENCE_TOLERANCE;
pub use self::rules::{PlanRules, overdue_at};
pub use self::step::{Action, Backoff, Failures, History, Step};
pub use self::world::World;
use crate::host::Health;
use crate::ids::{GuestId, HostId, LeaseId, ReservationId};
use crate::instance::{Departure, Instance, InstanceKind};
use crate::lease::{Allocation, Lease, Reservation};
use crate::status::LeaseStatus;

/// A change to a lease that must be committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseChange {
    /// New version of the lease.
    Becomes(Box<Lease>),
    /// The lease was deleted, and no machine has anything left to take back: forget its record.
    Forgotten(LeaseId),
}

impl LeaseChange {
    pub fn lease(&self) -> LeaseId {
        match self {
            Self::Becomes(lease) => lease.id,
            Self::Forgotten(id) => *id,
        }
    }
}

/// Steps to perform, changes to commit, and when to plan again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Steps that are possible now. Steps of a lease that depend on each other are never in the same plan, so
    /// all steps of a plan can be performed in any order or concurrently.
    pub steps: Vec<Step>,
    /// Changes to commit before any step is performed.
    pub changes: Vec<LeaseChange>,
    /// Changes to instances, also committed before any step.
    pub instances: Vec<InstanceChange>,
    /// When to plan again even if nothing happens.
    pub wake_at: Option<Timestamp>,
}

impl Plan {
    pub fn due(&self, now: Timestamp) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(move |step| step.not_before <= now)
    }
}

/// Plans the next steps for `leases`. Leases that are over can be omitted if nothing of theirs is observed.
pub fn plan<'a>(leases: impl IntoIterator<Item = &'a Lease>, world: World<'_>) -> Plan {
    let mut plan = Plan::default();
    // Leases after this plan's transitions; owned if changed.
    let mut current: Vec<Cow<'a, Lease>> = Vec::new();
    for lease in leases {
        match life::next(lease, &world) {
            life::Next::Forget => plan.changes.push(LeaseChange::Forgotten(lease.id)),
            life::Next::Stay => current.push(Cow::Borrowed(lease)),
            life::Next::Become(after) => current.push(Cow::Owned(*after)),
        }
    }
    let mut effort = Effort::new(world);
    let claims = Claims::new(current.iter().map(AsRef::as_ref), &world);
    for (&host, observed) in &world.observed.hosts {
        if observed.is_vacant() && !claims.include(host) {
            continue;
        }
        handover::plan_host(&mut effort, &claims, host, observed);
        shares::plan_slots(&mut effort, &claims, host, observed);
        claims.explain_stays(&mut effort, host, observed);
    }
    shares::plan_floating_ips(&mut effort, &claims);
    plan.instances = instances::plan_instances(&mut effort, &claims);
    for lease in &current {
        life::plan_before_end(&mut effort, lease);
        claims.explain_absences(&mut effort, lease);
    }
    let moved = |lease: &Cow<'_, Lease>| matches!(lease, Cow::Owned(_));
    if current.iter().any(moved) || !plan.changes.is_empty() || !plan.instances.is_empty() {
        effort.wake(world.now);
    }
    for mut lease in current {
        life::wake(&mut effort, &lease);
        let reason = effort.reason(&lease);
        if reason != lease.reason {
            lease.to_mut().reason = reason;
        }
        if let Cow::Owned(lease) = lease {
            plan.changes.push(LeaseChange::Becomes(Box::new(lease)));
        }
    }
    (plan.steps, plan.wake_at) = effort.finish();
    plan
}

/// Records `lease` for the host, unless a lease that starts no later is recorded already.
fn first<'a>(leases: &mut BTreeMap<HostId, &'a Lease>, host: HostId, lease: &'a Lease) {
    let known = leases.entry(host).or_insert(lease);
    if lease.window.start() < known.window.start() {
        *known = lease;
    }
}

/// Demands of all leases, indexed by host, guest and reservation.
struct Claims<'a> {
    hosts: BTreeMap<HostId, (&'a Lease, &'a Reservation)>,
    /// Whole hosts of leases that start soon. They are being cleared of preemptible guests, or will be
    /// shortly.
    coming: BTreeMap<HostId, &'a Lease>,
    /// For each host, the earliest lease that has slots there, or will soon.
    sharing: BTreeMap<HostId, &'a Lease>,
    /// Time to shut down, for guests that have a class.
    notices: BTreeMap<GuestId, SignedDuration>,
    preemptible: BTreeSet<GuestId>,
    /// Preemptible instances that are being preempted, or are being moved away to avoid preemption.
    leaving: BTreeMap<GuestId, &'a Instance>,
    /// Instances that leave independent of any lease.
    going: BTreeSet<GuestId>,
    /// Hosts where an instance in `going` still occupies capacity that a slot lease needs, with the earliest
    /// start of these leases.
    taken_until_gone: BTreeMap<HostId, Timestamp>,
    /// Starting leases that might still switch to other hosts than their allocated ones.
    uncertain: BTreeSet<LeaseId>,
    /// Hosts on which a lease's instances run or will be started.
    used: BTreeSet<(HostId, LeaseId)>,
    slots: BTreeMap<HostId, BTreeMap<ReservationId, (LeaseId, u32)>>,
    reservations: BTreeMap<ReservationId, (&'a Lease, &'a Reservation)>,
    leases: BTreeMap<LeaseId, &'a Lease>,
}

impl<'a> Claims<'a> {
    fn new(leases: impl Iterator<Item = &'a Lease>, world: &World<'a>) -> Self {
        let now = world.now;
        let leaving = world.instances.iter().filter(|instance| {
            let near = |departure: Departure| world.rules.clears_at(departure.gone_by) <= now;
            instance.is_departing(now) || instance.departure.is_some_and(near)
        });
        let preemptible = |instance: &&&Instance| instance.kind == InstanceKind::Preemptible;
        let used = |instance: &&Instance| {
            instance.kind.lease().filter(|_| instance.needs_place()).map(|lease| (instance.host, lease))
        };
        let notice = |instance: &&Instance| Some((instance.id, instance.class.as_ref()?.notice()));
        let mut claims = Self {
            notices: world.instances.iter().filter_map(notice).collect(),
            hosts: BTreeMap::new(),
            coming: BTreeMap::new(),
            sharing: BTreeMap::new(),
            preemptible: world.instances.iter().filter(preemptible).map(|instance| instance.id).collect(),
            used: world.instances.iter().filter_map(used).collect(),
            leaving: leaving.map(|instance| (instance.id, *instance)).collect(),
            going: BTreeSet::new(),
            taken_until_gone: BTreeMap::new(),
            uncertain: BTreeSet::new(),
            slots: BTreeMap::new(),
            reservations: BTreeMap::new(),
            leases: BTreeMap::new(),
        };
        for instance in world.instances.iter().filter(|instance| instance.goes_anyway()) {
            claims.going.insert(instance.id);
            if let Some(start) = world.others_leaving.get(&instance.id) {
                let first = claims.taken_until_gone.entry(instance.host).or_insert(*start);
                *first = (*first).min(*start);
            }
        }
        let mut wanting = Vec::new();
        for lease in leases {
            claims.leases.insert(lease.id, lease);
            for reservation in &lease.reservations {
                claims.reservations.insert(reservation.id, (lease, reservation));
            }
            if life::wants_resources(lease, now) {
                wanting.push(lease);
            }
            if lease.status == LeaseStatus::Pending && lease.window.start() <= world.rules.horizon(now) {
                claims.expect(lease);
            }
        }
        let uncertain = |lease: &&&Lease| taking::may_take_others(lease, world, &claims.leases);
        claims.uncertain = wanting.iter().filter(uncertain).map(|lease| lease.id).collect();
        // The calendar gives a host to at most one lease. If two want it anyway, the active one keeps it.
        wanting.sort_by_key(|lease| (lease.status != LeaseStatus::Active, lease.window.start(), lease.id));
        for lease in wanting {
            for reservation in &lease.reservations {
                match &reservation.allocation {
                    Allocation::Hosts(hosts) => {
                        for &host in hosts {
                            claims.hosts.entry(host).or_insert((lease, reservation));
                        }
                    }
                    Allocation::Slots(slots) => {
                        for (&host, &count) in slots {
                            first(&mut claims.sharing, host, lease);
                            claims.slots.entry(host).or_default().insert(reservation.id, (lease.id, count));
                        }
                    }
                    Allocation::FloatingIps(_) => {}
                }
            }
        }
        claims
    }

    /// Records a lease that starts soon. If several share a host, the earliest wins.
    fn expect(&mut self, lease: &'a Lease) {
        for reservation in &lease.reservations {
            match &reservation.allocation {
                Allocation::Hosts(hosts) => {
                    for host in hosts {
                        first(&mut self.coming, *host, lease);
                    }
                }
                Allocation::Slots(slots) => {
                    for host in slots.keys() {
                        first(&mut self.sharing, *host, lease);
                    }
                }
                Allocation::FloatingIps(_) => {}
            }
        }
    }

    /// Whether a lease wants the host, or slots on it, now or soon.
    fn include(&self, host: HostId) -> bool {
        self.hosts.contains_key(&host) || self.coming.contains_key(&host) || self.sharing.contains_key(&host)
    }

    fn lease_of(&self, reservation: ReservationId) -> Option<&'a Lease> {
        self.reservations.get(&reservation).map(|(lease, _)| *lease)
    }

    /// Whether the reservation is known to belong to the lease.
    fn is_of(&self, reservation: ReservationId, lease: &Lease) -> bool {
        self.lease_of(reservation).is_some_and(|of| of.id == lease.id)
    }

    /// Time for a guest to shut down before it is deleted, including slack for clock skew.
    fn notice(&self, guest: GuestId, rules: &PlanRules) -> SignedDuration {
        self.notices.get(&guest).copied().unwrap_or(rules.grace).saturating_add(rules.slack)
    }

    /// Host to move the guest to. `None` if it stays or is already moving.
    fn moves_to(&self, guest: &Guest) -> Option<HostId> {
        let instance = self.leaving.get(&guest.id).filter(|_| guest.moving_to.is_none());
        instance.and_then(|instance| instance.moves_to())
    }

    /// Whether the guest leaves now, independent of leases that are yet to start.
    fn leaves_anyway(&self, guest: GuestId) -> bool {
        self.leaving.get(&guest).is_some_and(|instance| instance.leaves_anyway())
    }

    /// Slots wanted on the host: reservation, lease and count.
    fn slots(&self, host: HostId) -> impl Iterator<Item = (ReservationId, LeaseId, u32)> + '_ {
        let wanted = self.slots.get(&host).into_iter().flatten();
        wanted.map(|(reservation, (lease, count))| (*reservation, *lease, *count))
    }

    /// Reports, on leases that are over, guests that they left behind on the host.
    fn explain_stays(&self, effort: &mut Effort<'_>, host: HostId, observed: &ObservedHost) {
        for guest in &observed.guests {
            let GuestOwner::Lease(owner) = guest.owner else { continue };
            if self.leases.get(&owner).is_some_and(|lease| lease.over() && !lease.end_action.deletes()) {
                effort.waits(owner, Waiting::GuestsStay(host));
            }
        }
    }

    /// Reports reasons for waiting that aren't tied to a step.
    fn explain_absences(&self, effort: &mut Effort<'_>, lease: &Lease) {
        if lease.status == LeaseStatus::Deleting {
            for (host, health) in life::left_behind(lease, &effort.world) {
                if health == Health::Failed {
                    effort.waits(lease.id, Waiting::HostFailed(host));
                }
            }
        }
        if lease.status != LeaseStatus::Starting {
            return;
        }
        for reservation in &lease.reservations {
            let hosts = reservation.allocation.hosts();
            let needs_hosts = !matches!(reservation.allocation, Allocation::FloatingIps(_));
            if needs_hosts && hosts.is_empty() {
                effort.waits(lease.id, Waiting::NothingAllocated(reservation.id));
            }
            for host in hosts {
                if !effort.world.observed.hosts.contains_key(&host) {
                    effort.waits(lease.id, Waiting::HostGone(host));
                }
                let whole = matches!(reservation.allocation, Allocation::Hosts(_));
                if whole && self.hosts.get(&host).is_some_and(|(other, _)| other.id != lease.id) {
                    effort.waits(lease.id, Waiting::TakingBack(host));
                }
            }
        }
    }
}
