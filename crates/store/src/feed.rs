//! What has changed since somebody looked last: how several services on one store know of each other's commits.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use leases::ids::{FloatingIpId, FreePoolId, GuestId, HostId, LeaseId};
use leases::plan::{Action, Failures, History};

use crate::{
    Commit, Document, DocumentKey, DocumentKind, FlavorRecord, FloatingIpRecord, FreePoolRecord, HostRecord,
    InstanceRecord, LeaseRecord, PreemptibleProjectRecord, PropertyRecord, Snapshot, Write,
};

/// How far back changes are known at least, in revisions. Who is further behind loads everything, which is
/// hardly slower then.
pub const KEPT_REVISIONS: u64 = 10_000;

/// A state of the store. Every commit makes a new one.
///
/// Revisions become visible in order: who reads one sees everything that those before it have brought, and will
/// never see anything come in with a lower number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Revision {
    /// Rises by one each time.
    pub number: u64,
    /// Drawn again each time by stores that could lose what they showed, as one does that is restored from a
    /// backup, or whose standby takes over before it knew of everything. Two histories then count alike, but
    /// are told apart by this.
    pub mark: u128,
}

/// What a commit made of which revision. Who knew everything `from`, and what was committed, knows
/// everything `to`; who knew another revision has missed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advance {
    /// The revision before it.
    pub from: Revision,
    /// The revision that it made.
    pub to: Revision,
}

/// A record by what it is known by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKey {
    /// A lease.
    Lease(LeaseId),
    /// A host.
    Host(HostId),
    /// A floating IP.
    FloatingIp(FloatingIpId),
    /// A plain record.
    Document(DocumentKey),
    /// An instance.
    Instance(GuestId),
    /// A free pool.
    FreePool(FreePoolId),
    /// What became of a step.
    Step(Action),
}

/// What has changed since a revision.
#[derive(Clone, Debug)]
pub enum Changes {
    /// These records.
    Delta(Box<Delta>),
    /// It is not known any more: too much has happened, or the store has another history. Load everything.
    Reload,
}

/// Records that have changed, as they are now; none of those that are gone.
///
/// To be taken over together: within one commit, hosts change hands in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// The revision that it leads to.
    pub revision: Revision,
    /// Leases.
    pub leases: BTreeMap<LeaseId, Option<LeaseRecord>>,
    /// Hosts.
    pub hosts: BTreeMap<HostId, Option<HostRecord>>,
    /// Floating IPs.
    pub floating_ips: BTreeMap<FloatingIpId, Option<FloatingIpRecord>>,
    /// Flavors, by identifier.
    pub flavors: BTreeMap<String, Option<FlavorRecord>>,
    /// Properties, by name.
    pub properties: BTreeMap<String, Option<PropertyRecord>>,
    /// Projects whose instances are preemptible, by pattern.
    pub preemptible_projects: BTreeMap<String, Option<PreemptibleProjectRecord>>,
    /// Instances.
    pub instances: BTreeMap<GuestId, Option<InstanceRecord>>,
    /// Free pools.
    pub free_pools: BTreeMap<FreePoolId, Option<FreePoolRecord>>,
    /// What became of steps.
    pub steps: BTreeMap<Action, StepHistory>,
}

/// What became of one step; nothing of one that was forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepHistory {
    /// Its failures, if it has not succeeded since.
    pub failures: Option<Failures>,
    /// When it succeeded, if that is kept.
    pub done: Option<Timestamp>,
}

impl StepHistory {
    /// What a history says of a step.
    pub fn of(action: Action, history: &History) -> Self {
        Self { failures: history.failures.get(&action).cloned(), done: history.done.get(&action).copied() }
    }
}

impl Write {
    /// The record that it changes.
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
    /// The records that it changes.
    pub fn keys(&self) -> BTreeSet<RecordKey> {
        self.writes.iter().map(Write::key).collect()
    }
}

impl Delta {
    /// What these records are in a snapshot that has all of them that there are.
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

    /// Says what a plain record is now: nothing if it is gone.
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

/// Enters records where they are asked for.
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
