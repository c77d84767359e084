//! Decision of a cycle before it is committed.
//!
//! Each pass of a cycle sees the state with all earlier changes of the cycle applied. All changes are then
//! committed together, so a cycle takes one transaction regardless of the number of passes that changed
//! something.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleet::Machine;
use jiff::Timestamp;
use leases::ids::HostId;
use leases::plan::Step;

use crate::decider::Decider;
use crate::entries::{Entries, Entry};
use crate::state::State;

/// A decision in progress.
pub(crate) struct Draft {
    /// Start of the cycle.
    pub now: Timestamp,
    /// All machines, if they were observed since the last cycle.
    pub machines: Option<Arc<BTreeMap<HostId, Machine>>>,
    /// Whether steps have ended since the last cycle.
    pub steps_ended: bool,
    /// State of the store.
    base: Arc<State>,
    state: Arc<State>,
    decision: Decision,
}

/// Changes and steps that passes have decided.
#[derive(Debug, Default)]
pub(crate) struct Decision {
    /// Changes to commit.
    pub entries: Entries,
    /// Steps on machines, after the commit.
    pub steps: Vec<Step>,
    /// Earliest time at which a pass must decide again.
    pub wake_at: Option<Timestamp>,
    /// Hosts with their latest observation on record after the commit.
    pub recorded: BTreeSet<HostId>,
    /// Reports of the passes, in order.
    pub passes: Vec<PassReport>,
}

/// Work that a pass of a cycle has done, and its next time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassReport {
    pub pass: &'static str,
    /// Number of changes to records.
    pub changes: usize,
    /// Number of steps that it wants now or later.
    pub steps: usize,
    /// Whether the next cycle must continue the pass.
    pub unfinished: bool,
    /// Next time that the pass must decide something, if known.
    pub wakes_at: Option<Timestamp>,
}

impl Decision {
    /// Adds a later decision.
    pub fn extend(&mut self, later: Self) {
        self.entries.of_passes.extend(later.entries.of_passes);
        self.steps.extend(later.steps);
        self.wake_at = self.wake_at.into_iter().chain(later.wake_at).min();
        self.recorded.extend(later.recorded);
        self.passes.extend(later.passes);
    }

    /// Number of changes.
    fn changes(&self) -> usize {
        self.entries.of_passes.iter().map(Vec::len).sum()
    }
}

impl Draft {
    /// An empty draft on this state.
    pub fn new(state: Arc<State>, now: Timestamp) -> Self {
        let base = Arc::clone(&state);
        Self { now, machines: None, steps_ended: false, base, state, decision: Decision::default() }
    }

    /// Adds the news since the last cycle: all machines, if they were observed, and whether steps have ended.
    #[must_use]
    pub fn knowing(self, machines: Option<Arc<BTreeMap<HostId, Machine>>>, steps_ended: bool) -> Self {
        Self { machines, steps_ended, ..self }
    }

    /// The state with all changes so far applied. Its revision is unique to this draft, or the store's if
    /// there are no changes.
    pub fn state(&self) -> Arc<State> {
        Arc::clone(&self.state)
    }

    /// Requests a decision at these times.
    pub fn wake_at(&mut self, at: impl IntoIterator<Item = Timestamp>) {
        self.decision.wake_at = self.decision.wake_at.into_iter().chain(at).min();
    }

    /// Adds steps on machines.
    pub fn take_steps(&mut self, steps: Vec<Step>) {
        self.decision.steps.extend(steps);
    }

    /// Marks the latest observations of these hosts as on record after the commit.
    pub fn record(&mut self, hosts: BTreeSet<HostId>) {
        self.decision.recorded.extend(hosts);
    }

    /// Adds changes of a pass and applies them to the state.
    pub fn enter(&mut self, decider: &Decider, entries: Vec<Entry>) {
        if entries.is_empty() {
            return;
        }
        let writes = entries.iter().flat_map(|entry| entry.commit.writes.iter().cloned()).collect();
        let entered = Arc::make_mut(&mut self.state).apply(writes, self.now);
        debug_assert!(entered.is_ok(), "a pass contradicts an earlier pass: {entered:?}");
        if let Err(conflict) = entered {
            // The store has the last word on each change. Later passes decide on the store's state.
            tracing::error!(%conflict, "changes of a cycle contradict each other");
            self.state = Arc::clone(&self.base);
        }
        let revision = decider.progress().revision_of_draft(self.state.revision);
        Arc::make_mut(&mut self.state).revision = revision;
        self.decision.entries.of_passes.push(entries);
    }

    /// Runs a pass and records its report.
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

    /// Returns the decision and drops the state. If the state were kept until the commit, pages of the
    /// calendar would have to be copied once more.
    pub fn decided(self) -> Decision {
        self.decision
    }
}
