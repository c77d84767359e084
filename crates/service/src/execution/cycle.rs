//! One cycle.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleet::Machine;
use jiff::{SignedDuration, Timestamp};
use leases::ids::HostId;
use leases::plan::Step;
use leases::status::LeaseStatus;
use store::{LeaseRecord, StoreError};

use super::Execution;
use super::decide::{FIRST, PLANNING};
use super::draft::{Decision, Draft};
use super::pause::Pause;
use super::tour::Tour;
use super::{ClaimedStep, Cycle, Task, passes};
use crate::decider::Decider;
use crate::energy::PowerSaving;
use crate::state::State;
use crate::writing::Writer;

/// If nothing was done although something was due, not earlier than this it is looked at again.
const SOON: SignedDuration = SignedDuration::from_secs(1);
/// In so many cycles in a row nobody who waits to be started again is tried.
const MOST_LEFT_OUT: u32 = 3;

impl<'a> Execution<'a> {
    /// Goes through one cycle: records what became of steps, hands out looks at the fleet, heals, plans, commits,
    /// and claims what is due. [`crate::Service::run`] does this all the time; whoever calls it by hand, to have time
    /// and every task in its own hands, carries the tasks out with [`Execution::perform`] and
    /// [notes](Execution::note) them, or does not, as after a crash.
    pub async fn cycle(self) -> Cycle {
        // First, and not only if the store works: they count as under way from here on.
        let looks = self.looks(self.service.now());
        let writer = self.writer_for_cycle().await;
        let mut cycle = self.cycle_with(writer.as_ref()).await;
        drop(writer);
        self.end_cycle(&mut cycle).await;
        cycle.tasks.extend(looks.into_iter().map(Task::Look));
        cycle
    }

