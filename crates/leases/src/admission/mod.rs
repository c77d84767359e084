//! Admission: whether terms can be met, and with which resources. Covers new leases, changes and healing.
//!
//! A decision is all or nothing, depends only on its arguments, and changes nothing. It returns what to
//! commit, or a [`Refusal`]. So a refused change leaves a lease exactly as it was (W9).
//!
//! `now` is the instant that counts as the present. Dates in Blazar's API have no seconds, so the API layer
//! passes the start of the current minute.

mod addresses;
mod alike;
mod assignment;
mod availability;
mod backfill;
mod conditions;
mod departing;
mod earliest;
mod growing;
mod healing;
mod hint_rules;
mod hosts;
mod hunting;
mod instances;
mod lengths;
mod memory;
mod moves;
mod offers;
mod order;
mod preempting;
mod reallocate;
mod refusal;
mod relocating;
mod repacking;
mod replanning;
mod room;
mod slots;
mod still;
mod surviving;
mod swapping;
#[cfg(test)]
mod tests;
mod update;
mod usual;
mod waking;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};

pub use self::availability::Availability;
pub use self::backfill::Backfill;
pub(crate) use self::backfill::is_used;
pub use self::earliest::Grant;
pub use self::healing::{HealingInterval, heal_all, healing_order};
pub use self::instances::{NoHost, Unfit, Within, guests_to_come, size_of_instances};
use self::memory::Memory;
pub use self::moves::{MOVES_PER_HOST, Wanted};
pub use self::offers::{Offer, OfferedChange};
pub use self::preempting::{Elsewhere, Need};
pub use self::refusal::{Costly, Refusal, Resource};
pub use self::repacking::{RepackRules, Repacking};
pub use self::replanning::Replanned;
pub use self::still::still_fit;
pub use self::update::{Changes, FloatingIpsChange, HostsChange, InstancesChange, TermsChange, Updated};
use crate::calendar::Calendar;
use crate::enforcement::Enforcement;
use crate::filters::Filters;
use crate::hints::{HintRules, Hints};
use crate::host::{Inventory, NetworkId};
use crate::host_facts::HostFacts;
use crate::hunt::Hunting;
use crate::ids::{FloatingIpId, HostId, LeaseId};
use crate::lease::{Allocation, Lease};
use crate::lease_type::{Deadlines, LeaseType};
use crate::project::ProjectId;
use crate::resources::Resources;
use crate::terms::{ReservationTerms, Terms};
use crate::window::{Window, later};
use crate::work::{Budget, Stop, UNLIMITED};

/// Operator settings for admission.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Default time between the before-end action and the end of a lease. `None` means that no action is due
    /// by default.
    pub before_end_lead: Option<SignedDuration>,
    pub enforcement: Enforcement,
    /// Maximum time that leases wait for their start.
    pub deadlines: Deadlines,
    /// Settings for moving guests of other projects out of a lease's way.
    pub hunting: Hunting,
    /// The service's region. Leases that name another region are refused, and without a region so is each
    /// lease that names one.
    pub region: Option<String>,
    pub filters: Filters,
    pub hints: HintRules,
}

/// The inputs of a decision.
#[derive(Clone, Copy, Debug)]
pub struct Admission<'a> {
    /// Existing bookings.
    calendar: &'a Calendar,
    inventory: &'a Inventory,
    rules: &'a Rules,
    facts: &'a HostFacts<'a>,
    /// The facts that apply to this decision.
    fact_scope: FactScope,
    avoided: &'a BTreeSet<HostId>,
    /// The project that hosts are chosen for. Every decision sets it to the project of its lease. Without a
    /// project, hosts that are kept for certain projects are never allocated.
    project: Option<&'a ProjectId>,
    /// Location and spread of the hosts. Every decision sets it to the hints of its lease.
    hints: Option<&'a Hints>,
    /// Duration for which the lease has its hosts. `None` means any duration. Decisions on leases set it.
    length: Option<SignedDuration>,
    /// Hosts of leases on which preemptible instances can be started. `None` means no such hosts.
    backfill: Option<&'a Backfill>,
    /// Time from now in which broken hosts are replaced. Leases that start in it can't get them.
    healing: HealingInterval,
    /// Healing leaves leases on hosts that guests block.
    keeps_blocked_hosts: bool,
    /// Limit on the work of the decision. All decisions that a client asks for at once share one budget.
    budget: &'a Budget,
    pub now: Timestamp,
    /// Results of expressions on hosts that this decision has evaluated. Each decision makes its own.
    memory: Option<&'a Memory>,
}

