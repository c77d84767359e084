//! What must survive: the records of the leasing service, and the trait of the stores that keep them.
//!
//! A store has the last word on bookings: [`Store::commit`] refuses a commit that would put a host into two
//! leases at the same instant, or more slots on it than fit, whatever whoever decided believed. It does so by
//! its schema, not by asking first. Everything in a commit happens or nothing does: the leases, the audit
//! record, the notifications, and the key that makes a repeated request harmless.
//!
//! What is stored:
//! - free pools, hosts, floating IPs, flavors, properties, projects of preemptible instances, leases, instances: [`Snapshot`], read whole when a service starts;
//! - what was changed last: [`Changes`], by which services that share a store know of each other's commits;
//! - who leads in a role that only one should have;
//! - steps that failed or are claimed: [`Claim`], [`Finished`], which is what a planner remembers
//!   ([`leases::plan::History`]);
//! - notifications in the order of their commits, with how far each listener has read;
//! - the audit log;
//! - usage: spans of time in which something was held, and what happened ([`leases::usage`]);
//! - counts of refused requests ([`RefusalRecord`]);
//! - occupancy: what was seen of the hosts of leases, and when ([`leases::occupants`]);
//! - keys of requests that were served ([`IdempotencyRecord`]);
//! - keys that tokens are signed with, and tokens that were revoked ([`TokenState`]).
//!
//! [`memory::MemoryStore`] is the model: the same promises in memory. [`conformance`] holds every store to them.

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

/// Everything that a service keeps in memory.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The revision that this is.
    pub revision: Revision,
    /// All free pools that have a record.
    pub free_pools: Vec<FreePoolRecord>,
    /// All hosts that may be leased.
    pub hosts: Vec<HostRecord>,
    /// All floating IPs that may be leased.
    pub floating_ips: Vec<FloatingIpRecord>,
    /// All flavors.
    pub flavors: Vec<FlavorRecord>,
    /// Properties that were given a visibility.
    pub properties: Vec<PropertyRecord>,
    /// Projects whose instances are preemptible, by pattern.
    pub preemptible_projects: Vec<PreemptibleProjectRecord>,
    /// All leases that were not forgotten.
    pub leases: Vec<LeaseRecord>,
    /// All instances that were not forgotten.
    pub instances: Vec<InstanceRecord>,
    /// What became of steps.
    pub history: History,
}

/// Why nothing was committed.
#[derive(Debug, Error)]
pub enum CommitError {
    /// A record is not of the version that the change is based on. Load it, and decide again.
    #[error("{what} has been changed by somebody else")]
    Stale {
        /// Which record.
        what: String,
    },
    /// A host or an address would be in two leases at once. Load, and decide again.
    #[error("{what} is taken at that time")]
    Taken {
        /// What.
        what: String,
    },
    /// More slots than a host has room for. Load, and decide again.
    #[error("host {0} has no room for that at that time")]
    NoRoom(HostId),
    /// The host or address is still in use, so it cannot be removed.
    #[error("{what} is reserved")]
    InUse {
        /// What.
        what: String,
    },
    /// There is one already: a floating IP with that address, a host of that name.
    #[error("{what} already exists")]
    Exists {
        /// What.
        what: String,
    },
    /// A request with that key was served before.
    #[error("the request with the key {0} was served before")]
    Repeated(String),
    /// It is more than a request may write.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// It is not known whether it was committed. Load, and look.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The words for what is in the way, alike in all stores.
impl CommitError {
    /// A lease is not of the version expected.
    pub fn stale_lease(id: LeaseId) -> Self {
        Self::Stale { what: format!("lease {id}") }
    }

    /// A host is not of the version expected, or gone.
    pub fn stale_host(id: HostId) -> Self {
        Self::stale_subject(Subject::Host(id))
    }

    /// An instance is not of the version expected, or gone.
    pub fn stale_instance(id: GuestId) -> Self {
        Self::Stale { what: format!("instance {id}") }
    }

