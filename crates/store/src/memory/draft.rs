//! Draft of a commit, kept apart from the state, so a rejected commit changes nothing.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use leases::free_pool::FreePool;
use leases::host::NetworkId;
use leases::ids::{FloatingIpId, FreePoolId, GuestId, HostId, LeaseId};
use leases::resources::Resources;

use super::State;
use super::page::{Obstacle, Page};
use crate::booking::{Booking, BookingKey, Subject, bookings, changes, same_bookings};
use crate::{
    Commit, CommitError, Document, DocumentChange, DocumentKey, FloatingIpRecord, FreePoolRecord, HostRecord,
    InstanceRecord, LeaseRecord, StoreError, Version, Write,
};

/// A map with pending changes.
#[derive(Debug)]
pub(super) struct Overlay<'a, K, V> {
    base: &'a BTreeMap<K, V>,
    changed: BTreeMap<K, Option<V>>,
}

impl<'a, K: Ord, V> Overlay<'a, K, V> {
    fn new(base: &'a BTreeMap<K, V>) -> Self {
        Self { base, changed: BTreeMap::new() }
    }

    fn get(&self, key: &K) -> Option<&V> {
        self.changed.get(key).map_or_else(|| self.base.get(key), Option::as_ref)
    }

    /// All entries, in no particular order.
    fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let kept = self.base.iter().filter(|(key, _)| !self.changed.contains_key(*key));
        kept.chain(self.changed.iter().filter_map(|(key, value)| Some((key, value.as_ref()?))))
    }

    fn put(&mut self, key: K, value: V) {
        self.changed.insert(key, Some(value));
    }

    fn remove(&mut self, key: K) {
        self.changed.insert(key, None);
    }
}

/// Applies pending changes.
pub(super) fn apply<K: Ord, V>(base: &mut BTreeMap<K, V>, changed: BTreeMap<K, Option<V>>) {
    for (key, value) in changed {
        match value {
            Some(value) => base.insert(key, value),
            None => base.remove(&key),
        };
    }
}

/// The changes that a commit makes.
#[derive(Debug)]
pub(super) struct Changed {
    pub(super) leases: BTreeMap<LeaseId, Option<Arc<LeaseRecord>>>,
    pub(super) hosts: BTreeMap<HostId, Option<HostRecord>>,
    pub(super) host_names: BTreeMap<String, Option<HostId>>,
    pub(super) floating_ips: BTreeMap<FloatingIpId, Option<FloatingIpRecord>>,
    pub(super) addresses: BTreeMap<(NetworkId, IpAddr), Option<FloatingIpId>>,
    pub(super) documents: BTreeMap<DocumentKey, Option<Document>>,
    pub(super) instances: BTreeMap<GuestId, Option<InstanceRecord>>,
    pub(super) free_pools: BTreeMap<FreePoolId, Option<FreePoolRecord>>,
    pub(super) pages: BTreeMap<Subject, Option<Page>>,
}

#[derive(Debug)]
struct Draft<'a> {
    leases: Overlay<'a, LeaseId, Arc<LeaseRecord>>,
    hosts: Overlay<'a, HostId, HostRecord>,
    host_names: Overlay<'a, String, HostId>,
    floating_ips: Overlay<'a, FloatingIpId, FloatingIpRecord>,
    addresses: Overlay<'a, (NetworkId, IpAddr), FloatingIpId>,
    documents: Overlay<'a, DocumentKey, Document>,
    instances: Overlay<'a, GuestId, InstanceRecord>,
    free_pools: Overlay<'a, FreePoolId, FreePoolRecord>,
    pages: Overlay<'a, Subject, Page>,
}

/// Works out the changes of a commit, or why it is rejected.
pub(super) fn work_out(state: &State, commit: &Commit) -> Result<Changed, CommitError> {
    let mut draft = Draft {
        leases: Overlay::new(&state.leases),
        hosts: Overlay::new(&state.hosts),
        host_names: Overlay::new(&state.host_names),
        floating_ips: Overlay::new(&state.floating_ips),
        addresses: Overlay::new(&state.addresses),
        documents: Overlay::new(&state.documents),
        instances: Overlay::new(&state.instances),
        free_pools: Overlay::new(&state.free_pools),
        pages: Overlay::new(&state.pages),
    };
    for write in &commit.writes {
        draft.write_lease(write)?;
    }
    let taken = draft.give_up();
    for write in &commit.writes {
        draft.write_inventory(write)?;
    }
    for (key, booking) in taken {
        draft.take(key, booking)?;
    }
    Ok(Changed {
        leases: draft.leases.changed,
        hosts: draft.hosts.changed,
        host_names: draft.host_names.changed,
        floating_ips: draft.floating_ips.changed,
        addresses: draft.addresses.changed,
        documents: draft.documents.changed,
        instances: draft.instances.changed,
        free_pools: draft.free_pools.changed,
        pages: draft.pages.changed,
    })
}