/// Facts that a decision takes into account. A lease with a fixed date ignores current guests, because they
/// may be gone by then.
#[derive(Clone, Copy, Debug, Default)]
struct FactScope {
    /// When hosts with guests that can't be removed are rejected.
    occupied: Occupied,
    /// Guests on hosts keep the resources that they use.
    used: bool,
    /// Hosts must work now, because the lease starts as soon as possible.
    working: bool,
    /// Guests of other projects are never moved, even if that makes hosts available much sooner.
    no_hunts: bool,
}

/// When hosts with guests that can't be removed are rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Occupied {
    /// If the lease [starts at once](Admission::starts_at_once), since the guests will still be there.
    #[default]
    AtOnce,
    /// Whenever the lease starts.
    Always,
    /// Never: the guests will be moved.
    Never,
}

impl<'a> Admission<'a> {
    /// A decision without a project yet, with an unlimited budget.
    pub fn new(
        calendar: &'a Calendar,
        inventory: &'a Inventory,
        rules: &'a Rules,
        facts: &'a HostFacts<'a>,
        now: Timestamp,
    ) -> Self {
        Self {
            calendar,
            inventory,
            rules,
            facts,
            fact_scope: FactScope::default(),
            avoided: facts.avoided,
            project: None,
            hints: None,
            length: None,
            backfill: None,
            healing: HealingInterval::default(),
            keeps_blocked_hosts: false,
            budget: &UNLIMITED,
            now,
            memory: None,
        }
    }

    #[must_use]
    pub fn with_calendar(self, calendar: &'a Calendar) -> Self {
        Self { calendar, ..self }
    }

    /// Limits the work. All decisions that a client asks for at once share one budget.
    #[must_use]
    pub fn with_budget(self, budget: &'a Budget) -> Self {
        Self { budget, ..self }
    }

    /// Makes healing leave a lease on hosts that guests block.
    #[must_use]
    pub fn keeping_blocked_hosts(self) -> Self {
        Self { keeps_blocked_hosts: true, ..self }
    }

    /// Allows preemptible instances on these hosts of leases as well.
    #[must_use]
    pub fn with_backfill(self, backfill: Option<&'a Backfill>) -> Self {
        Self { backfill, ..self }
    }

    /// Allows broken hosts for leases that start after this interval.
    #[must_use]
    pub fn with_healing(self, healing: HealingInterval) -> Self {
        Self { healing, ..self }
    }

    /// Never moves guests for a lease.
    #[must_use]
    pub fn without_hunts(self) -> Self {
        Self { fact_scope: FactScope { no_hunts: true, ..self.fact_scope }, ..self }
    }

    /// Adapts to the type of a lease: one with a fixed date ignores current guests, because they may be gone
    /// by then.
    fn suited_to(self, lease_type: LeaseType) -> Self {
        let dateless = lease_type != LeaseType::Schedule;
        let occupied = if dateless { Occupied::Always } else { Occupied::AtOnce };
        Self {
            fact_scope: FactScope { occupied, used: dateless, working: dateless, ..self.fact_scope },
            ..self
        }
    }

    /// Ignores guests, because they will leave.
    fn without_guests(self) -> Self {
        Self { fact_scope: FactScope { occupied: Occupied::Never, used: false, ..self.fact_scope }, ..self }
    }

    /// Whether guests that can't be removed will probably still be there when a lease starts at `start`: it
    /// does so within the maximum wait of an immediate lease.
    fn starts_at_once(&self, start: Timestamp) -> bool {
        start <= self.now || start < self.cleared_by_itself()
    }

    /// First start by which guests may have left on their own.
    fn cleared_by_itself(&self) -> Timestamp {
        later(self.now, self.rules.deadlines.immediate)
    }

    /// Whether guests keep a lease that starts at `start` from getting the host.
    fn occupied(&self, host: HostId, start: Timestamp) -> bool {
        let matters = match self.fact_scope.occupied {
            Occupied::AtOnce => self.starts_at_once(start),
            Occupied::Always => true,
            Occupied::Never => false,
        };
        matters && self.facts.occupied.contains(&host)
    }