    /// A free pool is not of the version expected, or gone.
    pub fn stale_free_pool(id: FreePoolId) -> Self {
        Self::Stale { what: format!("free pool {id}") }
    }

    /// A free pool cannot be removed.
    pub fn free_pool_in_use(id: FreePoolId) -> Self {
        Self::InUse { what: format!("free pool {id}") }
    }

    /// Another free pool has that name.
    pub fn free_pool_exists(name: &str) -> Self {
        Self::Exists { what: format!("a free pool named {name}") }
    }

    /// A host or an address is gone.
    pub fn stale_subject(subject: Subject) -> Self {
        Self::Stale { what: subject.to_string() }
    }

    /// A host or an address is in another lease.
    pub fn taken(subject: Subject) -> Self {
        Self::Taken { what: subject.to_string() }
    }

    /// Slots do not fit.
    pub fn no_room(subject: Subject) -> Self {
        match subject {
            Subject::Host(id) => Self::NoRoom(id),
            // An address has no slots, so there cannot be too many of them.
            Subject::FloatingIp(_) => Self::taken(subject),
        }
    }

    /// A host or an address cannot be removed.
    pub fn in_use(subject: Subject) -> Self {
        Self::InUse { what: subject.to_string() }
    }

    /// Another host has that name.
    pub fn host_exists(name: &str) -> Self {
        Self::Exists { what: format!("a host named {name}") }
    }

    /// The network has that address, or there is one of that identifier.
    pub fn floating_ip_exists(ip: &FloatingIp) -> Self {
        Self::Exists { what: format!("floating IP {} of network {}", ip.address, ip.network.0) }
    }
}

/// The store does not work.
#[derive(Debug, Error)]
pub enum StoreError {
    /// It cannot be reached, is full, or broke off.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// The clock of who uses it is wrong, or its own is.
    #[error(
        "the clocks of this service and of its store are {skew:#} apart; {bound:#} is the most that is allowed"
    )]
    ClockSkew {
        /// How far the service's is ahead.
        skew: SignedDuration,
        /// The most that it may be.
        bound: SignedDuration,
    },
    /// Nothing may be changed before something is set right, or an operator says that it is right: the clock of the
    /// machine, or which store the fleet belongs to.
    #[error("{0}")]
    Suspended(String),
    /// What it holds makes no sense.
    #[error("the store holds something that cannot be read: {0}")]
    Corrupt(String),
}

impl StoreError {
    /// A store has no place for the record of that change, which must not be lost without a word.
    pub fn no_place_for(write: &Write) -> Self {
        Self::Unavailable(format!("it has no place for {:?}", write.key()))
    }
}

/// What the clock of a machine showed when it was right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockMark {
    /// What it showed.
    pub at: Timestamp,
    /// How long the machine had been running by then.
    pub steady: SignedDuration,
    /// Which run of the machine that was.
    pub boot: String,
}

/// Which store it is, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Drawn when the store was made, and taken along into a copy; none if the store is not kept.
    pub id: Option<String>,
    /// The highest fence that was given out.
    pub last_fence: u64,
}

/// Who carries out steps: one running service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder(pub String);

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The right to carry out a step, until somebody else may try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The step.
    pub action: Action,
    /// Counts claims: of two claims of a step, the one with the higher number is the valid one. No number is
    /// given twice, not even to different steps.
    pub fence: u64,
}

/// What became of a step that was claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The claim it was carried out under. If the step was claimed again since, nothing is recorded.
    pub claim: Claim,
    /// How it ended.
    pub result: Result<(), String>,
}

