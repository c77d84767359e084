//! Commits: changes of records that happen together, and what is written with them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use leases::energy::Sleep;
use leases::ids::{FloatingIpId, FreePoolId, GuestId, HostId, LeaseId};
use leases::preemption::ProjectPattern;
use leases::usage::Entries;

use crate::record::{
    AuditRecord, FlavorRecord, FloatingIpRecord, FreePoolRecord, HostRecord, IdempotencyRecord,
    InstanceRecord, LeaseRecord, NewNotification, PreemptibleProjectRecord, PropertyRecord, Version,
};

/// A change to a record.
///
/// `expected` is the version that the change is based on; `None` if the record must not exist yet. `record`
/// contains the version that it will have.
#[derive(Clone, Debug)]
pub enum Write {
    /// Adds or changes a lease and its bookings.
    Lease {
        record: Box<LeaseRecord>,
        expected: Option<Version>,
    },
    /// Deletes the record of a lease. Its usage remains.
    ForgetLease {
        id: LeaseId,
        expected: Version,
    },
    /// Adds or changes a free pool. Rejected if another pool has its name.
    FreePool {
        record: Box<FreePoolRecord>,
        expected: Option<Version>,
    },
    /// Removes a free pool. Rejected while it contains hosts.
    RemoveFreePool {
        id: FreePoolId,
        expected: Version,
    },
    /// Adds or changes a host. Rejected if its free pool doesn't exist.
    Host {
        record: Box<HostRecord>,
        expected: Option<Version>,
    },
    /// Removes a host. Rejected while any part of it is in a lease that keeps its resources.
    RemoveHost {
        id: HostId,
        expected: Version,
    },
    /// Adds a floating IP. Rejected if its network already has the address.
    AddFloatingIp(FloatingIpRecord),
    /// Removes a floating IP. Rejected while a lease that keeps its resources has it.
    RemoveFloatingIp(FloatingIpId),
    /// Adds or replaces a flavor.
    Flavor(FlavorRecord),
    RemoveFlavor(String),
    /// Sets the visibility of a property.
    Property(PropertyRecord),
    /// Adds a pattern of projects whose instances are preemptible, or replaces its record.
    PreemptibleProject(PreemptibleProjectRecord),
    RemovePreemptibleProject(ProjectPattern),
    /// Adds or changes an instance.
    Instance {
        record: Box<InstanceRecord>,
        expected: Option<Version>,
    },
    /// Deletes the record of an instance.
    ForgetInstance {
        id: GuestId,
        expected: Version,
    },
}

impl Write {
    /// The lease that is written and its new record; `None` for the record if the lease is forgotten.
    pub fn lease(&self) -> Option<(LeaseId, Option<&LeaseRecord>)> {
        match self {
            Self::Lease { record, .. } => Some((record.lease.id, Some(record))),
            Self::ForgetLease { id, .. } => Some((*id, None)),
            _ => None,
        }
    }
}

/// Final record of each written lease; `None` if the lease is forgotten. A commit can write a lease more than
/// once.
pub fn leases_after(writes: &[Write]) -> BTreeMap<LeaseId, Option<&LeaseRecord>> {
    writes.iter().filter_map(Write::lease).collect()
}

/// Changes that are written together or not at all.
///
/// Leases first release the hosts and addresses that they give up, then hosts and addresses are added and
/// removed, then leases take new ones. So hosts can change hands within one commit, and a host can be removed
/// together with the lease that had it, in any order of writes. Versions are compared in the order of writes.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The time of all records in the commit.
    pub at: Timestamp,
    pub writes: Vec<Write>,
    pub audit: Vec<AuditRecord>,
    pub notifications: Vec<NewNotification>,
    /// The idempotency key of the request, if it had one.
    pub idempotency: Option<IdempotencyRecord>,
    pub usage: Entries,
    /// Periods in which hosts were off, which end with this commit.
    pub slept: Vec<Sleep>,
}

impl Commit {
    /// An empty commit.
    pub fn new(at: Timestamp) -> Self {
        Self {
            at,
            writes: Vec::new(),
            audit: Vec::new(),
            notifications: Vec::new(),
            idempotency: None,
            usage: Entries::default(),
            slept: Vec::new(),
        }
    }
}
