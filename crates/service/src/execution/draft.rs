//! What a cycle decides, before any of it is committed.
//!
//! Each pass of a cycle decides on what the store will hold once everything is committed that was decided before it, and
//! all of it is committed at once: a cycle takes one transaction, however many passes have changed something.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleet::Machine;
use jiff::Timestamp;
use leases::ids::HostId;
use leases::plan::Step;

use crate::decider::Decider;
use crate::entries::{Entries, Entry};
use crate::state::State;

/// What was decided so far.
pub(crate) struct Draft {
    /// When the cycle began.
    pub now: Timestamp,
    /// All machines, if they were looked at since the last cycle.
    pub machines: Option<Arc<BTreeMap<HostId, Machine>>>,
    /// Whether steps have ended since the last cycle.
    pub steps_ended: bool,
    /// What the store holds.
    base: Arc<State>,
    state: Arc<State>,
    decision: Decision,
}

/// What was decided.
#[derive(Debug, Default)]
pub(crate) struct Decision {
    /// What is to be committed.
    pub entries: Entries,
    /// What is to be done to machines, once that is committed.
    pub steps: Vec<Step>,
    /// When something is to be decided next, by what the passes have said.
    pub wake_at: Option<Timestamp>,
    /// Hosts of which it is on record what was seen of them, once that is committed.
    pub recorded: BTreeSet<HostId>,
    /// What each pass has done, in their order.
    pub passes: Vec<PassReport>,
}

/// What a pass of a cycle has done, and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassReport {
    /// Its name.
    pub pass: &'static str,
    /// How many changes of records it has decided.
    pub changes: usize,
    /// How many steps it wants of machines, now or later.
    pub steps: usize,
    /// It has come to no end: it goes on in the next cycle.
    pub unfinished: bool,
    /// When it has something to decide next, if it is known.
    pub wakes_at: Option<Timestamp>,
}

impl Decision {
    /// Adds what was decided after it.
    pub fn extend(&mut self, later: Self) {
        self.entries.of_passes.extend(later.entries.of_passes);
        self.steps.extend(later.steps);
        self.wake_at = self.wake_at.into_iter().chain(later.wake_at).min();
        self.recorded.extend(later.recorded);
        self.passes.extend(later.passes);
    }

    /// How many changes were decided.
    fn changes(&self) -> usize {
        self.entries.of_passes.iter().map(Vec::len).sum()
    }
}

impl Draft {
    /// Nothing was decided yet.
    pub fn new(state: Arc<State>, now: Timestamp) -> Self {
        let base = Arc::clone(&state);
        Self { now, machines: None, steps_ended: false, base, state, decision: Decision::default() }
    }

    /// What became known since the last cycle: of all machines, if they were looked at, and that steps have ended.
    #[must_use]
    pub fn knowing(self, machines: Option<Arc<BTreeMap<HostId, Machine>>>, steps_ended: bool) -> Self {
        Self { machines, steps_ended, ..self }
    }

    /// What the store will hold once everything is committed that was decided so far. Its revision is no other draft's,
    /// nor the store's, unless nothing was decided.
    pub fn state(&self) -> Arc<State> {
        Arc::clone(&self.state)
    }

    /// Something is to be decided at these times.
    pub fn wake_at(&mut self, at: impl IntoIterator<Item = Timestamp>) {
        self.decision.wake_at = self.decision.wake_at.into_iter().chain(at).min();
    }

    /// This is to be done to machines.
    pub fn take_steps(&mut self, steps: Vec<Step>) {
        self.decision.steps.extend(steps);
    }

    /// What was seen of these hosts is on record then.
    pub fn record(&mut self, hosts: BTreeSet<HostId>) {
        self.decision.recorded.extend(hosts);
    }

    /// Enters what a pass has decided.
    pub fn enter(&mut self, decider: &Decider, entries: Vec<Entry>) {
        if entries.is_empty() {
            return;
        }
        let writes = entries.iter().flat_map(|entry| entry.commit.writes.iter().cloned()).collect();
        let entered = Arc::make_mut(&mut self.state).apply(writes, self.now);
        debug_assert!(entered.is_ok(), "a pass decides on what was decided before it: {entered:?}");
        if let Err(conflict) = entered {
            // The store has the last word on each change. What follows is decided on what it holds.
            tracing::error!(%conflict, "changes of a cycle contradict each other");
            self.state = Arc::clone(&self.base);
        }
        let revision = decider.progress().revision_of_draft(self.state.revision);
        Arc::make_mut(&mut self.state).revision = revision;
        self.decision.entries.of_passes.push(entries);
    }

    /// Has a pass decide, and notes what it has done.
    pub fn go_through(&mut self, pass: &'static str, decider: &Decider, decide: fn(&Decider, &mut Self)) {
        let (changes, steps) = (self.decision.changes(), self.decision.steps.len());
        let earlier = self.decision.wake_at.take();
        let unfinished_before = std::mem::take(&mut decider.progress().unfinished);
        decide(decider, self);
        let report = PassReport {
            pass,
            changes: self.decision.changes() - changes,
            steps: self.decision.steps.len() - steps,
            unfinished: decider.progress().unfinished,
            wakes_at: self.decision.wake_at,
        };
        decider.progress().unfinished |= unfinished_before;
        self.wake_at(earlier);
        self.decision.passes.push(report);
    }

    /// What was decided. What the store would hold is forgotten: a copy that is kept until the commit would have pages of
    /// the calendar copied once more.
    pub fn decided(self) -> Decision {
        self.decision
    }
}
