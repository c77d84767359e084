//! Host facts: current knowledge about hosts that decisions need.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use leases::admission::Admission;
use leases::host_facts::{Fact, Guests, HostFacts, Losses};
use leases::hunt::follow_moves;
use leases::ids::HostId;
use leases::plan::Observed;
use leases::work::Budget;

use crate::decider::Decider;
use crate::state::State;

impl Decider {
    /// Host facts from this state and the latest observation.
    pub(crate) fn host_facts<'a>(&'a self, state: &'a State, now: Timestamp) -> HostFacts<'a> {
        let hunters = state.leases.hunters().map(|record| &record.lease);
        let losses = self.observed();
        let (occupied, guests) = (Arc::clone(&losses), Arc::clone(&losses));
        HostFacts {
            occupied: Fact::when_asked(move || self.occupied(state, &occupied, now)),
            avoided: state.instances.hosts_without_lease(),
            offered: &state.offered,
            guests: Fact::when_asked(move || Guests::from(self.after_moves(state, &guests))),
            history: &state.history,
            hunting: hunters.filter(|lease| lease.hunt.is_some()).collect(),
            waking: Fact::when_asked(move || self.waking(state, now)),
            losses: Fact::when_asked(move || {
                let instances = state.instances.iter().map(|record| &record.instance);
                // No instance is started on a host where a lease starts before then.
                let soon = now.checked_add(self.least_gap()).unwrap_or(Timestamp::MAX);
                Losses::new(&losses, instances, now, soon)
            }),
        }
    }

    /// Hosts with guests that can't be removed. See [`State::occupied`].
    pub(crate) fn occupied(&self, state: &State, observed: &Observed, now: Timestamp) -> BTreeSet<HostId> {
        let rules = self.plan_rules(&self.progress());
        state.occupied(observed, &rules, now)
    }

    /// Admission at the start of the current minute, because dates have no seconds (API-create).
    pub(crate) fn admission<'a>(
        &'a self,
        state: &'a State,
        facts: &'a HostFacts<'a>,
        now: Timestamp,
        budget: &'a Budget,
    ) -> Admission<'a> {
        self.admission_at(state, facts, minute(now)).with_budget(budget)
    }

    /// Admission at this exact instant, without a budget.
    pub(crate) fn admission_at<'a>(
        &'a self,
        state: &'a State,
        facts: &'a HostFacts<'a>,
        now: Timestamp,
    ) -> Admission<'a> {
        Admission::new(&state.calendar, &state.inventory, &self.settings.rules, facts, now)
            .with_healing(self.settings.healing_interval)
    }

    /// The latest observation, plus guests that are about to start.
    pub(crate) fn expected(&self, state: &State) -> Observed {
        state.with_guests_to_come(Observed::clone(&self.observed()))
    }

    /// `observed` with guests that are about to start, and with moving guests at their destinations.
    fn after_moves(&self, state: &State, observed: &Observed) -> Observed {
        let mut expected = state.with_guests_to_come(observed.clone());
        let moves = state.leases.hunters().flat_map(|record| &record.lease.hunt);
        let moves = moves.flat_map(|hunt| &hunt.moves);
        let progress = self.progress();
        follow_moves(&mut expected, moves, |mov| progress.in_flight.contains_key(&mov.action()));
        expected
    }
}

/// Start of the minute.
fn minute(now: Timestamp) -> Timestamp {
    let second = now.as_second();
    Timestamp::from_second(second - second.rem_euclid(60)).unwrap_or(now)
}
