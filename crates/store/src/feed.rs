//! Change feed: services that share a store learn of each other's commits from it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use leases::ids::{FloatingIpId, FreePoolId, GuestId, HostId, LeaseId};
use leases::plan::{Action, Failures, History};

use crate::{
    Commit, Document, DocumentKey, DocumentKind, FlavorRecord, FloatingIpRecord, FreePoolRecord, HostRecord,
    InstanceRecord, LeaseRecord, PreemptibleProjectRecord, PropertyRecord, Snapshot, Write,
};

/// Minimum number of revisions whose changes a store knows. A service that is further behind loads
/// everything, which is hardly slower by then.
pub const KEPT_REVISIONS: u64 = 10_000;

/// A state of the store. Every commit makes a new one.
///
/// Revisions become visible in order: a reader sees all changes of earlier revisions, and a lower number
/// never appears later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Revision {
    /// Rises by one with each revision.
    pub number: u64,
    /// Drawn again for each revision by stores that can lose revisions they already showed. This happens when
    /// a backup is restored, or when a standby takes over before it is up to date. Both histories then use
    /// the same numbers, and only the mark tells them apart.
    pub mark: u128,
}

/// The revisions before and after a commit. A service at `from` that applies its own commit is at `to`. A
/// service at any other revision has missed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advance {
    pub from: Revision,
    pub to: Revision,
}

/// Identifier of a record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKey {
    Lease(LeaseId),
    Host(HostId),
    FloatingIp(FloatingIpId),
    Document(DocumentKey),
    Instance(GuestId),
    FreePool(FreePoolId),
    /// History of a step.
    Step(Action),
}

/// Changes since a revision.
#[derive(Clone, Debug)]
pub enum Changes {
    Delta(Box<Delta>),
    /// The changes aren't known anymore, because there were too many or the store has another history. Load
    /// everything.
    Reload,
}

/// Changed records in their current state; `None` if they were removed.
///
/// Apply them together: within one commit, hosts change hands in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// Revision that the delta leads to.
    pub revision: Revision,
    pub leases: BTreeMap<LeaseId, Option<LeaseRecord>>,
    pub hosts: BTreeMap<HostId, Option<HostRecord>>,
    pub floating_ips: BTreeMap<FloatingIpId, Option<FloatingIpRecord>>,
    /// By identifier.
    pub flavors: BTreeMap<String, Option<FlavorRecord>>,
    /// By name.
    pub properties: BTreeMap<String, Option<PropertyRecord>>,
    /// By pattern.
    pub preemptible_projects: BTreeMap<String, Option<PreemptibleProjectRecord>>,
    pub instances: BTreeMap<GuestId, Option<InstanceRecord>>,
    pub free_pools: BTreeMap<FreePoolId, Option<FreePoolRecord>>,
    pub steps: BTreeMap<Action, StepHistory>,
}

/// History of a step; empty if it was forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepHistory {
    /// Failures since the last success. `None` if the step has succeeded since.
    pub failures: Option<Failures>,
    /// Time of the success, if it is kept.
    pub done: Option<Timestamp>,
}

impl StepHistory {
    pub fn of(action: Action, history: &History) -> Self {
        Self { failures: history.failures.get(&action).cloned(), done: history.done.get(&action).copied() }
    }
}

impl Write {
    pub fn key(&self) -> RecordKey {
        match self {
            Self::Lease { record, .. } => RecordKey::Lease(record.lease.id),
            Self::ForgetLease { id, .. } => RecordKey::Lease(*id),
            Self::Host { record, .. } => RecordKey::Host(record.host.id),
            Self::RemoveHost { id, .. } => RecordKey::Host(*id),
            Self::AddFloatingIp(record) => RecordKey::FloatingIp(record.floating_ip.id),
            Self::RemoveFloatingIp(id) => RecordKey::FloatingIp(*id),
            Self::Flavor(record) => RecordKey::Document(DocumentKind::Flavor.key(&record.id)),
            Self::RemoveFlavor(id) => RecordKey::Document(DocumentKind::Flavor.key(id)),
            Self::Property(record) => RecordKey::Document(DocumentKind::Property.key(&record.name)),
            Self::PreemptibleProject(PreemptibleProjectRecord { pattern, .. })
            | Self::RemovePreemptibleProject(pattern) => {
                RecordKey::Document(DocumentKind::PreemptibleProject.key(pattern.to_string()))
            }
            Self::Instance { record, .. } => RecordKey::Instance(record.instance.id),
            Self::ForgetInstance { id, .. } => RecordKey::Instance(*id),
            Self::FreePool { record, .. } => RecordKey::FreePool(record.pool.id),
            Self::RemoveFreePool { id, .. } => RecordKey::FreePool(*id),
        }
    }
}

impl Commit {
    pub fn keys(&self) -> BTreeSet<RecordKey> {
        self.writes.iter().map(Write::key).collect()
    }
}

impl Delta {
    /// The current state of these records. `snapshot` must contain all of them that exist.
    pub fn of(keys: impl IntoIterator<Item = RecordKey>, snapshot: Snapshot) -> Self {
        let mut delta = Self { revision: snapshot.revision, ..Self::default() };
        let mut documents = BTreeMap::new();
        for key in keys {
            match key {
                RecordKey::Lease(id) => {
                    delta.leases.insert(id, None);
                }
                RecordKey::Host(id) => {
                    delta.hosts.insert(id, None);
                }
                RecordKey::FloatingIp(id) => {
                    delta.floating_ips.insert(id, None);
                }
                RecordKey::Document(key) => {
                    documents.insert(key, None);
                }
                RecordKey::Instance(id) => {
                    delta.instances.insert(id, None);
                }
                RecordKey::FreePool(id) => {
                    delta.free_pools.insert(id, None);
                }
                RecordKey::Step(action) => {
                    delta.steps.insert(action, StepHistory::of(action, &snapshot.history));
                }
            }
        }
        fill(&mut documents, snapshot.documents(), Document::key);
        for (key, document) in documents {
            delta.set_document(key, document);
        }
        fill(&mut delta.leases, snapshot.leases, |record| record.lease.id);
        fill(&mut delta.hosts, snapshot.hosts, |record| record.host.id);
        fill(&mut delta.floating_ips, snapshot.floating_ips, |record| record.floating_ip.id);
        fill(&mut delta.instances, snapshot.instances, |record| record.instance.id);
        fill(&mut delta.free_pools, snapshot.free_pools, |record| record.pool.id);
        delta
    }

    /// Sets the current state of a plain record; `None` if it was removed.
    pub(crate) fn set_document(&mut self, DocumentKey { kind, id }: DocumentKey, document: Option<Document>) {
        match document {
            Some(Document::Flavor(record)) => drop(self.flavors.insert(id, Some(record))),
            Some(Document::Property(record)) => drop(self.properties.insert(id, Some(record))),
            Some(Document::PreemptibleProject(record)) => {
                drop(self.preemptible_projects.insert(id, Some(record)));
            }
            None => match kind {
                DocumentKind::Flavor => drop(self.flavors.insert(id, None)),
                DocumentKind::Property => drop(self.properties.insert(id, None)),
                DocumentKind::PreemptibleProject => drop(self.preemptible_projects.insert(id, None)),
            },
        }
    }
}

/// Fills in records whose keys are wanted.
fn fill<K: Ord, R>(
    wanted: &mut BTreeMap<K, Option<R>>,
    records: impl IntoIterator<Item = R>,
    key: impl Fn(&R) -> K,
) {
    for record in records {
        if let Some(place) = wanted.get_mut(&key(&record)) {
            *place = Some(record);
        }
    }
}
