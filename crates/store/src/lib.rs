//! The records of the leasing service, and the [`Store`] trait of the databases that keep them.
//!
//! A service decides on a [`Snapshot`] in memory, and the store has the last word: [`Store::commit`] rejects
//! a commit that would put a host into two leases at once, or more slots on a host than fit, even if the
//! service's snapshot was out of date. Databases enforce this by their schema, not by a query before the
//! write.
//!
//! ```text
//! load ──► Snapshot ──decide──► Commit ──commit──► Advance           the deciding service
//!             ▲                                      │
//!             └──────── Delta ◄──changes_since───────┘               all services that share the store
//! ```
//!
//! A [`Commit`] is written as a whole or not at all: records, audit records, notifications, usage, and the
//! idempotency key that makes a repeated request harmless.
//!
//! A store contains:
//! - free pools, hosts, floating IPs, flavors, properties, projects of preemptible instances, leases and
//!   instances, which a service loads when it starts ([`Snapshot`]);
//! - recent changes ([`Changes`]), by which services that share a store learn of each other's commits;
//! - the leader of each role that only one service should have;
//! - claims and results of steps ([`Claim`], [`Finished`]), which are the planner's memory
//!   ([`leases::plan::History`]);
//! - notifications in the order of their commits, and how far each listener has read;
//! - the audit log;
//! - usage: spans of time in which something was held, and events ([`leases::usage`]);
//! - counts of refused requests ([`RefusalRecord`]);
//! - occupancy: observations of leased hosts over time ([`leases::occupants`]);
//! - idempotency keys of served requests ([`IdempotencyRecord`]);
//! - keys that sign tokens, and revoked tokens ([`TokenState`]).
//!
//! Start reading at [`Store`] and [`Commit`]; [`booking`] has the comparison behind the check for double
//! bookings. [`memory::MemoryStore`] is the model: it keeps the same promises in memory. [`conformance`]
//! tests that every store keeps them.

#![warn(clippy::print_stderr, clippy::print_stdout)]

pub mod archive;
pub mod booking;
mod claims;
mod commit;
pub mod conformance;
mod document;
pub mod encoding;
mod feed;
mod journal;
pub mod memory;
mod record;
mod refusals;
pub mod schema;
mod token;
mod write_size;

use std::fmt;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use leases::energy::Sleep;
use leases::host::FloatingIp;
use leases::ids::{FreePoolId, GuestId, HostId, LeaseId};
use leases::occupants::{self, Interval};
use leases::plan::{Action, History};
use leases::project::ProjectId;
use leases::shortage::Shortage;
use leases::usage::{Event, Query, Span, Sum};
use leases::window::Window;
use thiserror::Error;

use crate::archive::{Archive, ImportError};
use crate::booking::Subject;
pub use crate::claims::Claims;
pub use crate::commit::{Commit, Write, leases_after};
pub use crate::document::{Document, DocumentChange, DocumentKey, DocumentKind};
pub use crate::feed::{Advance, Changes, Delta, KEPT_REVISIONS, RecordKey, Revision, StepHistory};
pub use crate::journal::{Journal, JournalSize, Sizes, Trimmed, to_remove};
pub use crate::record::{
    AuditFilter, AuditRecord, FlavorRecord, FloatingIpRecord, FreePoolRecord, HostRecord, IdempotencyRecord,
    InstanceRecord, LeaseRecord, NewNotification, Notification, PreemptibleProjectRecord, PropertyRecord,
    UsageFilter, Version, Wording,
};
pub use crate::refusals::{REFUSAL_RECORDS, RefusalFilter, RefusalRecord, most_refused};
pub use crate::token::{Revocation, TokenKey, TokenState};
pub use crate::write_size::{TooLarge, WriteLimits, WriteSize, lease_text};

/// All records that a service keeps in memory.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub revision: Revision,
    /// All free pools that have a record.
    pub free_pools: Vec<FreePoolRecord>,
    /// All hosts that can be leased.
    pub hosts: Vec<HostRecord>,
    /// All floating IPs that can be leased.
    pub floating_ips: Vec<FloatingIpRecord>,
    pub flavors: Vec<FlavorRecord>,
    /// Properties whose visibility was set.
    pub properties: Vec<PropertyRecord>,
    /// Projects whose instances are preemptible, by pattern.
    pub preemptible_projects: Vec<PreemptibleProjectRecord>,
    /// All leases that weren't forgotten.
    pub leases: Vec<LeaseRecord>,
    /// All instances that weren't forgotten.
    pub instances: Vec<InstanceRecord>,
    pub history: History,
}

