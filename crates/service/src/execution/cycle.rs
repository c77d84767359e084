//! One cycle of the loop.

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
use super::pass_cursor::PassCursor;
use super::pause::Pause;
use super::{ClaimedStep, Cycle, Task, passes};
use crate::decider::Decider;
use crate::energy::PowerSaving;
use crate::state::State;
use crate::writing::Writer;

/// Minimum delay before the next cycle if something was due but nothing could be done.
const SOON: SignedDuration = SignedDuration::from_secs(1);
/// Maximum number of consecutive cycles that skip queued instances.
const MOST_LEFT_OUT: u32 = 3;

impl<'a> Execution<'a> {
    /// Runs one cycle: hands out observations of the fleet, records results of steps, heals, plans, commits,
    /// and claims due steps. [`crate::Service::run`] does this in a loop. A caller that controls time and
    /// tasks itself carries out the tasks with [`Execution::perform`] and [notes](Execution::note) the
    /// results, or drops them to simulate a crash.
    pub async fn cycle(self) -> Cycle {
        // First, and even if the store fails: from here on, the looks count as in progress.
        let looks = self.looks(self.service.now());
        let writer = self.writer_for_cycle().await;
        let mut cycle = self.cycle_with(writer.as_ref()).await;
        drop(writer);
        self.end_cycle(&mut cycle).await;
        cycle.tasks.extend(looks.into_iter().map(Task::Look));
        cycle
    }

    /// Waits for the write lock for a cycle.
    pub(super) async fn writer_for_cycle(self) -> Result<Writer<'a>, StoreError> {
        if self.service.progress().uncounted {
            self.service.count_what_is_held().await?;
            self.service.progress().uncounted = false;
        }
        self.service.loop_writer().await
    }

    /// Runs a cycle with the write lock, or handles the failure to get it. The caller begins looks.
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

    /// Records occupants of leased hosts. Called after steps have begun and the write lock is released, so
    /// that neither due steps nor clients wait for it.
    pub(super) async fn end_cycle(self, cycle: &mut Cycle) {
        if !cycle.failed && self.record_occupants(self.service.now()).await {
            cycle.wake_at = self.service.now();
        }
    }

    fn failed_cycle(self, error: &StoreError, now: Timestamp) -> Cycle {
        // The cause of a suspension was logged when it began.
        if !matches!(error, StoreError::Suspended(_)) {
            tracing::error!(%error, "store failed, retrying");
        }
        let mut progress = self.service.progress();
        // Changes decided by healing may not be committed.
        progress.memos.to_heal = PassCursor::default();
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
            // Without any observation of the fleet, nothing can be decided.
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
            // Another commit was faster. Plan again, because steps are only taken for committed changes.
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
        // The next cycle begins the looks.
        changed |= PowerSaving::of(self.service).watch(now);
        changed |= self.service.progress().sight.wanted;
        changed |= self.count_guests(writer, looked, now).await;
        self.service.progress().wanted = Some(steps.iter().map(|step| step.action).collect());
        let partial = self.tidy(writer, &steps, looked, now).await?;
        changed |= partial;
        // Claim with the write lock held, so that due steps don't wait for commits of clients.
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

    /// Ends a cycle that committed only part of its changes because of the transaction limit. The next cycle
    /// decides the rest on the committed state.
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

    /// Steps that can be carried out now. Steps on hosts that must be observed first are planned again after
    /// that.
    pub(super) fn due(self, steps: &[Step], now: Timestamp) -> Vec<Step> {
        let progress = self.service.progress();
        let due = |step: &&Step| {
            step.not_before <= now
                && !progress.waits_for_a_look(step.action)
                && !progress.elsewhere.has(step.action)
        };
        steps.iter().filter(due).cloned().collect()
    }

    /// Time of the next cycle.
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
            // The plan includes leases that start within its horizon.
            let next_start = state.leases.next_start(rules.horizon(now)).map(|start| rules.clears_at(start));
            (next_start, state.proposals.next_expiry())
        };
        let progress = self.service.progress();
        let questions = progress.in_flight.values().filter_map(|step| step.ask_again_at);
        // A planned step that is due but was not claimed waits for something else. A claimed step wakes the
        // loop when it ends.
        let planned = planned.map(|at| if at <= now { now + SOON } else { at });
        // A look in progress wakes the loop when it ends. Leases that start before then wake the loop when
        // they are created.
        let latest = now + self.service.decider.settings.observe_interval;
        let under_way = progress.looks_at_all().then_some(latest);
        let look = under_way.or(progress.looked_at_all.map(Pause::end)).unwrap_or(now);
        let pass_at = progress.unfinished.then(|| now + passes::AGAIN_AFTER);
        let pauses = [progress.memos.hunts_not_replanned, progress.memos.power_watched].into_iter().flatten();
        // A pause that has ended stays recorded until its pass has work again.
        let pauses = pauses.filter(|pause| pause.lasts(now));
        let others = pauses.map(Pause::end).chain(expiry).chain(pass_at).chain(progress.elsewhere.wake_at());
        let next =
            questions.chain(planned).chain(next_start).chain(others).chain([look]).min().unwrap_or(look);
        if claimed.is_empty() && next <= now { now + SOON } else { next }
    }
}

impl Decider {
    /// Input of a cycle: the state, and the news since the last cycle.
    pub(super) fn draft(
        &self,
        state: Arc<State>,
        machines: Option<Arc<BTreeMap<HostId, Machine>>>,
        steps_ended: bool,
        now: Timestamp,
    ) -> Draft {
        if machines.is_some() {
            // The new observation can show capacity that was unknown before.
            let mut progress = self.progress();
            (progress.memos.queue_tried, progress.memos.relocations_tried) = (None, None);
        }
        Draft::new(state, now).knowing(machines, steps_ended)
    }

    /// Whether this cycle skips queued instances because a lease starts or ends now, or because a step has
    /// ended that a lease might have waited for. Limited to [`MOST_LEFT_OUT`] cycles in a row, because
    /// otherwise queued instances might never start.
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
