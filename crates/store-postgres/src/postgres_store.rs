//! The store itself: its operations, each in a transaction or a single query.

use std::sync::Arc;
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
use store::archive::{Archive, ImportError};
use store::{
    Advance, AuditFilter, AuditRecord, Changes, Claim, Commit, CommitError, Delta, Finished, Holder,
    IdempotencyRecord, Journal, JournalSize, Notification, Origin, RefusalFilter, RefusalRecord, Revision,
    Revocation, Sizes, Snapshot, Store, StoreError, TokenKey, TokenState, Trimmed, UsageFilter, WriteSize,
};

use crate::attempt::{question, transaction};
use crate::commit::Pace;
use crate::error::TxError;
use crate::hints::Hints;
use crate::load::Wanted;
use crate::pool::Pool;
use crate::servers::Servers;
use crate::{
    archive, changes, columns, commit, expiry, feed, journal, load, occupancy, power, refusals, size, steps,
    tokens, usage,
};

/// Interval at which a waiting caller checks for a change when no hint comes.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Begins a transaction that writes.
macro_rules! writing {
    ($store:expr, $db:ident => $work:expr) => {
        transaction!(&$store.pool, "BEGIN", $db => $work)
    };
}

/// Begins a read-only transaction that reads from a single snapshot.
macro_rules! reading {
    ($store:expr, $db:ident => $work:expr) => {
        transaction!(&$store.pool, "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY", $db => $work)
    };
}

/// Runs a single read-only statement.
macro_rules! asking {
    ($store:expr, $db:ident => $work:expr) => {
        question!(&$store.pool, $db => $work)
    };
}

/// Locks all tables like a write, so that a table that is kept locked by another program is noticed. The
/// readiness check gives up before all its attempts are over.
const LOCK_TABLES: &str = "
    SET LOCAL lock_timeout = '500ms';
    DO $$ BEGIN
        EXECUTE (
            SELECT 'LOCK TABLE ' || string_agg(oid::regclass::text, ', ' ORDER BY relname) || ' IN ROW EXCLUSIVE MODE'
            FROM pg_class
            WHERE relkind IN ('r', 'p')
                AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'lease'::regclass)
                AND has_table_privilege(oid, 'INSERT, UPDATE, DELETE')
        );
    END $$";

/// A store in PostgreSQL.
#[derive(Debug)]
pub struct PostgresStore {
    pool: Arc<Pool>,
    hints: Hints,
}

impl PostgresStore {
    pub(crate) fn of(servers: Servers) -> Self {
        let pool = Arc::new(Pool::new(servers));
        Self { hints: Hints::of(Arc::clone(&pool)), pool }
    }

    /// Address of the database, without passwords.
    pub fn servers(&self) -> &Servers {
        self.pool.servers()
    }

