//! What every host should be now, and the next steps towards it.
//!
//! The planner is level-triggered: it compares what the leases want with what was observed, and knows of no
//! step that must have happened before. So it can be asked at any time, as often as one likes; after a crash,
//! an outage or a lost reply the next plan goes on from what is there (W4, W5).
//!
//! Handing over a host is always *fence*, *drain*, *verify*, *hold*; only what was verified empty is held. A
//! lease is ACTIVE once it holds everything it was given, and not before. What a lease still holds is taken
//! back before another gets it. Leases wait for each other at shared hosts only, nowhere else (W3).
//!
//! The caller's cycle: observe, heal ([`crate::admission::heal_all`]), plan, commit the changes, perform the
//! steps that are due and note what became of them, and again: at once if something changed, else at
//! [`Plan::wake_at`] or when something new is observed.

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

/// A lease that is to be committed as it is here, or forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseChange {
    /// The lease as it is now.
    Becomes(Box<Lease>),
    /// It was deleted, and nothing is left of it.
    Forgotten(LeaseId),
}

impl LeaseChange {
    /// Which lease.
    pub fn lease(&self) -> LeaseId {
        match self {
            Self::Becomes(lease) => lease.id,
            Self::Forgotten(id) => *id,
        }
    }
}

/// What to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// What to do to get there, as far as it can be done now. Steps of a lease that depend on each other are
    /// in different plans, so all steps of a plan may be performed in any order, or together.
    pub steps: Vec<Step>,
    /// Changes to commit before any step is performed.
    pub changes: Vec<LeaseChange>,
    /// The same of instances.
    pub instances: Vec<InstanceChange>,
    /// When to plan again even if nothing happens.
    pub wake_at: Option<Timestamp>,
}

impl Plan {
    /// The steps that are due.
    pub fn due(&self, now: Timestamp) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(move |step| step.not_before <= now)
    }
}

/// Plans for these leases. Leases that are over may be left out, as long as nothing of theirs is observed.
pub fn plan<'a>(leases: impl IntoIterator<Item = &'a Lease>, world: World<'_>) -> Plan {
    let mut plan = Plan::default();
    // Leases as they are now; owned where that is not what they were.
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

/// Notes the lease as the host's, if none is that starts sooner.
fn first<'a>(leases: &mut BTreeMap<HostId, &'a Lease>, host: HostId, lease: &'a Lease) {
    let known = leases.entry(host).or_insert(lease);
    if lease.window.start() < known.window.start() {
        *known = lease;
    }
}

/// What leases want now, and whose reservations are whose.
struct Claims<'a> {
    hosts: BTreeMap<HostId, (&'a Lease, &'a Reservation)>,
    /// Whole hosts of leases that start soon: they are cleared of preemptible guests, or about to be.
    coming: BTreeMap<HostId, &'a Lease>,
    /// Of leases that have room on hosts, or soon will, the one that comes first.
    sharing: BTreeMap<HostId, &'a Lease>,
    /// How long guests of classes have to shut down.
    notices: BTreeMap<GuestId, SignedDuration>,
    /// Preemptible instances.
    preemptible: BTreeSet<GuestId>,
    /// Those that are preempted now, or are moved away before they would.
    leaving: BTreeMap<GuestId, &'a Instance>,
    /// Instances that go anyway.
    going: BTreeSet<GuestId>,
    /// Hosts where any of them has the place still that a lease of room needs, and when the first of these leases
    /// starts.
    taken_until_gone: BTreeMap<HostId, Timestamp>,
    /// Leases that start and may take other hosts than they have been given.
    uncertain: BTreeSet<LeaseId>,
    /// Hosts that instances of leases are on, or are to be started on.
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
        // At most one lease wants a host, says the calendar. Should two, the one that runs keeps it.
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

    /// Notes a lease that starts soon. Of several with one host the first comes first.
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

    /// Whether a lease wants something of the host now or soon.
    fn include(&self, host: HostId) -> bool {
        self.hosts.contains_key(&host) || self.coming.contains_key(&host) || self.sharing.contains_key(&host)
    }

    /// The lease of a reservation, if it is known.
    fn lease_of(&self, reservation: ReservationId) -> Option<&'a Lease> {
        self.reservations.get(&reservation).map(|(lease, _)| *lease)
    }

    /// Whether the reservation is one of the lease, as far as is known.
    fn is_of(&self, reservation: ReservationId, lease: &Lease) -> bool {
        self.lease_of(reservation).is_some_and(|of| of.id == lease.id)
    }

    /// How long a guest has to shut down before it is deleted, to be on the safe side.
    fn notice(&self, guest: GuestId, rules: &PlanRules) -> SignedDuration {
        self.notices.get(&guest).copied().unwrap_or(rules.grace).saturating_add(rules.slack)
    }

    /// Where the guest is to be moved, if it is and does not move yet.
    fn moves_to(&self, guest: &Guest) -> Option<HostId> {
        let instance = self.leaving.get(&guest.id).filter(|_| guest.moving_to.is_none());
        instance.and_then(|instance| instance.moves_to())
    }

    /// Whether it leaves now, whatever becomes of leases that are to start.
    fn leaves_anyway(&self, guest: GuestId) -> bool {
        self.leaving.get(&guest).is_some_and(|instance| instance.leaves_anyway())
    }

    /// Slots of the host that are wanted, by reservation, with its lease.
    fn slots(&self, host: HostId) -> impl Iterator<Item = (ReservationId, LeaseId, u32)> + '_ {
        let wanted = self.slots.get(&host).into_iter().flatten();
        wanted.map(|(reservation, (lease, count))| (*reservation, *lease, *count))
    }

    /// Says of leases that are over that guests of theirs have stayed on the host.
    fn explain_stays(&self, effort: &mut Effort<'_>, host: HostId, observed: &ObservedHost) {
        for guest in &observed.guests {
            let GuestOwner::Lease(owner) = guest.owner else { continue };
            if self.leases.get(&owner).is_some_and(|lease| lease.over() && !lease.end_action.deletes()) {
                effort.waits(owner, Waiting::GuestsStay(host));
            }
        }
    }

    /// Says what a lease waits for where no step does.
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
