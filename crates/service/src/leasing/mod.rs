//! Making, changing and deleting leases.

pub(crate) mod create;
mod delete;
mod enforcing;
mod holding;
mod immediate;
mod preparing;
pub(crate) mod series;
pub(crate) mod update;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use leases::admission::{Admission, HostsNow, Losses};
use leases::calendar::Calendar;
use leases::hunt::{Surroundings, follow_moves};
use leases::ids::HostId;
use leases::lease::Lease;
use leases::lease_type::LeaseType;
use leases::plan::{History, Observed};
use leases::resources::Resources;
use leases::work::Budget;

use crate::service::Service;
use crate::state::State;

impl Service {
    /// What admission decides on. Dates have no seconds (API-create), so the present is the current minute.
    pub(crate) fn admission<'a>(
        &'a self,
        state: &'a State,
        occupied: Option<&'a BTreeSet<HostId>>,
        hosts: &'a KnownHosts,
        now: Timestamp,
        budget: &'a Budget,
    ) -> Admission<'a> {
        let rules = &self.settings.rules;
        let avoided = Some(state.instances.hosts_without_lease());
        let admission = Admission::new(&state.calendar, &state.inventory, rules, minute(now));
        let offered = Some(&state.offered).filter(|offered| !offered.is_empty());
        Admission { occupied, avoided, offered, hosts: hosts.now(), budget, ..admission }
    }

    /// What is known of hosts at the moment.
    pub(crate) fn known_hosts(&self, state: &State, now: Timestamp) -> KnownHosts {
        let instances = state.instances.iter().map(|record| &record.instance);
        // Nobody would be started any more where a lease starts sooner.
        let soon = now.checked_add(self.least_gap()).unwrap_or(Timestamp::MAX);
        let losses = Losses::new(&self.observed(), instances, now, soon);
        KnownHosts { waking: self.waking(state, now), losses }
    }

    /// What a decision about a lease of that type needs to know about hosts: who asks for a date does not need to know
    /// about guests.
    pub(crate) fn around<'a>(&self, state: &'a State, lease_type: LeaseType, now: Timestamp) -> Around<'a> {
        let neighbours = (lease_type != LeaseType::Schedule).then(|| self.neighbours(state));
        let used = neighbours.as_ref().map(Neighbours::used);
        Around { neighbours, used, hosts: self.known_hosts(state, now) }
    }

    /// What was observed, with guests that are about to be there.
    pub(crate) fn expected(&self, state: &State) -> Observed {
        state.with_guests_to_come(Observed::clone(&self.observed()))
    }

    /// What a decision needs to know about guests.
    pub(crate) fn neighbours<'a>(&self, state: &'a State) -> Neighbours<'a> {
        let hunting = || state.leases.hunters().map(|record| &record.lease);
        let observed = self.observed();
        let mut expected = state.with_guests_to_come(Observed::clone(&observed));
        let moves = hunting().flat_map(|lease| &lease.hunt).flat_map(|hunt| &hunt.moves);
        let progress = self.progress();
        follow_moves(&mut expected, moves, |mov| progress.in_flight.contains_key(&mov.action()));
        drop(progress);
        Neighbours {
            occupied: state.occupied(&observed),
            observed: expected,
            history: &state.history,
            hunting: hunting().filter(|lease| lease.hunt.is_some()).collect(),
        }
    }
}

/// What decisions need to know of hosts at the moment.
pub(crate) struct KnownHosts {
    waking: Option<BTreeMap<HostId, Timestamp>>,
    losses: Losses,
}

impl KnownHosts {
    pub fn now(&self) -> HostsNow<'_> {
        HostsNow { waking: self.waking.as_ref(), losses: Some(&self.losses) }
    }
}

/// Guests, and hosts that are not on, as far as a decision needs to know.
pub(crate) struct Around<'a> {
    neighbours: Option<Neighbours<'a>>,
    used: Option<BTreeMap<HostId, Resources>>,
    hosts: KnownHosts,
}

impl Around<'_> {
    /// What admission decides on by that calendar.
    pub fn admission<'a>(
        &'a self,
        service: &'a Service,
        state: &'a State,
        calendar: &'a Calendar,
        now: Timestamp,
        budget: &'a Budget,
    ) -> Admission<'a> {
        let occupied = self.neighbours.as_ref().map(|neighbours| &neighbours.occupied);
        let surroundings = self.neighbours.as_ref().map(Neighbours::surroundings);
        let used = self.used.as_ref();
        Admission {
            calendar,
            surroundings,
            used,
            ..service.admission(state, occupied, &self.hosts, now, budget)
        }
    }
}

/// What is on the hosts that leases do not have. A copy: a hunt takes long to plan, and meanwhile steps are noted.
pub(crate) struct Neighbours<'a> {
    /// Hosts with guests that nobody may remove, or that one is to go to.
    pub occupied: BTreeSet<HostId>,
    observed: Observed,
    history: &'a History,
    hunting: Vec<&'a Lease>,
}

impl Neighbours<'_> {
    /// What guests use of each host.
    pub fn used(&self) -> BTreeMap<HostId, Resources> {
        self.observed.hosts.iter().map(|(id, host)| (*id, host.used())).collect()
    }

    /// As hunts go by it.
    pub fn surroundings(&self) -> Surroundings<'_> {
        Surroundings { observed: &self.observed, history: self.history, hunting: &self.hunting }
    }
}

/// The beginning of the minute.
fn minute(now: Timestamp) -> Timestamp {
    let second = now.as_second();
    Timestamp::from_second(second - second.rem_euclid(60)).unwrap_or(now)
}