/// A store. All times are given by the caller, and kept to the microsecond.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync {
    /// Reads everything, as of one instant.
    async fn load(&self) -> Result<Snapshot, StoreError>;

    /// What has changed since that revision.
    async fn changes_since(&self, revision: Revision) -> Result<Changes, StoreError>;

    /// Waits until the store is of another revision than that. It may also return when it still is: whoever
    /// waits looks by [`Store::changes_since`].
    async fn wait_for_change(&self, revision: Revision) -> Result<(), StoreError>;

    /// Commits all of it or nothing.
    async fn commit(&self, commit: &Commit) -> Result<Advance, CommitError>;

    /// Claims steps for `holder` until `until`: those that nobody has claimed, or whose claim is over `now`.
    /// Returns the claims that it got, in the order given. In a store that several services use, claims survive the
    /// service that holds them.
    async fn claim(
        &self,
        actions: &[Action],
        holder: &Holder,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<Claim>, StoreError>;

    /// Renews claims: they hold until `until`. Returns those that were renewed. A claim is refused if its step was
    /// finished, released, or claimed again; one that is over but was not claimed again is renewed.
    async fn renew_claims(&self, claims: &[Claim], until: Timestamp) -> Result<Vec<Claim>, StoreError>;

    /// Records what became of steps ([`History::succeeded`], [`History::failed`]) and gives up their claims.
    /// Makes a revision if the history has become another.
    async fn finish(&self, finished: &[Finished], now: Timestamp) -> Result<Option<Advance>, StoreError>;

    /// Gives up all claims of a holder but those that it knows of: none if it has just started. Others it may have
    /// been granted without hearing of it.
    async fn release_claims(&self, holder: &Holder, known: &[Claim]) -> Result<(), StoreError>;

    /// Forgets the history of these steps: their leases are gone. Makes a revision if there was any.
    async fn prune_steps(&self, gone: &[Action]) -> Result<Option<Advance>, StoreError>;

    /// Whether `holder` leads in that role until `until`, because nobody else does at `now`. Who leads prolongs
    /// it in time, or gives it up by an `until` that is not after `now`.
    ///
    /// This is for work that is wasted if it is done twice, not for work that is wrong then: a leader that was
    /// held up may not know that it leads no more.
    async fn lead(
        &self,
        role: &str,
        holder: &Holder,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, StoreError>;

    /// What time it is in the store, if it has a clock other than the caller's: all who share the store can
    /// compare theirs with it.
    async fn now(&self) -> Result<Option<Timestamp>, StoreError>;

    /// What the clock of the machine showed when it was last noted. Only a store without a clock of its own keeps that.
    async fn clock_mark(&self) -> Result<Option<ClockMark>, StoreError> {
        Ok(None)
    }

    /// Notes what the clock of the machine shows.
    async fn set_clock_mark(&self, _mark: &ClockMark) -> Result<(), StoreError> {
        Ok(())
    }

    /// Which store it is, if it can tell.
    async fn origin(&self) -> Result<Option<Origin>, StoreError> {
        Ok(None)
    }

    /// Gives out a fence to nobody, so that this store counts as one that has been used; returns it.
    async fn take_fence(&self) -> Result<u64, StoreError>;

    /// What was answered to the request with that key, if it was made less than a day before `now`.
    async fn idempotent(
        &self,
        project: &ProjectId,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, StoreError>;

    /// Notifications after that number, oldest first; only the project's own if one is given. Those of other projects
    /// cost nothing then.
    async fn notifications(
        &self,
        project: Option<&ProjectId>,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Notification>, StoreError>;

    /// The highest number that a notification was given; 0 at first.
    async fn last_notification(&self) -> Result<u64, StoreError>;

    /// The number of the last notification that this listener has been told; 0 at first.
    async fn delivered(&self, listener: &str) -> Result<u64, StoreError>;

    /// Notes how far a listener has been told; never back.
    async fn set_delivered(&self, listener: &str, number: u64) -> Result<(), StoreError>;

    /// Forgets notifications, audit records and keys of requests from before that time, the oldest first and at most so
    /// many of each kind. Notifications that some listener has not been told are kept until they are from before the
    /// other time. Says whether there may be more to forget.
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

    /// The last audit records, newest first.
    async fn audit(&self, limit: u32) -> Result<Vec<AuditRecord>, StoreError>;

    /// Such audit records, newest first, with their numbers: later ones have higher numbers. Only those before
    /// that number, if one is given.
    async fn audit_page(
        &self,
        filter: &AuditFilter,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<(u64, AuditRecord)>, StoreError>;

    /// Usage, summed as [`leases::usage::sums`] does; in the order of sums.
    async fn usage(&self, query: &Query) -> Result<Vec<Sum>, StoreError>;

    /// All spans of usage that are open, in the order of their [keys](Span::key).
    async fn open_usage(&self) -> Result<Vec<Span>, StoreError>;

    /// Such events of usage after that number, oldest first, with their numbers: later commits have higher ones.
    async fn usage_events(
        &self,
        filter: &UsageFilter,
        after: u64,
        limit: u32,
    ) -> Result<Vec<(u64, Event)>, StoreError>;

    /// Times that hosts were off for that touch that time and are over, in the order in which they ended.
    async fn sleeps(&self, period: &Window) -> Result<Vec<Sleep>, StoreError>;

    /// When hosts were leased or guests ran there, as usage has it, as far as it touches that time: each host and each
    /// window once, by host, start and end. What is open ends as it is planned.
    async fn held_hosts(&self, period: &Window) -> Result<Vec<(HostId, Window)>, StoreError>;

    /// Adds refused requests to those on record. Then removes the oldest records of these projects beyond
    /// [`REFUSAL_RECORDS`] each.
    async fn add_refusals(&self, refusals: &[RefusalRecord]) -> Result<(), StoreError>;

    /// Refused requests, summed as [`most_refused`] does.
    async fn refusals(&self, filter: &RefusalFilter, kinds: u32) -> Result<Vec<(Shortage, u64)>, StoreError>;

    /// Forgets usage that is over, its events, times that hosts were off for, and refused requests, from before that time,
    /// at most so many of each kind. Says whether there may be more to forget.
    async fn prune_usage(&self, before: Timestamp, limit: u32) -> Result<bool, StoreError>;

    /// Records what was seen of the hosts of leases. An interval that isn't open is not closed, and one that is open is not
    /// opened again.
    async fn record_occupancy(&self, changes: &occupants::Changes) -> Result<(), StoreError>;

    /// All open intervals of occupancy, in the order in which they were opened.
    async fn open_occupancy(&self) -> Result<Vec<Interval>, StoreError>;

    /// The last [`occupants::Changes::seen_until`] that was recorded.
    async fn occupancy_seen_until(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Intervals of occupancy of a lease after that number, oldest first, with their numbers: later ones have higher
    /// numbers.
    async fn occupancy(
        &self,
        lease: LeaseId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<(u64, Interval)>, StoreError>;

    /// Deletes intervals of occupancy that ended before that time, and the oldest intervals of projects of leases that have
    /// more than `most` bytes of them. Open intervals stay. One call deletes at most `limit` of each. Returns whether there
    /// may be more to delete.
    async fn prune_occupancy(
        &self,
        before: Option<Timestamp>,
        most: u64,
        limit: u32,
    ) -> Result<bool, StoreError>;

    /// Gives a bounded amount of space that is not needed any more back to the system, where the store does not do so by
    /// itself. Says whether there is more.
    async fn reclaim(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// How large it is, as far as that can be told without reading it all. Nothing of what is not known.
    async fn sizes(&self) -> Result<Sizes, StoreError> {
        Ok(Sizes::default())
    }

    /// Keys of tokens, and which tokens were revoked. A revocation whose `until` is over may be among them.
    async fn tokens(&self) -> Result<TokenState, StoreError>;

    /// Adds a key of tokens, unless there is one of its number, and forgets those with numbers below `oldest`.
    async fn add_token_key(&self, key: &TokenKey, oldest: u32) -> Result<(), StoreError>;

    /// Adds a revocation. Forgets those that were over when it was made, and those of which it is a part.
    async fn revoke_token(&self, revocation: &Revocation) -> Result<(), StoreError>;

    /// Everything that is in it, as of one instant.
    async fn export(&self) -> Result<Archive, StoreError>;

    /// Takes in everything that was in another store, or nothing. It must be empty.
    async fn import(&self, archive: &Archive) -> Result<(), ImportError>;

    /// Whether it can be written to.
    async fn check(&self) -> Result<(), StoreError>;
}