/// Reason why a commit failed. It changed nothing, except possibly with [`CommitError::Store`].
#[derive(Debug, Error)]
pub enum CommitError {
    /// The record is gone or has another version than the change is based on. Load it and decide again.
    #[error("{what} has been changed by somebody else")]
    Stale { what: String },
    /// A host or an address would be in two leases at once. Load and decide again.
    #[error("{what} is taken at that time")]
    Taken { what: String },
    /// More slots than the host has capacity for. Load and decide again.
    #[error("host {0} has no room for that at that time")]
    NoRoom(HostId),
    /// The host, address or free pool is still in use, so it can't be removed.
    #[error("{what} is reserved")]
    InUse { what: String },
    /// There already is a floating IP with that address, or a host or free pool with that name.
    #[error("{what} already exists")]
    Exists { what: String },
    /// A request with that key was already served.
    #[error("the request with the key {0} was served before")]
    Repeated(String),
    /// The commit exceeds the limits of a request.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// It is unknown whether the commit was written. Load and check.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Constructors that make all stores use the same wording.
impl CommitError {
    pub fn stale_lease(id: LeaseId) -> Self {
        Self::Stale { what: format!("lease {id}") }
    }

    pub fn stale_host(id: HostId) -> Self {
        Self::stale_subject(Subject::Host(id))
    }

    pub fn stale_instance(id: GuestId) -> Self {
        Self::Stale { what: format!("instance {id}") }
    }

    pub fn stale_free_pool(id: FreePoolId) -> Self {
        Self::Stale { what: format!("free pool {id}") }
    }

    pub fn free_pool_in_use(id: FreePoolId) -> Self {
        Self::InUse { what: format!("free pool {id}") }
    }

    pub fn free_pool_exists(name: &str) -> Self {
        Self::Exists { what: format!("a free pool named {name}") }
    }

    pub fn stale_subject(subject: Subject) -> Self {
        Self::Stale { what: subject.to_string() }
    }

    pub fn taken(subject: Subject) -> Self {
        Self::Taken { what: subject.to_string() }
    }

    pub fn no_room(subject: Subject) -> Self {
        match subject {
            Subject::Host(id) => Self::NoRoom(id),
            // An address has no slots that could exceed its capacity.
            Subject::FloatingIp(_) => Self::taken(subject),
        }
    }

    pub fn in_use(subject: Subject) -> Self {
        Self::InUse { what: subject.to_string() }
    }

    pub fn host_exists(name: &str) -> Self {
        Self::Exists { what: format!("a host named {name}") }
    }

    /// The network already has the address, or the identifier is taken.
    pub fn floating_ip_exists(ip: &FloatingIp) -> Self {
        Self::Exists { what: format!("floating IP {} of network {}", ip.address, ip.network.0) }
    }
}

/// Failure of the store itself.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The store can't be reached, is full, or failed during the operation.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// The clock of the service or of the store is wrong.
    #[error(
        "the clocks of this service and of its store are {skew:#} apart; {bound:#} is the most that is allowed"
    )]
    ClockSkew {
        /// Amount by which the service's clock is ahead.
        skew: SignedDuration,
        /// Maximum that is allowed.
        bound: SignedDuration,
    },
    /// Changes are suspended until a problem is fixed, or until an operator confirms that all is well. The
    /// cause is the machine's clock, or doubt about which store the fleet belongs to.
    #[error("{0}")]
    Suspended(String),
    /// The contents of the store are invalid.
    #[error("the store holds something that cannot be read: {0}")]
    Corrupt(String),
}

impl StoreError {
    /// The store can't keep the record of this change, which must not be lost silently.
    pub fn no_place_for(write: &Write) -> Self {
        Self::Unavailable(format!("it has no place for {:?}", write.key()))
    }
}

/// Time on a machine's clock when the clock was right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockMark {
    /// Time that the clock showed.
    pub at: Timestamp,
    /// Uptime of the machine at that time.
    pub steady: SignedDuration,
    /// Identifies the boot of the machine.
    pub boot: String,
}

/// Identity of a store, and how far it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Drawn when the store is created, and kept by its copies. `None` if the store isn't persistent.
    pub id: Option<String>,
    /// Highest fence ever given out.
    pub last_fence: u64,
}

/// A running service that carries out steps.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder(pub String);

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The right to carry out a step, until another service may try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub action: Action,
    /// Number of the claim. Of two claims of a step, the one with the higher number is valid. No number is
    /// given out twice, not even for different steps.
    pub fence: u64,
}

/// Result of a claimed step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The claim under which the step was carried out. If the step was claimed again since, the result isn't
    /// recorded.
    pub claim: Claim,
    /// `Err` contains the error message.
    pub result: Result<(), String>,
}