fn check_version(
    found: Option<Version>,
    expected: Option<Version>,
    stale: impl FnOnce() -> CommitError,
) -> Result<(), CommitError> {
    if found == expected { Ok(()) } else { Err(stale()) }
}

impl Draft<'_> {
    fn write_lease(&mut self, write: &Write) -> Result<(), CommitError> {
        let version = |draft: &Self, id| draft.leases.get(&id).map(|record| record.version);
        match write {
            Write::Lease { record, expected } => {
                let id = record.lease.id;
                check_version(version(self, id), *expected, || CommitError::stale_lease(id))?;
                self.leases.put(id, Arc::new((**record).clone()));
            }
            Write::ForgetLease { id, expected } => {
                check_version(version(self, *id), Some(*expected), || CommitError::stale_lease(*id))?;
                self.leases.remove(*id);
            }
            _ => {}
        }
        Ok(())
    }

    /// Removes bookings that leases give up from the pages. Returns the bookings that leases take.
    fn give_up(&mut self) -> Vec<(BookingKey, Booking)> {
        let mut taken = Vec::new();
        for (id, new) in &self.leases.changed {
            let old = self.leases.base.get(id);
            if let (Some(old), Some(new)) = (old, new)
                && same_bookings(&old.lease, &new.lease)
            {
                continue;
            }
            let of = |record: &Arc<LeaseRecord>| bookings(&record.lease);
            let changes = changes(&old.map(of).unwrap_or_default(), new.as_ref().map(of).unwrap_or_default());
            for key in changes.given_up {
                page(&mut self.pages, key.subject).remove(key.reservation);
            }
            for (key, booking) in changes.settled {
                page(&mut self.pages, key.subject).put(key.reservation, booking);
            }
            taken.extend(changes.taken);
        }
        taken
    }

    fn take(&mut self, key: BookingKey, booking: Booking) -> Result<(), CommitError> {
        let capacity = match key.subject {
            Subject::Host(id) => self.hosts.get(&id).map(|record| record.host.capacity()),
            Subject::FloatingIp(id) => self.floating_ips.get(&id).map(|_| Resources::default()),
        };
        let page = page(&mut self.pages, key.subject);
        if booking.kept {
            let capacity = capacity.ok_or_else(|| CommitError::stale_subject(key.subject))?;
            match page.obstacle(&booking, &capacity) {
                Some(Obstacle::Taken) => return Err(CommitError::taken(key.subject)),
                Some(Obstacle::NoRoom) => return Err(CommitError::no_room(key.subject)),
                None => {}
            }
        }
        page.put(key.reservation, booking);
        Ok(())
    }

    fn write_inventory(&mut self, write: &Write) -> Result<(), CommitError> {
        if let Some(change) = write.document() {
            return self.write_document(change);
        }
        match write {
            Write::FreePool { record, expected } => self.write_free_pool(record, *expected),
            Write::RemoveFreePool { id, expected } => self.remove_free_pool(*id, *expected),
            Write::Host { record, expected } => self.write_host(record, *expected),
            Write::RemoveHost { id, expected } => self.remove_host(*id, *expected),
            Write::AddFloatingIp(record) => self.add_floating_ip(record),
            Write::RemoveFloatingIp(id) => self.remove_floating_ip(*id),
            Write::Instance { record, expected } => {
                let id = record.instance.id;
                self.check_instance(id, *expected)?;
                self.instances.put(id, (**record).clone());
                Ok(())
            }
            Write::ForgetInstance { id, expected } => {
                self.check_instance(*id, Some(*expected))?;
                self.instances.remove(*id);
                Ok(())
            }
            // Leases were written before.
            Write::Lease { .. } | Write::ForgetLease { .. } => Ok(()),
            other => Err(StoreError::no_place_for(other).into()),
        }
    }

    fn write_document(&mut self, change: DocumentChange) -> Result<(), CommitError> {
        match change {
            DocumentChange::Put(document) => self.documents.put(document.key(), document),
            DocumentChange::Remove(key) if self.documents.get(&key).is_none() => {
                return Err(CommitError::stale_document(&key));
            }
            DocumentChange::Remove(key) => self.documents.remove(key),
        }
        Ok(())
    }

    fn check_instance(&self, id: GuestId, expected: Option<Version>) -> Result<(), CommitError> {
        let found = self.instances.get(&id).map(|record| record.version);
        check_version(found, expected, || CommitError::stale_instance(id))
    }

    fn write_free_pool(
        &mut self,
        record: &FreePoolRecord,
        expected: Option<Version>,
    ) -> Result<(), CommitError> {
        let (id, name) = (record.pool.id, &record.pool.name);
        let found = self.free_pools.get(&id).map(|old| old.version);
        check_version(found, expected, || CommitError::stale_free_pool(id))?;
        if self.free_pools.iter().any(|(other, known)| *other != id && known.pool.name == *name) {
            return Err(CommitError::free_pool_exists(name));
        }
        self.free_pools.put(id, record.clone());
        Ok(())
    }

    fn remove_free_pool(&mut self, id: FreePoolId, expected: Version) -> Result<(), CommitError> {
        let found = self.free_pools.get(&id).map(|old| old.version);
        check_version(found, Some(expected), || CommitError::stale_free_pool(id))?;
        if self.hosts.iter().any(|(_, record)| record.host.pool == id) {
            return Err(CommitError::free_pool_in_use(id));
        }
        self.free_pools.remove(id);
        Ok(())
    }

    fn write_host(&mut self, record: &HostRecord, expected: Option<Version>) -> Result<(), CommitError> {
        let (id, name) = (record.host.id, &record.host.name);
        let old = self.hosts.get(&id);
        check_version(old.map(|old| old.version), expected, || CommitError::stale_host(id))?;
        let pool = record.host.pool;
        if pool != FreePool::DEFAULT && self.free_pools.get(&pool).is_none() {
            return Err(CommitError::stale_free_pool(pool));
        }
        if self.host_names.get(name).is_some_and(|other| *other != id) {
            return Err(CommitError::host_exists(name));
        }
        if let Some(old) = old {
            self.host_names.remove(old.host.name.clone());
        }
        self.host_names.put(name.clone(), id);
        self.hosts.put(id, record.clone());
        Ok(())
    }

    fn remove_host(&mut self, id: HostId, expected: Version) -> Result<(), CommitError> {
        let Some(old) = self.hosts.get(&id) else { return Err(CommitError::stale_host(id)) };
        check_version(Some(old.version), Some(expected), || CommitError::stale_host(id))?;
        self.check_unused(Subject::Host(id))?;
        self.host_names.remove(old.host.name.clone());
        self.hosts.remove(id);
        Ok(())
    }

    fn add_floating_ip(&mut self, record: &FloatingIpRecord) -> Result<(), CommitError> {
        let ip = &record.floating_ip;
        let place = (ip.network.clone(), ip.address);
        if self.floating_ips.get(&ip.id).is_some() || self.addresses.get(&place).is_some() {
            return Err(CommitError::floating_ip_exists(ip));
        }
        self.addresses.put(place, ip.id);
        self.floating_ips.put(ip.id, record.clone());
        Ok(())
    }

    fn remove_floating_ip(&mut self, id: FloatingIpId) -> Result<(), CommitError> {
        let subject = Subject::FloatingIp(id);
        let Some(old) = self.floating_ips.get(&id) else { return Err(CommitError::stale_subject(subject)) };
        self.check_unused(subject)?;
        self.addresses.remove((old.floating_ip.network.clone(), old.floating_ip.address));
        self.floating_ips.remove(id);
        Ok(())
    }

    fn check_unused(&self, subject: Subject) -> Result<(), CommitError> {
        let used = self.pages.get(&subject).is_some_and(|page| !page.is_empty());
        if used { Err(CommitError::in_use(subject)) } else { Ok(()) }
    }
}

/// The page of a subject, for changes.
fn page<'p>(pages: &'p mut Overlay<'_, Subject, Page>, subject: Subject) -> &'p mut Page {
    let base = pages.base;
    let entry = pages.changed.entry(subject).or_default();
    entry.get_or_insert_with(|| base.get(&subject).cloned().unwrap_or_default())
}
