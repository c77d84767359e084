//! Removes records that are no longer needed: a bounded amount in each cycle, so that due leases never wait
//! for more than that.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use leases::plan::{Action, Step};
use store::{Commit, JournalSize, LeaseRecord, StoreError, WriteSize};

use super::Execution;
use super::pause::Pause;
use crate::entries::{Committed, Entries, Entry};
use crate::notices::{self, notice};
use crate::proposals::forget;
use crate::traces::Traces;
use crate::writing::Writer;

/// Interval of removing old records.
const INTERVAL: SignedDuration = SignedDuration::from_mins(10);
/// Name of the role of the service that does so.
const ROLE: &str = "tidying";
/// Retention of failures of a step that is no longer wanted.
const KEEP_FAILURES: SignedDuration = SignedDuration::from_hours(1);
/// Maximum number of a project's leases that are kept after they have ended: about 90 MB of memory. Otherwise
/// a user who creates one-minute leases all day would slow down everyone.
const LEASES_OF_PROJECT: usize = 10_000;
/// Maximum number of leases that a cycle removes.
const LEASES_AT_ONCE: usize = 200;
/// Maximum number of records of each other kind that a cycle removes.
const RECORDS_AT_ONCE: u32 = 2000;
/// Interval of writing counts of refused requests.
const WRITE_REFUSALS_EVERY: SignedDuration = SignedDuration::from_mins(1);
/// Maximum number of these counts that a cycle writes.
const REFUSALS_AT_ONCE: usize = 250;

