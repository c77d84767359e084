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
mod life;
mod observed;
mod reservations;
mod shares;
mod step;
#[cfg(test)]
mod tests;

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
pub use self::step::{Action, Backoff, Failures, History, Step};
use crate::host::{Health, Inventory};
use crate::ids::{GuestId, HostId, LeaseId, ReservationId};
use crate::instance::{Departure, Instance, InstanceKind};
use crate::lease::{Allocation, Lease, Reservation};
use crate::preemption::Class;
use crate::status::LeaseStatus;
use crate::terms::BeforeEndAction;
use crate::window::{earlier, later};

/// Operator settings for hand-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanRules {
    /// How long a preemptible guest has to shut down before it is deleted, unless its class says otherwise.
    pub grace: SignedDuration,
    /// The longest of these times: so long before the start of a lease the first are asked to leave.
    pub longest_notice: SignedDuration,
    /// So much longer is waited for everybody: by the clock of somebody else it may have been asked later.
    pub slack: SignedDuration,
    /// How long before the start of a lease its hosts are fenced, and preemptible guests moved away or asked to leave;
    /// at the start if absent.
    pub clear_ahead: Option<SignedDuration>,
    /// How much of that is for moves: whoever is still there then is asked to leave.
    pub moving_time: SignedDuration,
    /// How failed steps are repeated.
    pub backoff: Backoff,
    /// What happens before the end where a lease does not say.
    pub before_end: BeforeEndAction,
    /// How often a snapshot is tried before the lease goes on without.
    pub snapshot_attempts: u32,
    /// How many guests are moved at once for one lease.
    pub moves_at_once: usize,
    /// How long after its end guests of a lease are moved away that are to be; who is still there then stays.
    pub longest_departure: SignedDuration,
    /// How often it is tried to start an instance before that is given up.
    pub start_attempts: u32,
    /// Whether leases may let preemptible instances on hosts that they do not use.
    pub backfill: bool,
}

/// Whoever has a clock that is behind by less than this does not take back what was fenced ahead of a start, nor what
/// was said about who is preempted.
pub(crate) const FENCE_TOLERANCE: SignedDuration = SignedDuration::from_mins(1);

impl PlanRules {
    /// When the hosts of a lease that starts then begin to be cleared.
    pub fn clears_at(&self, start: Timestamp) -> Timestamp {
        self.clear_ahead.map_or(start, |ahead| earlier(start, ahead))
    }

    /// How long an instance has to shut down.
    pub fn notice(&self, class: Option<&Class>) -> SignedDuration {
        class.map_or(self.grace, Class::notice)
    }

    /// When a preemptible guest that is still there and has so long to shut down is asked to leave for a lease that
    /// starts then.
    pub fn asks_at(&self, start: Timestamp, notice: SignedDuration) -> Timestamp {
        // Whoever needs less time than others stays so much longer.
        let stays = self.longest_notice.max(self.grace).saturating_sub(notice).max(SignedDuration::ZERO);
        later(self.clears_at(start), self.moving_time.saturating_add(stays)).min(start)
    }

    /// Leases that start until then have to be known to a plan that is made now.
    pub fn horizon(&self, now: Timestamp) -> Timestamp {
        self.clear_ahead.map_or(now, |ahead| later(later(now, ahead), FENCE_TOLERANCE))
    }
}

impl Default for PlanRules {
    /// A minute of grace, nothing before the end, two moves at once, an hour for them after the end, no backfill.
    fn default() -> Self {
        Self {
            grace: SignedDuration::from_mins(1),
            longest_notice: SignedDuration::ZERO,
            slack: SignedDuration::ZERO,
            clear_ahead: None,
            moving_time: SignedDuration::ZERO,
            backoff: Backoff::default(),
            before_end: BeforeEndAction::None,
            snapshot_attempts: 3,
            moves_at_once: 2,
            longest_departure: SignedDuration::from_hours(1),
            start_attempts: 3,
            backfill: false,
        }
    }
}

/// What a host should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// In the free pool.
    FreePool,
    /// The reservation's.
    Held(ReservationId),
}

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
    /// What each host that was observed should be.
    pub hosts: BTreeMap<HostId, Wanted>,
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

/// What a plan is made from.
#[derive(Clone, Copy, Debug)]
pub struct World<'a> {
    /// What was seen.
    pub observed: &'a Observed,
    /// What became of earlier steps.
    pub history: &'a History,
    /// Operator settings.
    pub rules: &'a PlanRules,
    /// Instances that are to run, or to be destroyed.
    pub instances: &'a [&'a Instance],
    /// When leases of room start that need the place of others: of preemptible guests that are no instances on record
    /// ([`crate::admission::Elsewhere`]), which are preempted, and of instances that [go
    /// anyway](Instance::goes_anyway).
    pub others_leaving: &'a BTreeMap<GuestId, Timestamp>,
    /// Those instances whose guests are certain to be nowhere: they were looked for on hosts that work.
    pub gone: &'a BTreeSet<GuestId>,
    /// Hosts that are switched off, or on their way there or back: what is to be done to them waits until they are on.
    pub asleep: &'a BTreeSet<HostId>,
    /// Whether the fleet makes something for reservations as a whole ([`Prepared`]), without which they get nothing.
    pub prepares: bool,
    /// What hosts are called, for what leases say; their numbers are said if absent.
    pub names: Option<&'a Inventory>,
    /// The present, to the second.
    pub now: Timestamp,
}

/// No guests.
static NOBODY: BTreeSet<GuestId> = BTreeSet::new();
/// No guests that leave.
static NOBODY_LEAVES: BTreeMap<GuestId, Timestamp> = BTreeMap::new();
/// No hosts.
static NOWHERE: BTreeSet<HostId> = BTreeSet::new();

impl<'a> World<'a> {
    /// A world without instances.
    pub fn new(observed: &'a Observed, history: &'a History, rules: &'a PlanRules, now: Timestamp) -> Self {
        Self {
            observed,
            history,
            rules,
            instances: &[],
            others_leaving: &NOBODY_LEAVES,
            gone: &NOBODY,
            asleep: &NOWHERE,
            prepares: false,
            names: None,
            now,
        }
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
        plan.hosts.insert(host, claims.wanted(host));
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

    fn wanted(&self, host: HostId) -> Wanted {
        self.hosts.get(&host).map_or(Wanted::FreePool, |(_, reservation)| Wanted::Held(reservation.id))
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