    /// Closes all connections, and the store for good.
    ///
    /// Dropping a store without closing it is safe and loses no data.
    pub fn close(&self) {
        self.hints.stop();
        self.pool.close();
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn load(&self) -> Result<Snapshot, StoreError> {
        Ok(reading!(self, db => load::snapshot(db, Wanted::ALL).await)?)
    }

    async fn changes_since(&self, revision: Revision) -> Result<Changes, StoreError> {
        if asking!(self, db => feed::last(db).await)? == revision {
            return Ok(Changes::Delta(Box::new(Delta { revision, ..Delta::default() })));
        }
        Ok(reading!(self, db => changes::since(db, revision).await)?)
    }

    async fn wait_for_change(&self, revision: Revision) -> Result<(), StoreError> {
        let mut hints = self.hints.subscribe();
        while asking!(self, db => feed::last(db).await)? == revision {
            // Check the revision again after a hint and after a timeout.
            let _ = tokio::time::timeout(LOOK_AGAIN, hints.changed()).await;
        }
        Ok(())
    }

    async fn commit(&self, commit: &Commit) -> Result<Advance, CommitError> {
        let together = writing!(self, db => commit::write(db, commit, Pace::Together).await);
        match together {
            // This succeeds if the conflicting booking is gone by now.
            Err(TxError::Obstructed) => {
                Ok(writing!(self, db => commit::write(db, commit, Pace::OneByOne).await)?)
            }
            other => Ok(other?),
        }
    }

    async fn claim(
        &self,
        actions: &[Action],
        holder: &Holder,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<Claim>, StoreError> {
        if actions.is_empty() {
            return Ok(Vec::new());
        }
        Ok(writing!(self, db => steps::claim(db, actions, holder, now, until).await)?)
    }

    async fn renew_claims(&self, claims: &[Claim], until: Timestamp) -> Result<Vec<Claim>, StoreError> {
        if claims.is_empty() {
            return Ok(Vec::new());
        }
        Ok(writing!(self, db => steps::renew(db, claims, until).await)?)
    }

    async fn finish(&self, finished: &[Finished], now: Timestamp) -> Result<Option<Advance>, StoreError> {
        if finished.is_empty() {
            return Ok(None);
        }
        let advance = writing!(self, db => {
            let changed = steps::finish(db, finished, now).await?;
            feed::steps(db, &changed, now).await
        });
        Ok(advance?)
    }

    async fn release_claims(&self, holder: &Holder, known: &[Claim]) -> Result<(), StoreError> {
        Ok(writing!(self, db => steps::release(db, holder, known).await)?)
    }

    async fn prune_steps(&self, gone: &[Action]) -> Result<Option<Advance>, StoreError> {
        let advance = writing!(self, db => {
            let changed = steps::prune(db, gone).await?;
            // Pruned steps have no time, so any will do.
            feed::steps(db, &changed, Timestamp::UNIX_EPOCH).await
        });
        Ok(advance?)
    }

    async fn lead(
        &self,
        role: &str,
        holder: &Holder,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(writing!(self, db => steps::lead(db, role, holder, now, until).await)?)
    }

    async fn now(&self) -> Result<Option<Timestamp>, StoreError> {
        let now_us = asking!(self, db => {
            let now = sqlx::query_scalar!(
                r#"SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS "now_us!""#
            );
            Ok(now.fetch_one(db).await?)
        })?;
        columns::instant(now_us).map(Some)
    }

    async fn idempotent(
        &self,
        project: &ProjectId,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        let record = asking!(self, db => journal::request(db, project, key).await)?;
        Ok(record.filter(|record| record.counts_at(now)))
    }

    async fn notifications(
        &self,
        project: Option<&ProjectId>,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Notification>, StoreError> {
        Ok(asking!(self, db => journal::notifications(db, project, after, limit).await)?)
    }

    async fn last_notification(&self) -> Result<u64, StoreError> {
        Ok(asking!(self, db => journal::last_notification(db).await)?)
    }

    async fn delivered(&self, listener: &str) -> Result<u64, StoreError> {
        Ok(asking!(self, db => journal::delivered(db, listener).await)?)
    }

    async fn set_delivered(&self, listener: &str, number: u64) -> Result<(), StoreError> {
        Ok(writing!(self, db => journal::set_delivered(db, listener, number).await)?)
    }

    async fn prune(&self, before: Timestamp, undelivered: Timestamp, limit: u32) -> Result<bool, StoreError> {
        Ok(writing!(self, db => expiry::prune(db, before, undelivered, limit).await)?)
    }

    async fn count_journals(&self, limit: u32) -> Result<bool, StoreError> {
        Ok(writing!(self, db => expiry::count(db, limit).await)?)
    }

    async fn journals_over(&self, bytes: u64) -> Result<Vec<JournalSize>, StoreError> {
        Ok(asking!(self, db => expiry::journals_over(db, bytes).await)?)
    }

    async fn trim(
        &self,
        journal: Journal,
        project: &ProjectId,
        most: u64,
        part: WriteSize,
    ) -> Result<Trimmed, StoreError> {
        Ok(writing!(self, db => expiry::trim(db, journal, project, most, part).await)?)
    }

    async fn audit(&self, limit: u32) -> Result<Vec<AuditRecord>, StoreError> {
        Ok(asking!(self, db => journal::audit(db, limit).await)?)
    }

    async fn audit_page(
        &self,
        filter: &AuditFilter,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<(u64, AuditRecord)>, StoreError> {
        Ok(asking!(self, db => journal::audit_page(db, filter, before, limit).await)?)
    }

    async fn usage(&self, query: &Query) -> Result<Vec<Sum>, StoreError> {
        Ok(asking!(self, db => usage::sums(db, query).await)?)
    }

    async fn open_usage(&self) -> Result<Vec<Span>, StoreError> {
        Ok(asking!(self, db => usage::open_spans(db).await)?)
    }

    async fn usage_events(
        &self,
        filter: &UsageFilter,
        after: u64,
        limit: u32,
    ) -> Result<Vec<(u64, Event)>, StoreError> {
        Ok(asking!(self, db => usage::events(db, filter, after, limit).await)?)
    }

    async fn sleeps(&self, period: &Window) -> Result<Vec<Sleep>, StoreError> {
        Ok(asking!(self, db => power::read(db, period).await)?)
    }

    async fn held_hosts(&self, period: &Window) -> Result<Vec<(HostId, Window)>, StoreError> {
        Ok(asking!(self, db => usage::held_hosts(db, period).await)?)
    }

    async fn add_refusals(&self, refusals: &[RefusalRecord]) -> Result<(), StoreError> {
        Ok(writing!(self, db => refusals::add(db, refusals).await)?)
    }

    async fn refusals(&self, filter: &RefusalFilter, kinds: u32) -> Result<Vec<(Shortage, u64)>, StoreError> {
        Ok(asking!(self, db => refusals::sums(db, filter, kinds).await)?)
    }

    async fn prune_usage(&self, before: Timestamp, limit: u32) -> Result<bool, StoreError> {
        let more = writing!(self, db => {
            let mut more = usage::prune(db, before, limit).await?;
            more |= power::prune(db, before, limit).await?;
            more |= refusals::prune(db, before, limit).await?;
            Ok(more)
        });
        Ok(more?)
    }

    async fn record_occupancy(&self, changes: &occupants::Changes) -> Result<(), StoreError> {
        Ok(writing!(self, db => occupancy::record(db, changes).await)?)
    }

    async fn open_occupancy(&self) -> Result<Vec<Interval>, StoreError> {
        Ok(asking!(self, db => occupancy::open_intervals(db).await)?)
    }

    async fn occupancy_seen_until(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(asking!(self, db => occupancy::seen_until(db).await)?)
    }

    async fn occupancy(
        &self,
        lease: LeaseId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<(u64, Interval)>, StoreError> {
        Ok(asking!(self, db => occupancy::of_lease(db, lease, after, limit).await)?)
    }

    async fn prune_occupancy(
        &self,
        before: Option<Timestamp>,
        most: u64,
        limit: u32,
    ) -> Result<bool, StoreError> {
        Ok(writing!(self, db => occupancy::prune(db, before, most, limit).await)?)
    }

    async fn sizes(&self) -> Result<Sizes, StoreError> {
        Ok(asking!(self, db => size::sizes(db).await)?)
    }

    async fn tokens(&self) -> Result<TokenState, StoreError> {
        Ok(reading!(self, db => tokens::read(db).await)?)
    }

    async fn add_token_key(&self, key: &TokenKey, oldest: u32) -> Result<(), StoreError> {
        Ok(writing!(self, db => tokens::add_key(db, key, oldest).await)?)
    }

    async fn revoke_token(&self, revocation: &Revocation) -> Result<(), StoreError> {
        Ok(writing!(self, db => tokens::revoke(db, revocation).await)?)
    }

    async fn export(&self) -> Result<Archive, StoreError> {
        Ok(reading!(self, db => archive::export(db).await)?)
    }

    async fn import(&self, archive: &Archive) -> Result<(), ImportError> {
        let imported = writing!(self, db => archive::import(db, archive).await);
        if imported.map_err(CommitError::from)? { Ok(()) } else { Err(ImportError::NotEmpty) }
    }

    async fn origin(&self) -> Result<Option<Origin>, StoreError> {
        Ok(Some(asking!(self, db => archive::origin(db).await)?))
    }

    async fn take_fence(&self) -> Result<u64, StoreError> {
        let fence = writing!(self, db => steps::take_fences(db, 1).await)?;
        Ok(fence.cast_unsigned())
    }

    async fn check(&self) -> Result<(), StoreError> {
        Ok(writing!(self, db => {
            sqlx::raw_sql(LOCK_TABLES).execute(&mut *db).await?;
            sqlx::query!("UPDATE probe SET writes = writes + 1").execute(db).await?;
            Ok(())
        })?)
    }
}
