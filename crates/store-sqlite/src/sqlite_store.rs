//! The store itself: its operations, and the right to write.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use leases::energy::Sleep;
use leases::ids::{HostId, LeaseId};
use leases::occupants::{self, Interval};
use leases::plan::Action;
use leases::project::ProjectId;
use leases::shortage::Shortage;
use leases::usage::{Event, Query, Span, Sum};
use leases::window::Window;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqlitePool};
use sqlx::{Connection, Sqlite, Transaction};
use store::archive::{Archive, ImportError};
use store::encoding::Outcomes;
use store::{
    Advance, AuditFilter, AuditRecord, Changes, Claim, Claims, ClockMark, Commit, CommitError, Delta,
    Finished, Holder, IdempotencyRecord, Journal, JournalSize, Notification, Origin, RefusalFilter,
    RefusalRecord, Revision, Revocation, Sizes, Snapshot, Store, StoreError, TokenKey, TokenState, Trimmed,
    UsageFilter, WriteSize,
};
use tokio::sync::watch;

use crate::error::unavailable;
use crate::{
    archive, changes, commit, expiry, feed, file, journal, load, occupancy, origin, power, refusals, size,
    steps, tokens, usage,
};

/// Interval at which a waiting caller checks for a change. Usually the writer announces it earlier, but not
/// if the caller of the commit stopped waiting.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A store in a SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    pub(crate) path: PathBuf,
    /// `None` once the store was closed.
    pub(crate) writer: tokio::sync::Mutex<Option<SqliteConnection>>,
    /// Options of the writer's connection.
    pub(crate) options: SqliteConnectOptions,
    pub(crate) readers: SqlitePool,
    /// In memory, because no other process uses the file.
    pub(crate) claims: Mutex<Claims>,
    /// The last revision, sent after each commit. `None` if a commit with an unknown outcome could have made
    /// a later one. No other process writes to the file, so callers needn't read it to know that the revision
    /// is current.
    pub(crate) revision: watch::Sender<Option<Revision>>,
    /// The files in use, once they exist.
    pub(crate) opened: OnceLock<file::Opened>,
    /// Held as long as the store is open.
    pub(crate) _lock: File,
}

impl SqliteStore {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the log back into the file and closes the store for good.
    ///
    /// Dropping a store without closing it is safe and loses no data.
    pub async fn close(&self) -> Result<(), StoreError> {
        self.readers.close().await;
        self.doubt();
        match self.take_writer().await? {
            Some(writer) => writer.close().await.map_err(unavailable),
            None => Ok(()),
        }
    }

    /// Takes the writer's connection, to close it. If the log is damaged, the connection stays open until the process
    /// ends, because closing it would make SQLite write the rest of the log into the database.
    pub(crate) async fn take_writer(&self) -> Result<Option<SqliteConnection>, StoreError> {
        let mut writer = self.writer.lock().await;
        let (Some(connection), Some(opened)) = (writer.as_mut(), self.opened.get()) else {
            return Ok(writer.take());
        };
        let checked = opened.log.check(connection).await;
        let connection = writer.take();
        if checked.is_err() {
            std::mem::forget(connection);
            return checked.map(|()| None);
        }
        Ok(connection)
    }

    pub(crate) async fn writer(&self) -> Writer<'_> {
        Writer { connection: self.writer.lock().await, options: &self.options, opened: self.opened.get() }
    }

    fn claims(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn reading(&self) -> Result<Transaction<'static, Sqlite>, StoreError> {
        self.readers.begin().await.map_err(unavailable)
    }

    async fn revision(&self) -> Result<Revision, StoreError> {
        let known = *self.revision.borrow();
        match known {
            Some(revision) => Ok(revision),
            None => feed::last(&mut *self.reading().await?).await,
        }
    }

    /// Marks the last revision as unknown. Doesn't wake waiting callers, because it isn't certain that there
    /// is a new revision.
    pub(crate) fn doubt(&self) {
        self.revision.send_if_modified(|revision| {
            *revision = None;
            false
        });
    }

    /// Publishes the revision that a commit made, if any.
    fn announce(&self, advance: Option<Advance>) {
        if let Some(advance) = advance {
            self.revision.send_replace(Some(advance.to));
        }
    }
}

/// The right to write, held by one caller at a time.
pub(crate) struct Writer<'a> {
    connection: tokio::sync::MutexGuard<'a, Option<SqliteConnection>>,
    options: &'a SqliteConnectOptions,
    opened: Option<&'a file::Opened>,
}