/// A store. Callers pass in all times, which are kept to the microsecond.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync {
    /// Loads all records as of one instant.
    async fn load(&self) -> Result<Snapshot, StoreError>;

    /// Changes since that revision.
    async fn changes_since(&self, revision: Revision) -> Result<Changes, StoreError>;

    /// Waits until the store has another revision than that. Can return early, so the caller must check with
    /// [`Store::changes_since`].
    async fn wait_for_change(&self, revision: Revision) -> Result<(), StoreError>;

    /// Writes the whole commit or nothing.
    async fn commit(&self, commit: &Commit) -> Result<Advance, CommitError>;

    /// Claims steps for `holder` until `until` if they are unclaimed, or if their claims have expired at
    /// `now`. Returns the granted claims, in the order given. In a store that several services use, claims
    /// survive the service that holds them.
    async fn claim(
        &self,
        actions: &[Action],
        holder: &Holder,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<Claim>, StoreError>;

    /// Extends claims to `until`. Returns the renewed ones. A claim isn't renewed if its step was finished,
    /// released, or claimed again. Expiry alone doesn't prevent renewal.
    async fn renew_claims(&self, claims: &[Claim], until: Timestamp) -> Result<Vec<Claim>, StoreError>;

    /// Records results of steps ([`History::succeeded`], [`History::failed`]) and gives up their claims.
    /// Makes a revision if the history changes.
    async fn finish(&self, finished: &[Finished], now: Timestamp) -> Result<Option<Advance>, StoreError>;

    /// Gives up all claims of a holder, except the `known` ones. This finds claims that were granted but not
    /// heard of. A service that has just started knows no claims.
    async fn release_claims(&self, holder: &Holder, known: &[Claim]) -> Result<(), StoreError>;

    /// Deletes the history of steps whose leases are gone. Makes a revision if there was any.
    async fn prune_steps(&self, gone: &[Action]) -> Result<Option<Advance>, StoreError>;

    /// Makes `holder` the leader of `role` until `until`, unless another holder leads at `now`. Returns
    /// whether `holder` leads. A leader calls this again in time to stay, or with an `until` that isn't after
    /// `now` to resign.
    ///
    /// Use this for work that is wasted if done twice, not for work that would be wrong: a leader that was
    /// held up may not know that it no longer leads.
    async fn lead(
        &self,
        role: &str,
        holder: &Holder,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, StoreError>;

    /// The store's time, if its clock isn't the caller's. Services that share the store can compare their
    /// clocks with it.
    async fn now(&self) -> Result<Option<Timestamp>, StoreError>;

    /// The last recorded mark of the machine's clock. Only a store without a clock of its own keeps one.
    async fn clock_mark(&self) -> Result<Option<ClockMark>, StoreError> {
        Ok(None)
    }

    async fn set_clock_mark(&self, _mark: &ClockMark) -> Result<(), StoreError> {
        Ok(())
    }

    /// Which store this is; `None` if it can't tell.
    async fn origin(&self) -> Result<Option<Origin>, StoreError> {
        Ok(None)
    }

    /// Gives out a fence that isn't for any step, so the store counts as used. Returns the fence.
    async fn take_fence(&self) -> Result<u64, StoreError>;

    /// Record of the request with this key, if it was made less than a day before `now`.
    async fn idempotent(
        &self,
        project: &ProjectId,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, StoreError>;

    /// Notifications after number `after`, oldest first. With a project, only the project's own;
    /// notifications of other projects then cost nothing.
    async fn notifications(
        &self,
        project: Option<&ProjectId>,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Notification>, StoreError>;

    /// Highest number given to a notification; 0 at first.
    async fn last_notification(&self) -> Result<u64, StoreError>;

    /// Number of the last notification that this listener was told; 0 at first.
    async fn delivered(&self, listener: &str) -> Result<u64, StoreError>;

    /// Records how far a listener was told. Never moves back.
    async fn set_delivered(&self, listener: &str, number: u64) -> Result<(), StoreError>;

    /// Deletes notifications, audit records and idempotency keys from before `before`, oldest first and at
    /// most `limit` of each kind. Notifications that some listener wasn't told are kept until they are from
    /// before `undelivered`. Returns whether there may be more to delete.
    async fn prune(&self, before: Timestamp, undelivered: Timestamp, limit: u32) -> Result<bool, StoreError>;

    /// Adds records that were written since the last call to the project sizes of journals, at most `limit` records of
    /// each kind. Returns whether there may be more to count. Does nothing in stores whose sizes always include all
    /// records.
    async fn count_journals(&self, _limit: u32) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Project sizes in journals that are larger than `bytes`, sorted. They only include counted records
    /// ([`Self::count_journals`]).
    async fn journals_over(&self, bytes: u64) -> Result<Vec<JournalSize>, StoreError>;

    /// Deletes a project's oldest records in a journal until at most `most` bytes remain. One call deletes at most
    /// `part.rows` records, and stops after the record that reaches `part.bytes`. Journals that don't expire by size
    /// are left unchanged.
    async fn trim(
        &self,
        journal: Journal,
        project: &ProjectId,
        most: u64,
        part: WriteSize,
    ) -> Result<Trimmed, StoreError>;

    /// The last `limit` audit records, newest first.
    async fn audit(&self, limit: u32) -> Result<Vec<AuditRecord>, StoreError>;

    /// Audit records that match the filter, newest first, with their numbers. Later records have higher
    /// numbers. With `before`, only records below that number.
    async fn audit_page(
        &self,
        filter: &AuditFilter,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<(u64, AuditRecord)>, StoreError>;

    /// Usage, summed and ordered as by [`leases::usage::sums`].
    async fn usage(&self, query: &Query) -> Result<Vec<Sum>, StoreError>;

    /// All open spans of usage, ordered by their [keys](Span::key).
    async fn open_usage(&self) -> Result<Vec<Span>, StoreError>;

    /// Usage events after number `after` that match the filter, oldest first, with their numbers. Later
    /// commits have higher numbers.
    async fn usage_events(
        &self,
        filter: &UsageFilter,
        after: u64,
        limit: u32,
    ) -> Result<Vec<(u64, Event)>, StoreError>;

    /// Periods in which hosts were off that have ended and touch `period`, in the order in which they ended.
    /// A period that ends when `period` starts is included.
    async fn sleeps(&self, period: &Window) -> Result<Vec<Sleep>, StoreError>;

    /// Windows in which hosts were leased or ran guests, according to usage, if they overlap `period`. Each
    /// host and window is listed once, ordered by host, start and end. Open spans end at their planned end.
    async fn held_hosts(&self, period: &Window) -> Result<Vec<(HostId, Window)>, StoreError>;

    /// Adds refused requests to the counts. Then removes the oldest records of these projects beyond
    /// [`REFUSAL_RECORDS`] each.
    async fn add_refusals(&self, refusals: &[RefusalRecord]) -> Result<(), StoreError>;

    /// Refused requests, summed as by [`most_refused`].
    async fn refusals(&self, filter: &RefusalFilter, kinds: u32) -> Result<Vec<(Shortage, u64)>, StoreError>;

    /// Deletes usage that has ended, usage events, periods in which hosts were off, and refused requests, all
    /// from before `before` and at most `limit` of each kind. Returns whether there may be more to delete.
    async fn prune_usage(&self, before: Timestamp, limit: u32) -> Result<bool, StoreError>;

    /// Records observations of leased hosts. Closing an interval that isn't open has no effect, nor does
    /// opening one that is open.
    async fn record_occupancy(&self, changes: &occupants::Changes) -> Result<(), StoreError>;

    /// All open intervals of occupancy, in the order in which they were opened.
    async fn open_occupancy(&self) -> Result<Vec<Interval>, StoreError>;

    /// The last recorded [`occupants::Changes::seen_until`].
    async fn occupancy_seen_until(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Occupancy intervals of a lease after number `after`, oldest first, with their numbers. Later intervals
    /// have higher numbers.
    async fn occupancy(
        &self,
        lease: LeaseId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<(u64, Interval)>, StoreError>;

    /// Deletes occupancy intervals that ended before `before`, and the oldest intervals of projects of leases
    /// that have more than `most` bytes of them. Open intervals stay. One call deletes at most `limit` of
    /// each. Returns whether there may be more to delete.
    async fn prune_occupancy(
        &self,
        before: Option<Timestamp>,
        most: u64,
        limit: u32,
    ) -> Result<bool, StoreError>;

    /// Returns a bounded amount of unused space to the system, if the store doesn't do so by itself. Returns
    /// whether there is more.
    async fn reclaim(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Size of the store, as far as it is known without reading everything. Unknown values are left out.
    async fn sizes(&self) -> Result<Sizes, StoreError> {
        Ok(Sizes::default())
    }

    /// Token keys and revocations. Can include revocations whose `until` has passed.
    async fn tokens(&self) -> Result<TokenState, StoreError>;

    /// Adds a token key, unless its number exists, and deletes keys with numbers below `oldest`.
    async fn add_token_key(&self, key: &TokenKey, oldest: u32) -> Result<(), StoreError>;

    /// Adds a revocation. Deletes revocations that ended before it was made, and the ones that it covers.
    async fn revoke_token(&self, revocation: &Revocation) -> Result<(), StoreError>;

    /// All contents of the store as of one instant.
    async fn export(&self) -> Result<Archive, StoreError>;

    /// Imports all contents of another store, or nothing. This store must be empty.
    async fn import(&self, archive: &Archive) -> Result<(), ImportError>;

    /// Checks that the store can be written to.
    async fn check(&self) -> Result<(), StoreError>;
}
