//! Changes to the state: one writer at a time decides on the store's contents, commits, and then shows the
//! result.
//!
//! Other services can share the store, so each writer first loads their commits. If another service commits
//! after that, the store rejects this commit and the decision is made again.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use jiff::{SignedDuration, Timestamp};
use leases::hints::Hints;
use leases::ids::{GuestId, HostId};
use leases::terms::ReservationTerms;
use store::{
    Advance, AuditRecord, Changes, Commit, CommitError, HostRecord, InstanceRecord, LeaseRecord, StoreError,
    TooLarge, Wording, Write, WriteLimits, WriteSize, lease_text,
};
use tokio::sync::MutexGuard;

use crate::client::{Client, Gone};
use crate::cost;
use crate::effects;
use crate::entries::{Committed, Effect, Entries, Entry};
use crate::meter::Meter;
use crate::places::{Kind, Place, Who};
use crate::service::Service;
use crate::state::State;
use crate::types::{Caller, ServiceError};

/// Interval between comparisons of the clock with the store's.
const COMPARE_CLOCKS_EVERY: SignedDuration = SignedDuration::from_secs(10);

/// The write lock. When it is acquired, memory is up to date with the store.
pub(crate) struct Writer<'a> {
    service: &'a Service,
    /// Charges for the time that the lock is held. Declared before the place, so that the next request is
    /// chosen after the charge.
    pub meter: Meter<'a>,
    _place: Place,
    /// The turn of decisions in several parts, if this writer has it: the next such decision starts from this
    /// writer's commit.
    pub turn: Option<Place>,
}

/// Reason why nothing can be changed now.
pub(crate) enum NoWriter {
    Store(StoreError),
    /// The client disconnected.
    Gone,
    /// Every attempt conflicted with other commits.
    Overtaken,
}

impl From<StoreError> for NoWriter {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Gone> for NoWriter {
    fn from(Gone: Gone) -> Self {
        Self::Gone
    }
}

impl From<NoWriter> for ServiceError {
    fn from(why: NoWriter) -> Self {
        match why {
            NoWriter::Store(error) => error.into(),
            NoWriter::Gone => Gone.into(),
            NoWriter::Overtaken => conflict_error(),
        }
    }
}

impl From<Gone> for ServiceError {
    fn from(Gone: Gone) -> Self {
        Self::Gone
    }
}

/// The right to update memory. Held during a commit and until memory contains it, never during a decision.
pub(crate) type Memory<'a> = MutexGuard<'a, ()>;

/// Wakes the loop if it is dropped unsettled, also when the call is canceled, because the commit might have
/// succeeded.
struct UncertainCommit<'a> {
    service: &'a Service,
    settled: bool,
}

impl Drop for UncertainCommit<'_> {
    fn drop(&mut self) {
        if !self.settled {
            self.service.wake.notify_one();
        }
    }
}

