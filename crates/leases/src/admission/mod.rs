//! Whether terms can be met, and with what: creating, changing and healing leases.
//!
//! A decision is all or nothing, depends on nothing but its arguments, and changes nothing: it returns what to
//! commit, or a [`Refusal`]. A refused change therefore leaves a lease exactly as it was (W9).
//!
//! `now` is the instant that counts as the present. Dates of Blazar's API have no seconds, so its edge passes
//! the beginning of the current minute.

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
use crate::host::Inventory;
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
    /// How long before the end the before-end action is due by default; none means never.
    pub before_end_lead: Option<SignedDuration>,
    /// Limits on leases.
    pub enforcement: Enforcement,
    /// How long leases may wait for their start.
    pub deadlines: Deadlines,
    /// Moving guests of others out of a lease's way.
    pub hunting: Hunting,
    /// The region that the service is of, if it is of one. Leases that name another are refused.
    pub region: Option<String>,
    /// Which hosts leases may have.
    pub filters: Filters,
    /// Which hints leases may give.
    pub hints: HintRules,
}

/// What a decision is based on.
#[derive(Clone, Copy, Debug)]
pub struct Admission<'a> {
    /// What is taken.
    calendar: &'a Calendar,
    /// What there is.
    inventory: &'a Inventory,
    /// Operator settings.
    rules: &'a Rules,
    /// What is known of hosts at the moment.
    facts: &'a HostFacts<'a>,
    /// Which of it matters to the question.
    heeds: Heeds,
    /// Hosts that are chosen last.
    avoided: &'a BTreeSet<HostId>,
    /// On whose behalf hosts are looked for. Every decision sets it to the project of the lease that it is about;
    /// without one, no host is had that is kept for some projects.
    project: Option<&'a ProjectId>,
    /// Where hosts are to be, if that was said. Every decision sets it to the hints of the lease that it is about.
    hints: Option<&'a Hints>,
    /// How long the lease has its hosts; any length if absent. Decisions on leases set it.
    length: Option<SignedDuration>,
    /// Hosts of leases that preemptible instances may be started on; none if they are started on no such host.
    backfill: Option<&'a Backfill>,
    /// How far ahead hosts that don't work are replaced, and so can't be given.
    healing: HealingInterval,
    /// Leases keep hosts that guests block.
    keeps_blocked_hosts: bool,
    /// How much work the decision may cost. All that one client asks for at once shares one budget.
    budget: &'a Budget,
    /// The present.
    pub now: Timestamp,
    /// What hosts are like, as far as a decision has asked. Decisions make their own.
    memory: Option<&'a Memory>,
}

/// Which facts a question heeds. Until a date that a lease has, guests may be gone, so it asks for hosts as they are without.
#[derive(Clone, Copy, Debug, Default)]
struct Heeds {
    /// When hosts with guests that can't be removed are rejected.
    occupied: Occupied,
    /// What is asked for has to be free beside what guests use.
    used: bool,
    /// Hosts have to work now: the lease starts as soon as it can.
    working: bool,
    /// Guests that others have are not moved away, however much sooner there were hosts.
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
    /// A decision that is on nobody's behalf yet, and may cost as much work as it takes.
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
            heeds: Heeds::default(),
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

    /// The same by another calendar.
    #[must_use]
    pub fn with_calendar(self, calendar: &'a Calendar) -> Self {
        Self { calendar, ..self }
    }

    /// The same, which may cost so much work. All that one client asks for at once shares one budget.
    #[must_use]
    pub fn with_budget(self, budget: &'a Budget) -> Self {
        Self { budget, ..self }
    }

    /// The same, but healing leaves a lease on hosts that guests block.
    #[must_use]
    pub fn keeping_blocked_hosts(self) -> Self {
        Self { keeps_blocked_hosts: true, ..self }
    }

    /// The same, where preemptible instances may be started on these hosts of leases as well, if on any.
    #[must_use]
    pub fn with_backfill(self, backfill: Option<&'a Backfill>) -> Self {
        Self { backfill, ..self }
    }

    /// The same, where hosts that don't work can be given to leases that start after this interval.
    #[must_use]
    pub fn with_healing(self, healing: HealingInterval) -> Self {
        Self { healing, ..self }
    }

    /// The same, where nobody is moved away for a lease.
    #[must_use]
    pub fn without_hunts(self) -> Self {
        Self { heeds: Heeds { no_hunts: true, ..self.heeds }, ..self }
    }

    /// The decision on a lease of that type: until a date that it has, guests may be gone.
    fn suited_to(self, lease_type: LeaseType) -> Self {
        let dateless = lease_type != LeaseType::Schedule;
        let occupied = if dateless { Occupied::Always } else { Occupied::AtOnce };
        Self { heeds: Heeds { occupied, used: dateless, working: dateless, ..self.heeds }, ..self }
    }

    /// The decision where guests are no obstacle: they leave.
    fn without_guests(self) -> Self {
        Self { heeds: Heeds { occupied: Occupied::Never, used: false, ..self.heeds }, ..self }
    }

    /// Whether guests that can't be removed are expected to be still there when a lease starts at `start`: within the time
    /// that an immediate lease may take to start.
    fn starts_at_once(&self, start: Timestamp) -> bool {
        start <= self.now || start < self.cleared_by_itself()
    }

    /// The first start for which guests may be gone by themselves.
    fn cleared_by_itself(&self) -> Timestamp {
        later(self.now, self.rules.deadlines.immediate)
    }

    /// Whether guests on the host keep a lease that starts at `start` from having it.
    fn occupied(&self, host: HostId, start: Timestamp) -> bool {
        let matters = match self.heeds.occupied {
            Occupied::AtOnce => self.starts_at_once(start),
            Occupied::Always => true,
            Occupied::Never => false,
        };
        matters && self.facts.occupied.contains(&host)
    }