    /// Resources that guests use on the host, if they keep them.
    fn used(&self, host: HostId) -> Option<&'a Resources> {
        // Guests are worked out on first use, so they are only accessed if they count.
        if self.fact_scope.used { self.facts.guests.used(host) } else { None }
    }
}

impl Admission<'_> {
    /// Replaces the result of a decision that ended early by a refusal. It has seen only part of the
    /// inventory, so it doesn't count.
    fn settled<T>(&self, asked: &[&ReservationTerms], decided: Result<T, Refusal>) -> Result<T, Refusal> {
        match self.budget.stopped() {
            None => decided.map_err(|refusal| refusal.by_length(self.length)),
            Some(Stop::Canceled) => Err(Refusal::Canceled),
            Some(Stop::Exhausted) => {
                Err(Refusal::TooCostly(Costly::new(asked, self.hints, self.budget.limit())))
            }
        }
    }

    /// [`Self::settled`] for the reservations of a lease.
    fn settled_of<T>(&self, lease: &Lease, decided: Result<T, Refusal>) -> Result<T, Refusal> {
        let asked: Vec<&ReservationTerms> = lease.reservations.iter().map(|r| &r.terms).collect();
        self.hinted(&lease.hints).lasting(self.time_left(lease)).settled(&asked, decided)
    }

    /// [`Self::settled`] for optional results, which are dropped.
    fn settled_or_none<T>(&self, decided: Option<T>) -> Option<T> {
        decided.filter(|_| self.budget.stopped().is_none())
    }
}

impl Admission<'_> {
    /// One allocation per reservation of a new lease.
    pub fn decide(&self, project: &ProjectId, terms: &Terms) -> Result<Vec<Allocation>, Refusal> {
        if terms.window().start() < self.now {
            return Err(Refusal::StartInPast);
        }
        self.remembering(|admission| admission.suited_to(terms.lease_type).given(project, terms))
    }

    /// Allocations for the window in the terms, regardless of the lease type.
    fn given(&self, project: &ProjectId, terms: &Terms) -> Result<Vec<Allocation>, Refusal> {
        self.check_length(project, &terms.window(), &terms.reservations)?;
        self.check(project, terms)?;
        let asked: Vec<&ReservationTerms> = terms.reservations.iter().collect();
        let admission = self.asked_by(project).hinted(&terms.hints).lasting(terms.window().length());
        admission.settled(&asked, Search::new(admission, terms.window(), None).give_all(&asked))
    }
}

/// Cost of each booking that a search walks past.
const BOOKING: u64 = 5;

/// A decision in progress: resources that are free in a window and that the decision has not allocated yet.
#[derive(Debug)]
struct Search<'a> {
    admission: Admission<'a>,
    window: Window,
    /// The lease that is being changed. Its own bookings don't count.
    own: Option<LeaseId>,
    /// If no host is ready in time, waits for hosts that must be woken.
    patient: bool,
    /// A host of the lease that must be replaced.
    leaving: Option<HostId>,
    /// The lease can keep its own hosts even if they are closed or don't work.
    keeps_own: bool,
    /// Addresses that reservations of the lease require, by network.
    required: BTreeSet<(NetworkId, IpAddr)>,
    taken: Taken,
}

#[derive(Debug, Default)]
struct Taken {
    whole: BTreeSet<HostId>,
    shared: BTreeMap<HostId, Resources>,
    floating_ips: BTreeSet<FloatingIpId>,
}

impl<'a> Search<'a> {
    fn new(admission: Admission<'a>, window: Window, own: Option<LeaseId>) -> Self {
        let window = window.since(admission.now);
        let (patient, leaving, keeps_own) = (false, None, false);
        let required = BTreeSet::new();
        Self { admission, window, own, patient, leaving, keeps_own, required, taken: Taken::default() }
    }

    /// Serves new reservations in turn, or together if that fails.
    fn give_all(self, asked: &[&ReservationTerms]) -> Result<Vec<Allocation>, Refusal> {
        let mut search = self.leaving_required(asked.iter().copied());
        let given = search.give_in_turn(asked);
        given.or_else(|refusal| {
            let parts = asked.iter().map(|terms| assignment::Part { terms, held: None });
            let parts: Vec<_> = parts.collect();
            search.give_together(&parts).ok_or(refusal)
        })
    }