impl Service {
    /// Rejects a request for `times` leases before it is decided if it would write more than a transaction
    /// can. Also estimates the cost of its writes.
    pub(crate) fn check_writes<'a>(
        &self,
        reservations: impl IntoIterator<Item = (&'a ReservationTerms, Option<&'a Wording>)> + Clone,
        hints: &Hints,
        times: usize,
    ) -> Result<(), TooLarge> {
        let settings = &self.decider.settings;
        settings.writes.check_text(0, lease_text(reservations.clone(), hints))?;
        let least = WriteSize::of_new_leases(reservations.clone(), hints, times as u64);
        settings.writes.check(least)?;
        if let Some(client) = Client::current() {
            let rows: u64 = reservations.into_iter().map(|(terms, _)| u64::from(terms.number())).sum();
            let rows = rows.saturating_mul(times as u64).max(least.rows);
            // A more expensive request is rejected before it writes.
            client.expects(cost::of_write(WriteSize { rows, ..least }).min(settings.decision_work));
        }
        Ok(())
    }

    /// Estimates the cost of rewriting a lease, so that it is known before the client gets its turn.
    pub(crate) fn expect_rewritten(&self, record: &LeaseRecord) {
        if let Some(client) = Client::current() {
            let reservations = record.lease.reservations.iter();
            let rows = reservations.map(|one| u64::from(one.terms.number())).sum();
            client.expects(
                cost::of_write(WriteSize { rows, bytes: 0 }).min(self.decider.settings.decision_work),
            );
        }
    }

    /// Waits for the write lock on behalf of a client, and loads commits of other services.
    pub(crate) async fn writer(&self) -> Result<Writer<'_>, NoWriter> {
        self.writer_in(self.place(Kind::Write).await?).await.map_err(NoWriter::from)
    }

    /// Like [`Self::writer`], for the loop, which goes before all clients.
    pub(crate) async fn loop_writer(&self) -> Result<Writer<'_>, StoreError> {
        self.writer_in(self.places.enter(Kind::Write, Who::Loop, 0).await).await
    }

    async fn writer_in(&self, place: Place) -> Result<Writer<'_>, StoreError> {
        let writer = Writer { service: self, meter: self.meter(), _place: place, turn: None };
        self.refuse_suspended().await?;
        self.update().await?;
        Ok(writer)
    }

    /// Loads commits of other services, so that the next read isn't older than this call. Doesn't wait for
    /// decisions. Does nothing if the store has no clock of its own: such a store isn't shared.
    pub async fn refresh(&self) -> Result<(), ServiceError> {
        if self.progress().shares_clock() {
            self.update().await?;
        }
        Ok(())
    }

    /// Brings memory up to date, including running commits.
    pub(crate) async fn update(&self) -> Result<(), StoreError> {
        self.compare_clocks().await?;
        let memory = self.memory().await;
        self.learn(&memory).await
    }

    /// Waits until running commits are in memory, and blocks new ones.
    pub(crate) async fn memory(&self) -> Memory<'_> {
        self.memory.lock().await
    }

    async fn learn(&self, memory: &Memory<'_>) -> Result<(), StoreError> {
        if self.take_over_changes(memory).await? {
            self.wake_for_others().await;
        }
        Ok(())
    }

    /// Returns whether anything has changed.
    async fn take_over_changes(&self, memory: &Memory<'_>) -> Result<bool, StoreError> {
        let known = self.state().revision;
        // A poisoned lock means that a change panicked halfway.
        if self.contradicted.load(Ordering::Acquire) || self.state.is_poisoned() {
            return self.load(memory).await.map(|()| true);
        }
        let delta = match self.parts.store.changes_since(known).await? {
            Changes::Delta(delta) if delta.revision == known => return Ok(false),
            Changes::Delta(delta) => delta,
            Changes::Reload => return self.load(memory).await.map(|()| true),
        };
        // Another service has carried out these steps.
        let steps: Vec<_> = delta.steps.keys().copied().collect();
        let leases: Vec<_> = delta.leases.keys().copied().collect();
        let instances: Vec<_> = delta.instances.keys().copied().collect();
        let mut outdated = self.switched_by_others(&delta.hosts);
        outdated.extend(self.moved_by_others(&delta.instances));
        let taken_over = self.change_state(|state| state.take_over(*delta, self.now()));
        if let Err(conflict) = taken_over {
            tracing::warn!(%conflict, "other commits contradict memory, reloading");
            self.contradicted.store(true, Ordering::Release);
            return self.load(memory).await.map(|()| true);
        }
        let mut progress = self.progress();
        progress.others_committed = true;
        progress.told.extend(leases);
        progress.told_of_instances.extend(instances);
        for host in outdated {
            progress.look_at(host, None);
        }
        for step in steps {
            progress.look_at_effect(step, None);
        }
        drop(progress);
        self.changes.send_modify(|count| *count += 1);
        Ok(true)
    }

    /// Hosts whose power state changed. They are observed again before cached observations are used.
    fn switched_by_others(&self, hosts: &BTreeMap<HostId, Option<HostRecord>>) -> Vec<HostId> {
        let state = self.state();
        let switched = hosts.iter().filter(|(id, after)| {
            let before = state.hosts.get(id).map(|record| &record.host.power.state);
            before != after.as_ref().map(|record| &record.host.power.state)
        });
        switched.map(|(id, _)| *id).collect()
    }

    /// Former and present hosts of instances that moved. Nothing else reports a successful move, because a
    /// revision contains only the step outcomes that are remembered.
    fn moved_by_others(&self, instances: &BTreeMap<GuestId, Option<InstanceRecord>>) -> Vec<HostId> {
        let state = self.state();
        let moved = instances.iter().filter_map(|(id, after)| {
            let before = state.instances.get(*id)?.instance.host;
            let after = after.as_ref()?.instance.host;
            (before != after).then_some([before, after])
        });
        moved.flatten().collect()
    }

    async fn load(&self, _: &Memory<'_>) -> Result<(), StoreError> {
        let snapshot = self.parts.store.load().await?;
        let state = State::new(snapshot, self.decider.settings.cleaning_time, self.now())
            .map_err(|conflict| StoreError::Corrupt(conflict.to_string()))?;
        self.change_state(|old| *old = State { admission_changes: old.admission_changes + 1, ..state });
        self.progress().others_committed = true;
        self.state.clear_poison();
        self.contradicted.store(false, Ordering::Release);
        self.changes.send_modify(|count| *count += 1);
        Ok(())
    }

    /// Compares the clock with the store's, at most once per `COMPARE_CLOCKS_EVERY`. A service with a wrong
    /// clock changes nothing: it would start and end leases at the wrong time.
    async fn compare_clocks(&self) -> Result<(), StoreError> {
        let before = self.now();
        let last = self.progress().clocks_compared_at;
        if last.is_some_and(|last| before.duration_since(last).abs() < COMPARE_CLOCKS_EVERY) {
            return Ok(());
        }
        let theirs = self.parts.store.now().await?;
        let after = self.now();
        let skew = theirs.map(|theirs| skew(theirs, before, after));
        {
            // A slow comparison is imprecise, so the last estimate is kept if it is within the bounds of this
            // one.
            let mut progress = self.progress();
            let known = progress.clock_ahead.unwrap_or_default();
            progress.clock_ahead = theirs
                .map(|theirs| known.max(before.duration_since(theirs)).min(after.duration_since(theirs)));
        }
        let bound = self.decider.settings.longest_clock_skew;
        if let Some(skew) = skew.filter(|skew| skew.abs() > bound) {
            return Err(StoreError::ClockSkew { skew, bound });
        }
        self.progress().clocks_compared_at = Some(before);
        Ok(())
    }

    /// The present, with the precision of stores. Read once per request.
    pub fn now(&self) -> Timestamp {
        truncate_to_stored_precision(self.parts.clock.now())
    }
}