    /// What guests use of the host, if that has to be left to them.
    fn used(&self, host: HostId) -> Option<&'a Resources> {
        // Who does not ask does not have it worked out.
        if self.heeds.used { self.facts.guests.used(host) } else { None }
    }
}

impl Admission<'_> {
    /// What was decided about these reservations, unless the decision ended early: then it was made of a part of what
    /// there is, and does not count.
    fn settled<T>(&self, asked: &[&ReservationTerms], decided: Result<T, Refusal>) -> Result<T, Refusal> {
        match self.budget.stopped() {
            None => decided.map_err(|refusal| refusal.by_length(self.length)),
            Some(Stop::Canceled) => Err(Refusal::Canceled),
            Some(Stop::Exhausted) => {
                Err(Refusal::TooCostly(Costly::new(asked, self.hints, self.budget.limit())))
            }
        }
    }

    /// The same of what a lease is given.
    fn settled_of<T>(&self, lease: &Lease, decided: Result<T, Refusal>) -> Result<T, Refusal> {
        let asked: Vec<&ReservationTerms> = lease.reservations.iter().map(|r| &r.terms).collect();
        self.hinted(&lease.hints).lasting(self.time_left(lease)).settled(&asked, decided)
    }

    /// The same of what can be done without.
    fn settled_or_none<T>(&self, decided: Option<T>) -> Option<T> {
        decided.filter(|_| self.budget.stopped().is_none())
    }
}

impl Admission<'_> {
    /// What a new lease of these terms would be given, one allocation per reservation.
    pub fn decide(&self, project: &ProjectId, terms: &Terms) -> Result<Vec<Allocation>, Refusal> {
        if terms.window().start() < self.now {
            return Err(Refusal::StartInPast);
        }
        self.remembering(|admission| admission.suited_to(terms.lease_type).given(project, terms))
    }

    /// What is given for that window, whatever the type.
    fn given(&self, project: &ProjectId, terms: &Terms) -> Result<Vec<Allocation>, Refusal> {
        self.check_length(project, &terms.window(), &terms.reservations)?;
        self.check(project, terms)?;
        let asked: Vec<&ReservationTerms> = terms.reservations.iter().collect();
        let admission = self.asked_by(project).hinted(&terms.hints).lasting(terms.window().length());
        admission.settled(&asked, Search::new(admission, terms.window(), None).give_all(&asked))
    }
}

/// What it costs to walk past a booking.
const BOOKING: u64 = 5;

/// A decision in the making: what is free in a window beside what the same decision has given already.
#[derive(Debug)]
struct Search<'a> {
    admission: Admission<'a>,
    window: Window,
    /// The lease that is being changed.
    own: Option<LeaseId>,
    /// Hosts that have to be woken are waited for, if there are no others.
    patient: bool,
    /// A host that the lease has and is to have others for.
    leaving: Option<HostId>,
    /// The lease can keep hosts of its own that are closed or don't work.
    keeps_own: bool,
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
        Self { admission, window, own, patient, leaving, keeps_own, taken: Taken::default() }
    }

    /// Gives new reservations what they ask for.
    fn give_all(mut self, asked: &[&ReservationTerms]) -> Result<Vec<Allocation>, Refusal> {
        let given = self.give_in_turn(asked);
        given.or_else(|refusal| {
            let parts = asked.iter().map(|terms| assignment::Part { terms, held: None });
            let parts: Vec<_> = parts.collect();
            self.give_together(&parts).ok_or(refusal)
        })
    }

    /// Gives new reservations what they ask for, the hardest to serve first.
    fn give_in_turn(&mut self, asked: &[&ReservationTerms]) -> Result<Vec<Allocation>, Refusal> {
        let mut given: Vec<Option<Allocation>> = vec![None; asked.len()];
        for position in order::hardest_first(self, asked) {
            given[position] = Some(self.give(position, asked[position])?);
        }
        Ok(given.into_iter().flatten().collect())
    }

    /// Gives a new reservation what it asks for.
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

    /// Notes what was given, so that the next reservation of the lease is not given the same.
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

    /// Takes a note of [`Self::take`] back.
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

    /// The window with cleaning time, which a host must be free of whole-host leases of others for.
    fn cleaned(&self) -> Window {
        self.window.widened(self.admission.calendar.cleaning_time())
    }

    /// Whether the same decision has given any of the host.
    fn taken(&self, host: HostId) -> bool {
        self.taken.whole.contains(&host) || self.taken.shared.contains_key(&host)
    }

    /// Whether the whole host can be had.
    fn host_free(&self, host: HostId) -> bool {
        !self.taken(host) && self.admission.calendar.host_free(host, &self.cleaned(), self.own)
    }

    /// Whether slots of the host can be had, if there is room.
    fn host_open_to_slots(&self, host: HostId) -> bool {
        !self.taken.whole.contains(&host)
            && self.admission.calendar.host_open_to_slots(host, &self.cleaned(), self.own)
    }

    /// The most that slots use of the host at an instant of the window.
    fn peak_use(&self, host: HostId) -> Resources {
        let mut used = self.admission.calendar.peak_use(host, &self.window, self.own);
        if let Some(taken) = self.taken.shared.get(&host) {
            used.add(1, taken);
        }
        used
    }

    /// Charges the bookings of the host that a look at the window walks through.
    fn charge_for_bookings(&self, host: HostId) {
        let near = self.admission.calendar.near(host, &self.cleaned()) as u64;
        self.admission.budget.charge(BOOKING * near);
    }

    /// Where gaps lie: the past is over.
    fn future(&self) -> Window {
        Window::ALWAYS.since(self.admission.now)
    }
}