    /// Serves new reservations one by one, hardest first.
    fn give_in_turn(&mut self, asked: &[&ReservationTerms]) -> Result<Vec<Allocation>, Refusal> {
        let mut given: Vec<Option<Allocation>> = vec![None; asked.len()];
        for position in order::hardest_first(self, asked) {
            given[position] = Some(self.give(position, asked[position])?);
        }
        Ok(given.into_iter().flatten().collect())
    }

    fn give(&mut self, position: usize, asked: &ReservationTerms) -> Result<Allocation, Refusal> {
        let allocation = match asked {
            ReservationTerms::Hosts(asked) => {
                Allocation::Hosts(self.hosts(position, asked, &BTreeSet::new())?)
            }
            ReservationTerms::Instances(asked) => {
                Allocation::Slots(self.slots(position, &asked.slots(), &BTreeMap::new(), false)?)
            }
            ReservationTerms::Flavor(asked) => {
                Allocation::Slots(self.slots(position, &asked.slots(), &BTreeMap::new(), false)?)
            }
            ReservationTerms::FloatingIps(asked) => {
                Allocation::FloatingIps(self.floating_ips(position, asked, &BTreeSet::new())?)
            }
        };
        self.take(asked, &allocation);
        Ok(allocation)
    }

    /// Marks an allocation as taken, so that the next reservation of the lease doesn't get it.
    fn take(&mut self, asked: &ReservationTerms, allocation: &Allocation) {
        match allocation {
            Allocation::Hosts(hosts) => self.taken.whole.extend(hosts),
            Allocation::FloatingIps(ips) => self.taken.floating_ips.extend(ips),
            Allocation::Slots(slots) => {
                let size = asked.slots().map(|terms| terms.size).unwrap_or_default();
                for (&host, &count) in slots {
                    self.taken.shared.entry(host).or_default().add(count, &size);
                }
            }
        }
    }

    /// Undoes [`Self::take`].
    fn give_back(&mut self, asked: &ReservationTerms, allocation: &Allocation) {
        match allocation {
            Allocation::Hosts(hosts) => self.taken.whole.retain(|host| !hosts.contains(host)),
            Allocation::FloatingIps(ips) => self.taken.floating_ips.retain(|ip| !ips.contains(ip)),
            Allocation::Slots(slots) => {
                let size = asked.slots().map(|terms| terms.size).unwrap_or_default();
                for (host, &count) in slots {
                    if let Some(used) = self.taken.shared.get_mut(host) {
                        used.subtract(count, &size);
                    }
                }
                self.taken.shared.retain(|_, used| !used.is_nothing());
            }
        }
    }

    /// The window widened by the cleaning time. During it, no other lease may have the whole host.
    fn cleaned(&self) -> Window {
        self.window.widened(self.admission.calendar.cleaning_time())
    }

    /// Whether this decision has allocated any part of the host.
    fn taken(&self, host: HostId) -> bool {
        self.taken.whole.contains(&host) || self.taken.shared.contains_key(&host)
    }

    fn host_free(&self, host: HostId) -> bool {
        !self.taken(host) && self.admission.calendar.host_free(host, &self.cleaned(), self.own)
    }

    /// Whether slots can be allocated on the host, if there is room for them.
    fn host_open_to_slots(&self, host: HostId) -> bool {
        !self.taken.whole.contains(&host)
            && self.admission.calendar.host_open_to_slots(host, &self.cleaned(), self.own)
    }

    /// Peak use of the host by slots in the window, including slots that this decision has allocated.
    fn peak_use(&self, host: HostId) -> Resources {
        let mut used = self.admission.calendar.peak_use(host, &self.window, self.own);
        if let Some(taken) = self.taken.shared.get(&host) {
            used.add(1, taken);
        }
        used
    }

    /// Charges for the bookings that a look at the window walks past.
    fn charge_for_bookings(&self, host: HostId) {
        let near = self.admission.calendar.near(host, &self.cleaned()) as u64;
        self.admission.budget.charge(BOOKING * near);
    }

    /// Bounds for gaps, which exclude the past.
    fn future(&self) -> Window {
        Window::ALWAYS.since(self.admission.now)
    }
}