impl Execution<'_> {
    /// Removes a part of the old records. Returns whether there is more to do immediately.
    ///
    /// A failure of the store while removing doesn't keep the loop from carrying out leases. The removal is
    /// tried again at the next interval.
    pub(super) async fn tidy(
        self,
        writer: &Writer<'_>,
        wanted: &[Step],
        looked: bool,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let written = self.service.progress().memos.refusals_written;
        if !written.is_some_and(|pause| pause.lasts(now)) && self.write_refusals(REFUSALS_AT_ONCE).await {
            self.service.progress().memos.refusals_written = Some(Pause::of(now, WRITE_REFUSALS_EVERY));
        }
        let lately = self.service.progress().memos.tidied.is_some_and(|pause| pause.lasts(now));
        if looked && !lately {
            self.begin_tidying(writer, wanted, now).await?;
        }
        if !self.service.progress().tidying.more {
            return Ok(false);
        }
        match self.tidy_some(writer, now).await {
            Ok(more) => {
                self.service.progress().tidying.more = more;
                Ok(more)
            }
            Err(error) => {
                tracing::warn!(%error, "tidying failed");
                self.service.progress().tidying.more = false;
                Ok(false)
            }
        }
    }

    /// Writes counts of refused requests, at most `most` records. Counts that the store doesn't accept are
    /// lost. Returns whether there were any.
    pub(super) async fn write_refusals(self, most: usize) -> bool {
        let refusals = self.service.refusals.take(most);
        if refusals.is_empty() {
            return false;
        }
        if let Err(error) = self.service.parts.store.add_refusals(&refusals).await {
            tracing::warn!(%error, records = refusals.len(), "refused requests not counted");
        }
        true
    }

    async fn begin_tidying(
        self,
        writer: &Writer<'_>,
        wanted: &[Step],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.service.progress().memos.tidied = Some(Pause::of(now, INTERVAL));
        self.service.change_state(|state| {
            state.calendar.prune(now);
            state.offered.prune(now);
        });
        let store = &self.service.parts.store;
        let sizes = store.sizes().await?;
        self.service.progress().tidying.sizes = sizes;
        // One of the services that share the store is enough.
        let leads =
            store.lead(ROLE, &self.service.decider.settings.holder, now, now + INTERVAL + INTERVAL).await?;
        {
            let mut progress = self.service.progress();
            progress.tidying.more = leads;
            progress.tidying.oversized = None;
        }
        let gone = if leads { self.forgettable_steps(wanted, now) } else { Vec::new() };
        if !gone.is_empty() {
            let memory = self.service.memory().await;
            let advance = store.prune_steps(&gone).await?;
            self.service.change_state(|state| {
                for action in &gone {
                    state.history.failures.remove(action);
                    state.history.done.remove(action);
                }
            });
            if let Some(advance) = advance {
                writer.advanced(&memory, advance).await;
            }
        }
        Ok(())
    }

    async fn tidy_some(self, writer: &Writer<'_>, now: Timestamp) -> Result<bool, StoreError> {
        let store = &self.service.parts.store;
        let before = |kept: SignedDuration| now.checked_sub(kept).unwrap_or(Timestamp::MIN);
        let mut more = self.forget_ended(writer, now).await?;
        let records = before(self.service.decider.settings.keep_records);
        let undelivered = before(self.service.decider.settings.keep_undelivered);
        more |= store.prune(records, undelivered, RECORDS_AT_ONCE).await?;
        more |= self.trim_journals().await?;
        let settings = &self.service.decider.settings;
        let usage = settings.keep_usage.map(before);
        if let Some(usage) = usage {
            more |= store.prune_usage(usage, RECORDS_AT_ONCE).await?;
        }
        more |= store.prune_occupancy(usage, settings.keep_bytes, RECORDS_AT_ONCE).await?;
        more |= store.reclaim().await?;
        Ok(more)
    }

    /// Counts new records of journals. Then removes a batch of the oldest records of a project that exceeds its limit.
    /// Returns whether there is more to do.
    async fn trim_journals(self) -> Result<bool, StoreError> {
        let (store, settings) = (&self.service.parts.store, &self.service.decider.settings);
        let known = self.service.progress().tidying.oversized.as_ref().map(|left| left.last().cloned());
        let Some(next) = known else {
            if store.count_journals(RECORDS_AT_ONCE).await? {
                return Ok(true);
            }
            let mut oversized = store.journals_over(settings.keep_bytes).await?;
            oversized.retain(|size| size.journal.expires_by_size());
            let more = !oversized.is_empty();
            self.service.progress().tidying.oversized = Some(oversized);
            return Ok(more);
        };
        let Some(JournalSize { journal, project, .. }) = next else { return Ok(false) };
        let rows = settings.writes.rows.min(u64::from(RECORDS_AT_ONCE));
        let part = WriteSize { rows, bytes: settings.writes.bytes };
        let trimmed = store.trim(journal, &project, settings.keep_bytes, part).await?;
        let (project, records, lost) = (project.0.as_str(), trimmed.records, trimmed.undelivered);
        if records > 0 {
            tracing::info!(%journal, project, records, "oldest records of project removed");
        }
        if lost > 0 {
            tracing::warn!(project, lost, "notifications lost to a listener");
        }
        let mut progress = self.service.progress();
        progress.tidying.notifications_lost += lost;
        let left = progress.tidying.oversized.get_or_insert_default();
        if !trimmed.more {
            left.pop();
        }
        Ok(!left.is_empty())
    }

    /// Removes leases that ended long ago, as if they were deleted. Their usage records stay.
    async fn forget_ended(self, writer: &Writer<'_>, now: Timestamp) -> Result<bool, StoreError> {
        let until = self.service.decider.settings.keep_leases.and_then(|kept| now.checked_sub(kept).ok());
        let Some(until) = until else { return Ok(false) };
        let forgotten: Vec<Arc<LeaseRecord>> = {
            let state = self.service.snapshot();
            // Lazy: ended leases are counted only if fewer than [`LEASES_AT_ONCE`] are that old.
            let beyond = std::iter::once_with(|| state.leases.ended_beyond(LEASES_OF_PROJECT)).flatten();
            let mut ended = state.leases.ended_before(until).chain(beyond).peekable();
            if ended.peek().is_none() {
                return Ok(false);
            }
            let seen = Traces::of(&self.service.progress().observed);
            let gone = |record: &&Arc<LeaseRecord>| {
                !seen.matter_to(&record.lease) && state.instances.of_lease(record.lease.id).next().is_none()
            };
            let mut forgotten = BTreeSet::new();
            let new = |record: &&Arc<LeaseRecord>| forgotten.insert(record.lease.id);
            ended.filter(gone).filter(new).take(LEASES_AT_ONCE).cloned().collect()
        };
        let entry = |record: &Arc<LeaseRecord>| {
            let notifications = vec![notice(notices::DELETE, record)];
            Entry::quiet(Commit { writes: vec![forget(record)], notifications, ..Commit::new(now) })
        };
        let entries = Entries::of(forgotten.iter().map(entry).collect());
        let Committed { any, rest, .. } = writer.commit_entries(entries, now).await?;
        if any {
            tracing::info!(leases = forgotten.len(), rest, "ended leases forgotten");
        }
        Ok(any && (rest || forgotten.len() == LEASES_AT_ONCE))
    }

    /// Steps whose history is no longer needed: failures of steps that have not been wanted for long, or that
    /// were for a lease, an instance or a host that is gone; snapshots of leases that are gone; starts and
    /// ends of instances that are gone.
    fn forgettable_steps(self, wanted: &[Step], now: Timestamp) -> Vec<Action> {
        let state = self.service.state();
        let old = |at: Timestamp| now.duration_since(at) > KEEP_FAILURES;
        let wanted = |action: &Action| wanted.iter().any(|step| step.action == *action);
        let failed = state.history.failures.iter();
        let gone = |action: &Action| {
            let host_gone = |host| !state.hosts.contains_key(&host);
            action.hosts().any(host_gone)
                || action.instance().is_some_and(|id| state.instances.get(id).is_none())
                || action.reservation().is_some_and(|id| state.leases.of_reservation(id).is_none())
        };
        let failed =
            failed.filter(|(action, failures)| !wanted(action) && (old(failures.last_at) || gone(action)));
        let done = state.history.done.keys().filter(|action| match action {
            Action::Snapshot(_, reservation) => state.leases.of_reservation(*reservation).is_none(),
            _ => action.instance().is_none_or(|id| state.instances.get(id).is_none()),
        });
        let most = usize::try_from(self.service.decider.settings.writes.rows).unwrap_or(usize::MAX);
        failed.map(|(action, _)| *action).chain(done.copied()).take(most).collect()
    }
}