    /// Waits for the write lock, for a cycle.
    pub(super) async fn writer_for_cycle(self) -> Result<Writer<'a>, StoreError> {
        if self.service.progress().uncounted {
            self.service.count_what_is_held().await?;
            self.service.progress().uncounted = false;
        }
        self.service.loop_writer().await
    }

    /// Goes through one cycle with the write lock, if it could be had. Looks are begun elsewhere.
    pub(super) async fn cycle_with(self, writer: Result<&Writer<'_>, &StoreError>) -> Cycle {
        let now = self.service.now();
        let cycle = match writer {
            Ok(writer) => self.try_cycle(writer, now).await,
            Err(error) => return self.failed_cycle(error, now),
        };
        match cycle {
            Ok(cycle) => {
                let mut progress = self.service.progress();
                progress.stuck = 0;
                progress.failed = None;
                progress.cycles += 1;
                cycle
            }
            Err(error) => self.failed_cycle(&error, now),
        }
    }

    /// Records what neither due steps nor clients should wait for: steps have begun, and the write lock is free.
    pub(super) async fn end_cycle(self, cycle: &mut Cycle) {
        if !cycle.failed && self.record_occupants(self.service.now()).await {
            cycle.wake_at = self.service.now();
        }
    }

    fn failed_cycle(self, error: &StoreError, now: Timestamp) -> Cycle {
        // What suspends everything was said when it began.
        if !matches!(error, StoreError::Suspended(_)) {
            tracing::error!(%error, "store failed, retrying");
        }
        let mut progress = self.service.progress();
        // What healing decided may not be committed.
        progress.memos.to_heal = Tour::default();
        let wake_at = progress.retry_at(now);
        Cycle { tasks: Vec::new(), passes: Vec::new(), wake_at, failed: true, partial: false }
    }

    async fn try_cycle(self, writer: &Writer<'_>, now: Timestamp) -> Result<Cycle, StoreError> {
        {
            let mut progress = self.service.progress();
            (progress.others_committed, progress.unfinished) = (false, false);
        }
        let steps_ended = self.record_outcomes(writer).await?;
        if self.service.progress().seen_at.is_none() {
            // Nothing can be said of a fleet that was never seen.
            let wake_at = self.wake_at(now, None, false, &[]);
            return Ok(Cycle {
                tasks: Vec::new(),
                passes: Vec::new(),
                wake_at,
                failed: false,
                partial: false,
            });
        }
        let machines = self.service.progress().machines.take().map(Arc::new);
        let looked = machines.is_some();
        let state = self.service.snapshot();
        let draft = self.service.decider.draft(state, machines.clone(), steps_ended, now);
        let mut decision = self.service.decider.go_through(draft, FIRST.iter().chain(&PLANNING));
        let committed = self.commit_decision(writer, &mut decision, now).await?;
        if committed.rest {
            return Ok(self.partial_cycle(decision, machines, now));
        }
        let mut changed = committed.any;
        if !committed.all {
            // Somebody else was faster. Steps are for what is committed only.
            let passes = decision.passes;
            decision = self.service.decider.go_through(Draft::new(self.service.snapshot(), now), &PLANNING);
            decision.passes.splice(0..0, passes);
            let committed = self.commit_decision(writer, &mut decision, now).await?;
            if committed.rest {
                return Ok(self.partial_cycle(decision, machines, now));
            }
            changed |= committed.any;
        }
        let Decision { steps, wake_at, passes, .. } = decision;
        // Looks begin with the next cycle.
        changed |= PowerSaving::of(self.service).watch(now);
        changed |= self.service.progress().sight.wanted;
        changed |= self.count_guests(writer, looked, now).await;
        self.service.progress().wanted = Some(steps.iter().map(|step| step.action).collect());
        let partial = self.tidy(writer, &steps, looked, now).await?;
        changed |= partial;
        // With the write lock: what is due does not wait for what clients would commit first.
        let claimed = self.claim(&steps, now).await?;
        let pass_at = self.next_pass(now);
        let later = pass_at.filter(|at| *at > now);
        let wake_at = self.wake_at(now, wake_at.into_iter().chain(later).min(), changed, &claimed);
        let pass = pass_at.filter(|at| *at <= now).map(|_| self.begin_pass());
        let (left, lost) = machines
            .map_or_else(Default::default, |machines| (self.left_hosts(), self.lost_hosts(&machines)));
        let tasks = claimed.into_iter().map(Task::Step).chain(left.into_iter().map(Task::Abandon));
        let tasks = tasks.chain(lost.into_iter().map(Task::Adopt)).chain(pass).collect();
        Ok(Cycle { tasks, passes, wake_at, failed: false, partial })
    }

    /// Ends a cycle of which a transaction holds a part. The next one decides the rest, on what is committed now.
    fn partial_cycle(
        self,
        decision: Decision,
        machines: Option<Arc<BTreeMap<HostId, Machine>>>,
        now: Timestamp,
    ) -> Cycle {
        let mut progress = self.service.progress();
        if progress.machines.is_none() {
            progress.machines = machines.map(Arc::unwrap_or_clone);
        }
        Cycle { tasks: Vec::new(), passes: decision.passes, wake_at: now, failed: false, partial: true }
    }

    /// Steps that can be carried out now. What was planned for a host that is to be looked at first is planned
    /// again after that.
    pub(super) fn due(self, steps: &[Step], now: Timestamp) -> Vec<Step> {
        let progress = self.service.progress();
        let due = |step: &&Step| {
            step.not_before <= now
                && !progress.waits_for_a_look(step.action)
                && !progress.elsewhere.has(step.action)
        };
        steps.iter().filter(due).cloned().collect()
    }

    /// When to go through the next cycle.
    fn wake_at(
        self,
        now: Timestamp,
        planned: Option<Timestamp>,
        changed: bool,
        claimed: &[ClaimedStep],
    ) -> Timestamp {
        if changed {
            return now;
        }
        let (next_start, expiry) = {
            let state = self.service.state();
            let rules = &self.service.decider.settings.plan_rules;
            // Those that start sooner are planned for already.
            let next_start = state.leases.next_start(rules.horizon(now)).map(|start| rules.clears_at(start));
            (next_start, state.proposals.next_expiry())
        };
        let progress = self.service.progress();
        let questions = progress.in_flight.values().filter_map(|step| step.ask_again_at);
        // What is due at once and was not done waits for something else; a claimed step wakes us by itself.
        let planned = planned.map(|at| if at <= now { now + SOON } else { at });
        // One that is under way wakes us by itself. Leases that start later than this do so when they are made.
        let latest = now + self.service.decider.settings.observe_interval;
        let under_way = progress.looks_at_all().then_some(latest);
        let look = under_way.or(progress.looked_at_all.map(Pause::end)).unwrap_or(now);
        let pass_at = progress.unfinished.then(|| now + passes::AGAIN_AFTER);
        let pauses = [progress.memos.hunts_not_replanned, progress.memos.power_watched].into_iter().flatten();
        // A pause that has ended stays noted until its pass has something to do again.
        let pauses = pauses.filter(|pause| pause.lasts(now));
        let others = pauses.map(Pause::end).chain(expiry).chain(pass_at).chain(progress.elsewhere.wake_at());
        let next =
            questions.chain(planned).chain(next_start).chain(others).chain([look]).min().unwrap_or(look);
        if claimed.is_empty() && next <= now { now + SOON } else { next }
    }
}

impl Decider {
    /// What a cycle goes on from: the state, and what became known since the last one.
    pub(super) fn draft(
        &self,
        state: Arc<State>,
        machines: Option<Arc<BTreeMap<HostId, Machine>>>,
        steps_ended: bool,
        now: Timestamp,
    ) -> Draft {
        if machines.is_some() {
            // There may be room that was not seen before.
            let mut progress = self.progress();
            (progress.memos.queue_tried, progress.memos.relocations_tried) = (None, None);
        }
        Draft::new(state, now).knowing(machines, steps_ended)
    }

    /// Whether nobody who waits to be started again is tried in this cycle: if a lease starts or ends now, or a step has
    /// ended that one may have waited for; but not for long, since there may always be some.
    pub(crate) fn queue_may_wait(&self, state: &State, steps_ended: bool, now: Timestamp) -> bool {
        let starts = state.leases.pending().next().is_some_and(|record| record.lease.window.start() <= now);
        let ends = |record: &Arc<LeaseRecord>| {
            record.lease.status == LeaseStatus::Active && record.lease.window.end() <= now
        };
        let due = steps_ended || starts || state.leases.going().any(ends);
        let mut progress = self.progress();
        let left_out = due && progress.memos.queue_left_out < MOST_LEFT_OUT;
        progress.memos.queue_left_out = if left_out { progress.memos.queue_left_out + 1 } else { 0 };
        progress.unfinished |= left_out;
        left_out
    }
}