/// The instant with the precision of stores, which is a microsecond.
pub(crate) fn truncate_to_stored_precision(instant: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(instant.as_microsecond()).unwrap_or(instant)
}

/// Minimum amount by which our clock is ahead of the store's, or behind it if negative. The store's clock
/// showed `theirs` between our readings `before` and `after`.
fn skew(theirs: Timestamp, before: Timestamp, after: Timestamp) -> SignedDuration {
    if theirs < before {
        before.duration_since(theirs)
    } else if theirs > after {
        after.duration_since(theirs)
    } else {
        SignedDuration::ZERO
    }
}

impl Writer<'_> {
    /// Commits, and shows the result. After an error, the store's contents are unknown until the next writer
    /// reads them.
    ///
    /// From here on, the request is completed even if its client disconnects.
    pub async fn commit(&self, commit: Commit) -> Result<(), CommitError> {
        self.commit_within(commit, None).await
    }

    /// Commits a client's request, unless it exceeds the size limit of a transaction.
    pub async fn commit_request(&self, commit: Commit) -> Result<(), CommitError> {
        self.commit_within(commit, Some(&self.service.decider.settings.writes)).await
    }

    async fn commit_within(
        &self,
        mut commit: Commit,
        limits: Option<&WriteLimits>,
    ) -> Result<(), CommitError> {
        let memory = self.service.memory().await;
        self.service.account(&mut commit);
        let prepares = self.service.parts.fleet.prepares();
        let metered = self.service.decider.settings.metered;
        crate::notices::complete(&mut commit, &self.service.state(), prepares, metered);
        let mut displaced =
            self.service.state().displacing_offers(&commit.writes, self.service.hint_rules(), commit.at);
        if !displaced.is_empty() {
            tracing::info!(offers = displaced.len(), "offers withdrawn");
            displaced.append(&mut commit.writes);
            commit.writes = displaced;
        }
        let size = size_of(&commit, &self.service.state());
        if let Some(limits) = limits {
            limits.check(size)?;
        }
        self.meter.count(cost::of_write(size));
        if let Some(client) = Client::current() {
            client.commits();
        }
        let mut uncertain = UncertainCommit { service: self.service, settled: false };
        let advance = self.service.parts.store.commit(&commit).await?;
        uncertain.settled = true;
        if advance.from == self.service.state().revision {
            let applied = self.service.change_state(|state| state.apply(commit.writes, commit.at));
            debug_assert!(applied.is_ok(), "the store rejects contradictory writes: {applied:?}");
            if let Err(conflict) = applied {
                tracing::error!(%conflict, "own commit contradicts memory, reloading");
                self.service.contradicted.store(true, Ordering::Release);
            }
        }
        self.advanced(&memory, advance).await;
        self.service.waiting.wake(&commit.notifications);
        Ok(())
    }

    /// Commits the first changes, as many as fit into one transaction, and at least one, which is never
    /// split.
    ///
    /// Tries a single commit with all changes. If it is rejected, tries one commit per pass, and then one per
    /// change, so that an impossible change doesn't hold up the rest. Rejected and remaining changes must be
    /// decided again.
    pub async fn commit_entries(&self, entries: Entries, now: Timestamp) -> Result<Committed, StoreError> {
        let mut passes = entries.of_passes;
        passes.retain(|entries| !entries.is_empty());
        let mut committed = Committed { any: false, all: true, rest: false };
        loop {
            let count: usize = passes.iter().map(Vec::len).sum();
            if count == 0 {
                return Ok(committed);
            }
            match self.answered(together(passes.iter().flatten(), now), count > 1).await? {
                Answer::Accepted => {
                    for entry in passes.into_iter().flatten() {
                        self.follow_up(entry.effects);
                    }
                    return Ok(Committed { any: true, all: !committed.rest, ..committed });
                }
                Answer::TooLarge(why) => {
                    committed.rest = true;
                    truncate(&mut passes, why.part_of(count));
                }
                Answer::Refused => break,
            }
        }
        committed.all = false;
        let several = passes.len() > 1;
        for entries in passes {
            if several && self.accepted(together(&entries, now)).await? {
                for entry in entries {
                    self.follow_up(entry.effects);
                }
                committed.any = true;
                continue;
            }
            let alone = entries.len() == 1;
            for entry in entries.into_iter().filter(|_| !alone) {
                if self.accepted(entry.commit).await? {
                    self.follow_up(entry.effects);
                    committed.any = true;
                }
            }
        }
        Ok(committed)
    }

    fn follow_up(&self, effects: Vec<Effect>) {
        for effect in effects {
            effects::carry_out(effect, self.service);
        }
    }

    /// Commits, and returns whether the commit was accepted.
    async fn accepted(&self, commit: Commit) -> Result<bool, StoreError> {
        Ok(matches!(self.answered(commit, false).await?, Answer::Accepted))
    }

    /// Commits, with the size limit of a transaction if `limited`.
    async fn answered(&self, commit: Commit, limited: bool) -> Result<Answer, StoreError> {
        let changes = commit.writes.len();
        let limits = limited.then_some(&self.service.decider.settings.writes);
        match self.commit_within(commit, limits).await {
            Ok(()) => Ok(Answer::Accepted),
            Err(CommitError::Store(error)) => Err(error),
            Err(CommitError::TooLarge(why)) => Ok(Answer::TooLarge(why)),
            Err(refused) => {
                tracing::warn!(%refused, changes, "commit conflict, retrying");
                Ok(Answer::Refused)
            }
        }
    }

    /// Commits one record with an audit record.
    pub async fn write_one(
        &self,
        caller: &Caller,
        action: &str,
        object: &str,
        write: Write,
    ) -> Result<(), ServiceError> {
        let now = self.service.now();
        let mut commit = Commit::new(now);
        commit.audit.push(audit(caller, now, action, &object));
        commit.writes.push(write);
        let committed = self.commit(commit).await;
        committed.map_err(|error| retry_on_conflict(error).err().unwrap_or_else(conflict_error))
    }

    /// Records the revision made by the store. If it is based on the revision in memory, memory already
    /// contains the change. Otherwise loads the commits that other services made in between.
    pub async fn advanced(&self, memory: &Memory<'_>, advance: Advance) {
        let known = self.service.state().revision;
        if advance.from == known {
            self.service.change_state(|state| state.revision = advance.to);
        } else if let Err(error) = self.service.learn(memory).await {
            // The own commit succeeded nevertheless.
            tracing::warn!(%error, "other commits unknown, retrying");
            self.service.wake.notify_one();
        }
        self.service.changes.send_modify(|count| *count += 1);
    }
}