impl Writer<'_> {
    /// Begins a transaction that can write from the start. It is rolled back unless it is committed. It counts as
    /// committed when it is [confirmed](Self::confirm).
    pub(crate) async fn begin(&mut self) -> Result<Transaction<'_, Sqlite>, StoreError> {
        self.connected().await?.begin_with("BEGIN IMMEDIATE").await.map_err(unavailable)
    }

    /// The connection, without an open transaction.
    async fn connected(&mut self) -> Result<&mut SqliteConnection, StoreError> {
        let closed = || StoreError::Unavailable("it was closed".to_owned());
        let connection = self.connection.as_mut().ok_or_else(closed)?;
        if connection.is_in_transaction() {
            // The previous transaction is being rolled back. The ping is answered after that.
            connection.ping().await.map_err(unavailable)?;
        }
        if connection.is_in_transaction() {
            // SQLite rolled it back by itself, as on a full disk. The rollback then failed, and the
            // connection would consider the transaction open forever.
            *connection = SqliteConnection::connect_with(self.options).await.map_err(unavailable)?;
        }
        if let Some(opened) = self.opened {
            opened.check()?;
            opened.log.check(connection).await?;
        }
        Ok(connection)
    }

    /// Checks that the latest commit is in the files that were opened, and restarts a log that has become long.
    pub(crate) async fn confirm(&mut self) -> Result<(), StoreError> {
        let (Some(connection), Some(opened)) = (self.connection.as_mut(), self.opened) else { return Ok(()) };
        opened.check()?;
        opened.log.confirm(connection).await?;
        opened.log.restart_if_long(self.options).await;
        Ok(())
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn load(&self) -> Result<Snapshot, StoreError> {
        let mut reading = self.reading().await?;
        load::snapshot(&mut reading).await
    }

    async fn changes_since(&self, revision: Revision) -> Result<Changes, StoreError> {
        if *self.revision.borrow() == Some(revision) {
            return Ok(Changes::Delta(Box::new(Delta { revision, ..Delta::default() })));
        }
        changes::since(&mut *self.reading().await?, revision).await
    }

    async fn wait_for_change(&self, revision: Revision) -> Result<(), StoreError> {
        let mut commits = self.revision.subscribe();
        while self.revision().await? == revision {
            // Check the revision again after an announcement and after a timeout.
            let _ = tokio::time::timeout(LOOK_AGAIN, commits.changed()).await;
        }
        Ok(())
    }

    async fn commit(&self, commit: &Commit) -> Result<Advance, CommitError> {
        let mut writer = self.writer().await;
        let mut transaction = writer.begin().await?;
        let advance = commit::write(&mut transaction, commit).await?;
        self.doubt();
        transaction.commit().await.map_err(unavailable)?;
        writer.confirm().await?;
        self.announce(Some(advance));
        Ok(advance)
    }

    async fn claim(
        &self,
        actions: &[Action],
        holder: &Holder,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<Claim>, StoreError> {
        let mut writer = self.writer().await;
        let free = self.claims().free(actions, now);
        if free.is_empty() {
            return Ok(Vec::new());
        }
        let mut transaction = writer.begin().await?;
        let count = i64::try_from(free.len()).unwrap_or(i64::MAX);
        let last_fence = steps::take_fences(&mut transaction, count).await?;
        transaction.commit().await.map_err(unavailable)?;
        writer.confirm().await?;
        Ok(self.claims().add(&free, last_fence.cast_unsigned(), holder, until))
    }

    async fn renew_claims(&self, claims: &[Claim], until: Timestamp) -> Result<Vec<Claim>, StoreError> {
        Ok(self.claims().renew(claims, until))
    }

    async fn finish(&self, finished: &[Finished], now: Timestamp) -> Result<Option<Advance>, StoreError> {
        if finished.is_empty() {
            return Ok(None);
        }
        let mut writer = self.writer().await;
        let held = |finished: &&Finished| self.claims().holds(&finished.claim);
        let outcomes = Outcomes::of(finished.iter().filter(held));
        let mut transaction = writer.begin().await?;
        let changed = steps::finish(&mut transaction, outcomes, now).await?;
        let advance = feed::enter_some(&mut transaction, &changed).await?;
        if advance.is_some() {
            self.doubt();
        }
        transaction.commit().await.map_err(unavailable)?;
        writer.confirm().await?;
        self.announce(advance);
        let mut claims = self.claims();
        for Finished { claim, .. } in finished {
            claims.give_up(claim);
        }
        drop(claims);
        Ok(advance)
    }

    async fn release_claims(&self, holder: &Holder, known: &[Claim]) -> Result<(), StoreError> {
        self.claims().release(holder, known);
        Ok(())
    }

    async fn prune_steps(&self, gone: &[Action]) -> Result<Option<Advance>, StoreError> {
        let mut writer = self.writer().await;
        let mut transaction = writer.begin().await?;
        let changed = steps::prune(&mut transaction, gone).await?;
        let advance = feed::enter_some(&mut transaction, &changed).await?;
        if advance.is_some() {
            self.doubt();
        }
        transaction.commit().await.map_err(unavailable)?;
        writer.confirm().await?;
        self.announce(advance);
        Ok(advance)
    }

    async fn lead(
        &self,
        role: &str,
        holder: &Holder,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut writer = self.writer().await;
        let mut transaction = writer.begin().await?;
        let leads = steps::lead(&mut transaction, role, holder, now, until).await?;
        transaction.commit().await.map_err(unavailable)?;
        writer.confirm().await?;
        Ok(leads)
    }

    async fn now(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(None)
    }

    async fn clock_mark(&self) -> Result<Option<ClockMark>, StoreError> {
        origin::mark(&mut *self.reading().await?).await
    }

    async fn set_clock_mark(&self, mark: &ClockMark) -> Result<(), StoreError> {
        let mut writer = self.writer().await;
        let mut transaction = writer.begin().await?;
        origin::set_mark(&mut transaction, mark).await?;
        transaction.commit().await.map_err(unavailable)?;
        writer.confirm().await
    }

    async fn origin(&self) -> Result<Option<Origin>, StoreError> {
        origin::read(&mut *self.reading().await?).await.map(Some)
    }

    async fn take_fence(&self) -> Result<u64, StoreError> {
        let mut writer = self.writer().await;
        let mut transaction = writer.begin().await?;
        let fence = steps::take_fences(&mut transaction, 1).await?;
        transaction.commit().await.map_err(unavailable)?;
        writer.confirm().await?;
        Ok(fence.cast_unsigned())
    }

    async fn idempotent(
        &self,
        project: &ProjectId,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        let mut reading = self.reading().await?;
        let record = journal::request(&mut reading, project, key).await?;
        Ok(record.filter(|record| record.counts_at(now)))
    }

    async fn notifications(
        &self,
        project: Option<&ProjectId>,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Notification>, StoreError> {
        journal::notifications(&mut *self.reading().await?, project, after, limit).await
    }

    async fn last_notification(&self) -> Result<u64, StoreError> {
        journal::last_notification(&mut *self.reading().await?).await
    }

    async fn delivered(&self, listener: &str) -> Result<u64, StoreError> {
        journal::delivered(&mut *self.reading().await?, listener).await
    }

    async fn set_delivered(&self, listener: &str, number: u64) -> Result<(), StoreError> {
        let mut writer = self.writer().await;
        let mut transaction = writer.begin().await?;
        journal::set_delivered(&mut transaction, listener, number).await?;
        transaction.commit().await.map_err(unavailable)?;
        writer.confirm().await
    }

    async fn prune(&self, before: Timestamp, undelivered: Timestamp, limit: u32) -> Result<bool, StoreError> {
        let mut writer = self.writer().await;
        let mut transaction = writer.begin().await?;
        let more = expiry::prune(&mut transaction, before, undelivered, limit).await?;
        transaction.commit().await.map_err(unavailable)?;
        writer.confirm().await?;
        Ok(more)
    }

    async fn count_journals(&self, limit: u32) -> Result<bool, StoreError> {
        let mut writer = self.writer().await;
        let mut transaction = writer.begin().await?;
        let more = expiry::count(&mut transaction, limit).await?;
        transaction.commit().await.map_err(unavailable)?;
        writer.confirm().await?;
        Ok(more)
    }

    async fn journals_over(&self, bytes: u64) -> Result<Vec<JournalSize>, StoreError> {
        expiry::journals_over(&mut *self.reading().await?, bytes).await
    }

    async fn trim(
        &self,
        journal: Journal,
        project: &ProjectId,
        most: u64,
        part: WriteSize,
    ) -> Result<Trimmed, StoreError> {
        let mut writer = self.writer().await;
        let mut transaction = writer.begin().await?;
        let trimmed = expiry::trim(&mut transaction, journal, project, most, part).await?;
        transaction.commit().await.map_err(unavailable)?;
        writer.confirm().await?;
        Ok(trimmed)
    }

    async fn audit(&self, limit: u32) -> Result<Vec<AuditRecord>, StoreError> {
        journal::audit(&mut *self.reading().await?, limit).await
    }

    async fn audit_page(
        &self,
        filter: &AuditFilter,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<(u64, AuditRecord)>, StoreError> {
        journal::audit_page(&mut *self.reading().await?, filter, before, limit).await
    }

    async fn usage(&self, query: &Query) -> Result<Vec<Sum>, StoreError> {
        usage::sums(&mut *self.reading().await?, query).await
    }

    async fn open_usage(&self) -> Result<Vec<Span>, StoreError> {
        usage::open_spans(&mut *self.reading().await?).await
    }

    async fn usage_events(
        &self,
        filter: &UsageFilter,
        after: u64,
        limit: u32,
    ) -> Result<Vec<(u64, Event)>, StoreError> {
        usage::events(&mut *self.reading().await?, filter, after, limit).await
    }

    async fn sleeps(&self, period: &Window) -> Result<Vec<Sleep>, StoreError> {
        power::read(&mut *self.reading().await?, period).await
    }

    async fn held_hosts(&self, period: &Window) -> Result<Vec<(HostId, Window)>, StoreError> {
        usage::held_hosts(&mut *self.reading().await?, period).await
    }

    async fn add_refusals(&self, refusals: &[RefusalRecord]) -> Result<(), StoreError> {
        let mut writer = self.writer().await;
        let mut transaction = writer.begin().await?;
        refusals::add(&mut transaction, refusals).await?;
        transaction.commit().await.map_err(unavailable)?;
        writer.confirm().await
    }

    async fn refusals(&self, filter: &RefusalFilter, kinds: u32) -> Result<Vec<(Shortage, u64)>, StoreError> {
        refusals::sums(&mut *self.reading().await?, filter, kinds).await
    }

    async fn prune_usage(&self, before: Timestamp, limit: u32) -> Result<bool, StoreError> {
        let mut writer = self.writer().await;
        let mut transaction = writer.begin().await?;
        let mut more = usage::prune(&mut transaction, before, limit).await?;
        more |= power::prune(&mut transaction, before, limit).await?;
        more |= refusals::prune(&mut transaction, before, limit).await?;
        transaction.commit().await.map_err(unavailable)?;
        writer.confirm().await?;
        Ok(more)
    }

    async fn record_occupancy(&self, changes: &occupants::Changes) -> Result<(), StoreError> {
        let mut writer = self.writer().await;
        let mut transaction = writer.begin().await?;
        occupancy::record(&mut transaction, changes).await?;
        transaction.commit().await.map_err(unavailable)?;
        writer.confirm().await
    }

    async fn open_occupancy(&self) -> Result<Vec<Interval>, StoreError> {
        occupancy::open_intervals(&mut *self.reading().await?).await
    }

    async fn occupancy_seen_until(&self) -> Result<Option<Timestamp>, StoreError> {
        occupancy::seen_until(&mut *self.reading().await?).await
    }

    async fn occupancy(
        &self,
        lease: LeaseId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<(u64, Interval)>, StoreError> {
        occupancy::of_lease(&mut *self.reading().await?, lease, after, limit).await
    }

    async fn prune_occupancy(
        &self,
        before: Option<Timestamp>,
        most: u64,
        limit: u32,
    ) -> Result<bool, StoreError> {
        let mut writer = self.writer().await;
        let mut transaction = writer.begin().await?;
        let more = occupancy::prune(&mut transaction, before, most, limit).await?;
        transaction.commit().await.map_err(unavailable)?;
        writer.confirm().await?;
        Ok(more)
    }

    async fn reclaim(&self) -> Result<bool, StoreError> {
        let mut writer = self.writer().await;
        let more = size::reclaim(writer.connected().await?).await?;
        writer.confirm().await?;
        Ok(more)
    }

    async fn sizes(&self) -> Result<Sizes, StoreError> {
        size::sizes(&mut *self.reading().await?).await
    }

    async fn tokens(&self) -> Result<TokenState, StoreError> {
        tokens::read(&mut *self.reading().await?).await
    }

    async fn add_token_key(&self, key: &TokenKey, oldest: u32) -> Result<(), StoreError> {
        let mut writer = self.writer().await;
        let mut transaction = writer.begin().await?;
        tokens::add_key(&mut transaction, key, oldest).await?;
        transaction.commit().await.map_err(unavailable)?;
        writer.confirm().await
    }

    async fn revoke_token(&self, revocation: &Revocation) -> Result<(), StoreError> {
        let mut writer = self.writer().await;
        let mut transaction = writer.begin().await?;
        tokens::revoke(&mut transaction, revocation).await?;
        transaction.commit().await.map_err(unavailable)?;
        writer.confirm().await
    }

    async fn export(&self) -> Result<Archive, StoreError> {
        archive::export(&mut *self.reading().await?).await
    }

    async fn import(&self, archive: &Archive) -> Result<(), ImportError> {
        let mut writer = self.writer().await;
        let mut transaction = writer.begin().await?;
        archive::import(&mut transaction, archive).await?;
        self.doubt();
        transaction.commit().await.map_err(unavailable)?;
        Ok(writer.confirm().await?)
    }

    async fn check(&self) -> Result<(), StoreError> {
        let mut writer = self.writer().await;
        let mut transaction = writer.begin().await?;
        let probe = sqlx::query!("UPDATE probe SET writes = writes + 1");
        probe.execute(&mut *transaction).await.map_err(unavailable)?;
        transaction.commit().await.map_err(unavailable)?;
        writer.confirm().await?;
        file::check_room(&self.path)
    }
}
