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
#[derive(Default)]
pub(crate) struct Decision {
    /// What is to be committed.
    pub entries: Entries,
    /// What is to be done to machines, once that is committed.
    pub steps: Vec<Step>,
    /// When something is to be decided next, by what the passes have said.
    pub wake_at: Option<Timestamp>,
    /// Hosts of which it is on record what was seen of them, once that is committed.
    pub recorded: BTreeSet<HostId>,
}

impl Draft {
    /// Nothing was decided yet.
    pub fn new(state: Arc<State>, now: Timestamp) -> Self {
        let base = Arc::clone(&state);
        Self { now, machines: None, steps_ended: false, base, state, decision: Decision::default() }
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

    /// How many changes were decided.
    pub fn changes(&self) -> usize {
        self.decision.entries.of_passes.iter().map(Vec::len).sum()
    }

    /// What was decided. What the store would hold is forgotten: a copy that is kept until the commit would have pages of
    /// the calendar copied once more.
    pub fn decided(self) -> Decision {
        self.decision
    }
}