/// Answer to a commit by the store or by the size limit.
enum Answer {
    Accepted,
    Refused,
    TooLarge(TooLarge),
}

/// Keeps the first `count` changes.
fn truncate(passes: &mut Vec<Vec<Entry>>, mut count: usize) {
    for entries in passes.iter_mut() {
        entries.truncate(count);
        count -= entries.len();
    }
    passes.retain(|entries| !entries.is_empty());
}

/// Combines changes into one commit.
fn together<'e>(entries: impl IntoIterator<Item = &'e Entry>, now: Timestamp) -> Commit {
    let mut commit = Commit::new(now);
    for Entry { commit: one, .. } in entries {
        commit.writes.extend_from_slice(&one.writes);
        commit.notifications.extend_from_slice(&one.notifications);
        commit.slept.extend_from_slice(&one.slept);
    }
    commit
}

/// Size of a commit's writes.
pub(crate) fn size_of(commit: &Commit, state: &State) -> WriteSize {
    commit.size(|id| state.leases.get(id).map(|record| &**record))
}

/// Error for the client after a failed commit, or `Ok` if the decision must be made again.
pub(crate) fn retry_on_conflict(error: CommitError) -> Result<(), ServiceError> {
    match error {
        CommitError::Stale { .. }
        | CommitError::Taken { .. }
        | CommitError::NoRoom(_)
        | CommitError::Repeated(_) => Ok(()),
        error @ (CommitError::InUse { .. } | CommitError::Exists { .. }) => {
            Err(ServiceError::Conflict(error.to_string()))
        }
        CommitError::TooLarge(error) => Err(error.into()),
        CommitError::Store(error) => Err(error.into()),
    }
}

/// Every attempt conflicted with other commits.
pub(crate) fn conflict_error() -> ServiceError {
    ServiceError::Conflict("others were faster each time; try again".to_owned())
}

pub(crate) fn audit(caller: &Caller, at: Timestamp, action: &str, object: &impl ToString) -> AuditRecord {
    AuditRecord {
        at,
        user: caller.user.clone(),
        project: caller.project.clone(),
        request_id: caller.request_id.clone(),
        action: action.to_owned(),
        object: object.to_string(),
        protected: caller.administrator,
    }
}
