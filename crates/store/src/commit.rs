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

/// A change of one record.
///
/// `expected` is the version that the change is based on; none means that there must be no such record. The
/// record carries the version that it will have.
#[derive(Clone, Debug)]
pub enum Write {
    /// A lease, new or changed, with what it has of hosts and addresses.
    Lease {
        /// As it is to be.
        record: Box<LeaseRecord>,
        /// The version that this is based on.
        expected: Option<Version>,
    },
    /// A lease of which nothing is left.
    ForgetLease {
        /// Which.
        id: LeaseId,
        /// The version that this is based on.
        expected: Version,
    },
    /// A free pool, new or changed. Refused if another one has its name.
    FreePool {
        /// As it is to be.
        record: Box<FreePoolRecord>,
        /// The version that this is based on.
        expected: Option<Version>,
    },
    /// A free pool that is not there any more. Refused while hosts are in it.
    RemoveFreePool {
        /// Which.
        id: FreePoolId,
        /// The version that this is based on.
        expected: Version,
    },
    /// A host, new or changed. Refused if its pool is gone.
    Host {
        /// As it is to be.
        record: Box<HostRecord>,
        /// The version that this is based on.
        expected: Option<Version>,
    },
    /// A host that is not leased any more. Refused while a lease that keeps its resources has any of it.
    RemoveHost {
        /// Which.
        id: HostId,
        /// The version that this is based on.
        expected: Version,
    },
    /// A new floating IP. Refused if its network has the address already.
    AddFloatingIp(FloatingIpRecord),
    /// A floating IP that is not leased any more. Refused while a lease that keeps its resources has it.
    RemoveFloatingIp(FloatingIpId),
    /// A flavor, new or changed.
    Flavor(FlavorRecord),
    /// A flavor that is not offered any more.
    RemoveFlavor(String),
    /// The visibility of a property.
    Property(PropertyRecord),
    /// Projects whose instances are preemptible; nothing new if that pattern is there.
    PreemptibleProject(PreemptibleProjectRecord),
    /// The pattern is there no more.
    RemovePreemptibleProject(ProjectPattern),
    /// An instance, new or changed.
    Instance {
        /// As it is to be.
        record: Box<InstanceRecord>,
        /// The version that this is based on.
        expected: Option<Version>,
    },
    /// An instance of which nothing is left.
    ForgetInstance {
        /// Which.
        id: GuestId,
        /// The version that this is based on.
        expected: Version,
    },
}

impl Write {
    /// The lease that it writes, and what becomes of that: nothing if it is forgotten.
    pub fn lease(&self) -> Option<(LeaseId, Option<&LeaseRecord>)> {
        match self {
            Self::Lease { record, .. } => Some((record.lease.id, Some(record))),
            Self::ForgetLease { id, .. } => Some((*id, None)),
            _ => None,
        }
    }
}

/// By lease, what becomes of it in the end: nothing of one that is forgotten. A commit may write it more than once.
pub fn leases_after(writes: &[Write]) -> BTreeMap<LeaseId, Option<&LeaseRecord>> {
    writes.iter().filter_map(Write::lease).collect()
}

/// What happens together, or not at all.
///
/// Leases give up first what they do not have any more, then hosts and addresses come and go, then leases take
/// what is new to them. So hosts can change hands within one commit, and a host can go together with the lease
/// that had it, whatever the order of writes. Versions are compared in the order of writes.
#[derive(Clone, Debug)]
pub struct Commit {
    /// When: the time of all records in it.
    pub at: Timestamp,
    /// Changes, in this order.
    pub writes: Vec<Write>,
    /// Who did it, if somebody did.
    pub audit: Vec<AuditRecord>,
    /// Whom to tell what.
    pub notifications: Vec<NewNotification>,
    /// The key of the request, if it came with one.
    pub idempotency: Option<IdempotencyRecord>,
    /// What it means for usage.
    pub usage: Entries,
    /// Times that hosts were off for, which are over now.
    pub slept: Vec<Sleep>,
}

impl Commit {
    /// A commit of nothing yet.
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
