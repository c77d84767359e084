//! Instances in memory, indexed for responses and plans.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use leases::ids::{GuestId, HostId, LeaseId};
use leases::instance::InstanceKind;
use leases::plan::{Guest, GuestOwner, Observed};
use leases::project::ProjectId;
use store::InstanceRecord;

use crate::listing::{Order, Page, Position};

/// All instances, indexed by lease, by host and by creation.
#[derive(Clone, Debug, Default)]
pub(crate) struct InstanceIndex {
    records: BTreeMap<GuestId, Arc<InstanceRecord>>,
    order: Order,
    /// Instances in leases.
    in_leases: BTreeSet<(LeaseId, GuestId)>,
    /// Regular instances that need a place, by host.
    without_lease: BTreeSet<(HostId, GuestId)>,
    /// Hosts in `without_lease`.
    hosts: BTreeSet<HostId>,
}

impl InstanceIndex {
    pub fn get(&self, id: GuestId) -> Option<&Arc<InstanceRecord>> {
        self.records.get(&id)
    }

    /// All instances, sorted by identifier.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<InstanceRecord>> {
        self.records.values()
    }

    /// At most `limit` instances after a position, optionally only of a project or of a lease.
    pub fn page(
        &self,
        project: Option<&ProjectId>,
        lease: Option<LeaseId>,
        after: Option<Position>,
        limit: usize,
    ) -> Page<InstanceRecord> {
        self.order.page_of_instances(project, lease, after, limit, |id| self.records.get(&id))
    }

    pub fn of_lease(&self, lease: LeaseId) -> impl Iterator<Item = GuestId> {
        self.in_leases.range((lease, GuestId(0))..=(lease, GuestId(u128::MAX))).map(|(_, id)| *id)
    }

    /// Hosts where regular instances run or are about to run.
    pub fn hosts_without_lease(&self) -> &BTreeSet<HostId> {
        &self.hosts
    }

    /// Marks guests of preemptible instances as preemptible, regardless of the fleet's report. The recorded
    /// kind decides.
    pub fn mark_preemptible(&self, observed: &mut Observed) {
        let preemptible = |guest: &Guest| {
            let record = self.records.get(&guest.id);
            record.is_some_and(|record| record.instance.kind == InstanceKind::Preemptible)
        };
        for guest in observed.hosts.values_mut().flat_map(|host| &mut host.guests) {
            if preemptible(guest) {
                guest.owner = GuestOwner::Preemptible;
            }
        }
    }

    pub fn put(&mut self, record: Arc<InstanceRecord>) {
        let instance = &record.instance;
        self.remove(instance.id);
        self.order.put_instance(&record);
        self.in_leases.extend(instance.kind.lease().map(|lease| (lease, instance.id)));
        if instance.kind == InstanceKind::Regular && instance.needs_place() {
            self.without_lease.insert((instance.host, instance.id));
            self.hosts.insert(instance.host);
        }
        self.records.insert(instance.id, record);
    }

    pub fn remove(&mut self, id: GuestId) {
        let Some(record) = self.records.remove(&id) else { return };
        let host = record.instance.host;
        self.order.remove_instance(&record);
        if let Some(lease) = record.instance.kind.lease() {
            self.in_leases.remove(&(lease, id));
        }
        self.without_lease.remove(&(host, id));
        let all = (host, GuestId(0))..=(host, GuestId(u128::MAX));
        if self.without_lease.range(all).next().is_none() {
            self.hosts.remove(&host);
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use leases::instance::{Instance, InstanceStatus};
    use leases::plan::{GuestSize, ObservedHost};
    use leases::project::{Owner, UserId};
    use store::Version;

    use super::*;

    #[test]
    fn pre_05_the_kind_on_record_counts_whatever_the_fleet_says() {
        let mut instances = InstanceIndex::default();
        for (id, kind) in [(1, InstanceKind::Preemptible), (2, InstanceKind::Regular)] {
            let owner = Owner { project: ProjectId("p".into()), user: UserId("u".into()) };
            let (size, host) = (GuestSize::default(), HostId(1));
            let new = Instance::new(GuestId(id), "web".to_owned(), owner, kind, size, host);
            let instance = Instance { status: InstanceStatus::Active, ..new };
            let (version, created_at) = (Version::FIRST, Timestamp::UNIX_EPOCH);
            instances.put(Arc::new(InstanceRecord { instance, version, created_at, updated_at: None }));
        }
        let guests = (1..=3).map(|id| Guest::new(GuestId(id), GuestOwner::Other)).collect();
        let host = ObservedHost { guests, ..ObservedHost::free() };
        let mut observed = Observed { hosts: [(HostId(1), host)].into(), ..Observed::default() };
        instances.mark_preemptible(&mut observed);
        let owners: Vec<GuestOwner> =
            observed.hosts[&HostId(1)].guests.iter().map(|guest| guest.owner).collect();
        assert_eq!(owners, [GuestOwner::Preemptible, GuestOwner::Other, GuestOwner::Other]);
        assert!(!instances.hosts_without_lease().is_empty(), "of the regular one");
    }
}
