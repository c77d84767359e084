//! The store's contents in memory, with the indexes that answers and plans need.
//!
//! It only changes after a commit: [`State::apply`] adds the service's own commits, and [`State::take_over`]
//! adds commits of other services.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use leases::admission::guests_to_come;
use leases::calendar::{Calendar, Conflict};
use leases::free_pool::FreePool;
use leases::host::{Health, Host, Inventory};
use leases::ids::{FloatingIpId, FreePoolId, HostId, LeaseId, OffersId};
use leases::instance::{Instance, InstanceKind};
use leases::lease::Lease;
use leases::plan::{History, Observed};
use leases::standing::Standing;
use leases::status::LeaseStatus;
use store::{
    Delta, FlavorRecord, FloatingIpRecord, FreePoolRecord, HostRecord, LeaseRecord, PreemptibleProjectRecord,
    PropertyRecord, Revision, Snapshot, Version, Write,
};

use crate::attributes::attributes_of;
use crate::instance_index::InstanceIndex;
use crate::lease_index::LeaseIndex;
use crate::proposals::{Proposals, forget};
use crate::traces::Traces;

/// The host as decisions see it: described by its pool, with attributes.
fn apply_pool_description(host: &Host, pool: &FreePool) -> Host {
    let host = pool.describe(host.clone());
    Host { attributes: attributes_of(&host), ..host }
}

/// Whether a host has failed or is closed for new leases.
fn is_impaired(host: &Host) -> bool {
    host.health == Health::Failed || !host.reservable
}

/// The default free pool before its first change. It isn't stored.
fn default_pool() -> FreePoolRecord {
    let created_at = Timestamp::UNIX_EPOCH;
    FreePoolRecord { pool: FreePool::default(), version: Version(0), created_at, updated_at: None }
}

/// Whether the instance runs, or will run, on a host of the free pool until its owner deletes it.
pub(crate) fn stays(instance: &Instance) -> bool {
    instance.kind == InstanceKind::Regular && instance.is_to_run()
}

/// Whether the record reserves resources for offers.
fn is_for_offers(lease: &Lease) -> bool {
    matches!(lease.standing, Standing::Kept { .. })
}

/// The store's contents. A copy shares records, hosts and pages of the calendar.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub revision: Revision,
    /// Counts changes that affect decisions about leases, other than changes of leases: hosts, pools,
    /// flavors, instances that stay, and so on.
    pub admission_changes: u64,
    /// Hosts and addresses as decisions see them.
    pub inventory: Inventory,
    pub free_pools: BTreeMap<FreePoolId, Arc<FreePoolRecord>>,
    /// Hosts as administrators described them, without the description of their pools.
    pub hosts: BTreeMap<HostId, Arc<HostRecord>>,
    /// Hosts that aren't powered on.
    pub asleep: BTreeSet<HostId>,
    /// Hosts that have failed or are closed for new leases.
    pub impaired: BTreeSet<HostId>,
    pub floating_ips: BTreeMap<FloatingIpId, Arc<FloatingIpRecord>>,
    /// Patterns of projects with preemptible instances, without the patterns in the settings.
    pub preemptible_projects: BTreeMap<String, PreemptibleProjectRecord>,
    pub flavors: BTreeMap<String, Arc<FlavorRecord>>,
    /// Properties with a configured visibility, by name.
    pub properties: BTreeMap<String, PropertyRecord>,
    /// Bookings of leases. Decisions are based on it: an offer that isn't accepted takes nothing away.
    pub calendar: Calendar,
    /// Bookings for offers, separate from bookings of leases.
    pub offered: Calendar,
    /// Outcomes of steps.
    pub history: History,
    pub leases: LeaseIndex,
    /// Offers and waiting requests, which are stored like leases.
    pub proposals: Proposals,
    pub instances: InstanceIndex,
}

impl State {
    /// Builds the state from a loaded snapshot. Fails if leases contradict each other.
    pub fn new(snapshot: Snapshot, cleaning_time: SignedDuration, now: Timestamp) -> Result<Self, Conflict> {
        let records = || snapshot.leases.iter().map(|record| &record.lease);
        let calendar = Calendar::new(cleaning_time)
            .with_leases(records().filter(|lease| lease.standing.is_firm()), now)?;
        let offered =
            Calendar::new(cleaning_time).with_leases(records().filter(|lease| is_for_offers(lease)), now)?;
        let (mut leases, mut proposals) = (LeaseIndex::default(), Proposals::default());
        for record in snapshot.leases {
            if record.lease.standing.is_firm() {
                leases.put(Arc::new(record));
            } else {
                proposals.put(Arc::new(record));
            }
        }
        let mut instances = InstanceIndex::default();
        for record in snapshot.instances {
            instances.put(Arc::new(record));
        }
        let mut free_pools = BTreeMap::from([(FreePool::DEFAULT, Arc::new(default_pool()))]);
        free_pools.extend(snapshot.free_pools.into_iter().map(|record| (record.pool.id, Arc::new(record))));
        let pool_of = |host: &Host| free_pools.get(&host.pool).unwrap_or(&free_pools[&FreePool::DEFAULT]);
        let inventory = Inventory::new(
            snapshot
                .hosts
                .iter()
                .map(|record| apply_pool_description(&record.host, &pool_of(&record.host).pool)),
            snapshot.floating_ips.iter().map(|record| record.floating_ip.clone()),
        );
        let ids_of = |which: fn(&Host) -> bool| {
            inventory.hosts().filter(|host| which(host)).map(|host| host.id).collect()
        };
        Ok(Self {
            revision: snapshot.revision,
            admission_changes: 0,
            free_pools,
            asleep: ids_of(|host| !host.power.is_on()),
            impaired: ids_of(is_impaired),
            inventory,
            hosts: snapshot.hosts.into_iter().map(|record| (record.host.id, Arc::new(record))).collect(),
            floating_ips: snapshot
                .floating_ips
                .into_iter()
                .map(|record| (record.floating_ip.id, Arc::new(record)))
                .collect(),
            preemptible_projects: snapshot
                .preemptible_projects
                .into_iter()
                .map(|record| (record.pattern.to_string(), record))
                .collect(),
            flavors: snapshot
                .flavors
                .into_iter()
                .map(|flavor| (flavor.id.clone(), Arc::new(flavor)))
                .collect(),
            properties: snapshot.properties.into_iter().map(|p| (p.name.clone(), p)).collect(),
            calendar,
            offered,
            history: snapshot.history,
            leases,
            proposals,
            instances,
        })
    }

    /// Applies a commit of this service. A conflict means that memory differs from the store.
    pub fn apply(&mut self, writes: Vec<Write>, now: Timestamp) -> Result<(), Conflict> {
        // Leases can exchange hosts in any order, so all bookings are released before new ones are made.
        let changed = writes.iter().filter_map(|write| match write {
            Write::Lease { record, .. } => Some(record.lease.id),
            _ => None,
        });
        let changed = changed.collect();
        self.calendar.remove_all(&changed);
        self.offered.remove_all(&changed);
        // Remove withdrawn offers first, so that a lease in the same commit can take their resources in any
        // order of the writes.
        for write in &writes {
            if let Write::ForgetLease { id, .. } = write {
                self.offered.remove(*id);
            }
        }
        self.admission_changes += u64::from(writes.iter().any(|write| self.affects_admission(write)));
        for write in writes {
            match write {
                Write::Lease { record, .. } => self.put_lease(Arc::from(record), now)?,
                Write::ForgetLease { id, .. } if self.proposals.remove(id).is_some() => {}
                Write::ForgetLease { id, .. } => {
                    // The lease's hosts still need cleaning, so the calendar keeps it as ended.
                    if let Some(record) = self.leases.remove(id)
                        && record.lease.keeps_resources()
                    {
                        self.calendar.put(&record.lease.deleted(now), now)?;
                    }
                }
                Write::FreePool { record, .. } => self.put_free_pool(*record),
                Write::RemoveFreePool { id, .. } => self.remove_free_pool(id),
                Write::Host { record, .. } => self.put_host(*record),
                Write::RemoveHost { id, .. } => self.remove_host(id),
                Write::AddFloatingIp(record) => self.put_floating_ip(record),
                Write::RemoveFloatingIp(id) => self.remove_floating_ip(id),
                Write::Flavor(flavor) => {
                    self.flavors.insert(flavor.id.clone(), Arc::new(flavor));
                }
                Write::RemoveFlavor(id) => {
                    self.flavors.remove(&id);
                }
                Write::Property(property) => {
                    self.properties.insert(property.name.clone(), property);
                }
                Write::PreemptibleProject(record) => {
                    self.preemptible_projects.insert(record.pattern.to_string(), record);
                }
                Write::RemovePreemptibleProject(pattern) => {
                    self.preemptible_projects.remove(&pattern.to_string());
                }
                Write::Instance { record, .. } => {
                    self.instances.put(Arc::from(record));
                }
                Write::ForgetInstance { id, .. } => {
                    self.instances.remove(id);
                }
            }
        }
        Ok(())
    }

    /// Applies commits of other services. After a conflict, everything must be reloaded.
    pub fn take_over(&mut self, delta: Delta, now: Timestamp) -> Result<(), Conflict> {
        // Leases can exchange hosts in any order, so all bookings are released before new ones are made.
        for (id, record) in &delta.leases {
            match (record, self.leases.get(*id)) {
                // The lease's hosts still need cleaning, so the calendar keeps it as ended.
                (None, Some(before)) if before.lease.keeps_resources() => {
                    self.calendar.put(&before.lease.deleted(now), now)?;
                }
                (None, _) => {}
                (Some(_), _) => self.calendar.remove(*id),
            }
            self.offered.remove(*id);
        }
        self.admission_changes += u64::from(self.delta_affects_admission(&delta));
        for (id, record) in delta.leases {
            match record {
                Some(record) => self.put_lease(Arc::new(record), now)?,
                None if self.proposals.remove(id).is_some() => {}
                None => {
                    self.leases.remove(id);
                }
            }
        }
        for (id, record) in delta.free_pools {
            match record {
                Some(record) => self.put_free_pool(record),
                None => self.remove_free_pool(id),
            }
        }
        for (id, record) in delta.hosts {
            match record {
                Some(record) => self.put_host(record),
                None => self.remove_host(id),
            }
        }
        for (id, record) in delta.floating_ips {
            match record {
                Some(record) => self.put_floating_ip(record),
                None => self.remove_floating_ip(id),
            }
        }
        take_over(
            &mut self.flavors,
            delta.flavors.into_iter().map(|(id, flavor)| (id, flavor.map(Arc::new))),
        );
        take_over(&mut self.properties, delta.properties);
        take_over(&mut self.preemptible_projects, delta.preemptible_projects);
        for (id, record) in delta.instances {
            match record {
                Some(record) => self.instances.put(Arc::new(record)),
                None => self.instances.remove(id),
            }
        }
        for (action, known) in delta.steps {
            take_over(&mut self.history.failures, [(action, known.failures)]);
            take_over(&mut self.history.done, [(action, known.done)]);
        }
        self.revision = delta.revision;
        Ok(())
    }

    /// Whether the write can invalidate decisions about leases, without being a lease itself. What is only
    /// added can't: decisions don't use it.
    fn affects_admission(&self, write: &Write) -> bool {
        match write {
            Write::Lease { .. }
            | Write::ForgetLease { .. }
            | Write::ForgetInstance { .. }
            | Write::AddFloatingIp(_) => false,
            Write::Host { record, .. } => self.hosts.contains_key(&record.host.id),
            Write::Flavor(flavor) => self.flavors.contains_key(&flavor.id),
            Write::Instance { record, .. } => stays(&record.instance),
            _ => true,
        }
    }

    /// Like [`Self::affects_admission`], for commits of other services.
    fn delta_affects_admission(&self, delta: &Delta) -> bool {
        let Delta { revision: _, leases: _, steps: _, instances, .. } = delta;
        let Delta { hosts, floating_ips, free_pools, flavors, properties, preemptible_projects, .. } = delta;
        hosts.keys().any(|id| self.hosts.contains_key(id))
            || floating_ips.keys().any(|id| self.floating_ips.contains_key(id))
            || flavors.keys().any(|id| self.flavors.contains_key(id))
            || !(free_pools.is_empty() && properties.is_empty() && preemptible_projects.is_empty())
            || instances.values().flatten().any(|record| stays(&record.instance))
    }

    fn put_lease(&mut self, record: Arc<LeaseRecord>, now: Timestamp) -> Result<(), Conflict> {
        if is_for_offers(&record.lease) {
            self.offered.put(&record.lease, now)?;
        } else if record.lease.standing.is_firm() {
            self.calendar.put(&record.lease, now)?;
        }
        if record.lease.standing.is_firm() {
            self.proposals.remove(record.lease.id);
            self.leases.put(record);
        } else {
            self.proposals.put(record);
        }
        Ok(())
    }

    /// Writes that withdraw the offers of these groups and their reservations.
    pub fn withdrawing_offers(&self, groups: &BTreeSet<OffersId>) -> Vec<Write> {
        self.proposals.of_groups(groups).map(|record| forget(record)).collect()
    }

    /// The calendar of leases, plus the reservations of offers for which `counts` returns true.
    pub fn calendar_with_offers(
        &self,
        counts: impl Fn(&LeaseRecord) -> bool,
        now: Timestamp,
    ) -> Cow<'_, Calendar> {
        let mut reserved = self.proposals.reserved().filter(|record| counts(record)).peekable();
        if reserved.peek().is_none() {
            return Cow::Borrowed(&self.calendar);
        }
        let mut calendar = self.calendar.clone();
        for record in reserved {
            // If a lease has taken the resources since, its commit withdraws the offer.
            let _ = calendar.put(&record.lease, now);
        }
        Cow::Owned(calendar)
    }

    /// The free pool with that identifier, or the default pool if it is unknown.
    pub fn free_pool(&self, id: FreePoolId) -> &FreePool {
        &self.free_pools.get(&id).unwrap_or(&self.free_pools[&FreePool::DEFAULT]).pool
    }

    fn put_free_pool(&mut self, record: FreePoolRecord) {
        let pool = &record.pool;
        let hosts = self.hosts.values().filter(|record| record.host.pool == pool.id);
        let described: Vec<Host> = hosts.map(|record| apply_pool_description(&record.host, pool)).collect();
        for host in described {
            self.put_described(host);
        }
        self.free_pools.insert(record.pool.id, Arc::new(record));
    }

    /// Removes a pool that contains no hosts. The default pool is reset instead.
    fn remove_free_pool(&mut self, id: FreePoolId) {
        if id == FreePool::DEFAULT {
            self.put_free_pool(default_pool());
        } else {
            self.free_pools.remove(&id);
        }
    }

    fn put_host(&mut self, record: HostRecord) {
        self.put_described(apply_pool_description(&record.host, self.free_pool(record.host.pool)));
        self.hosts.insert(record.host.id, Arc::new(record));
    }

    fn put_described(&mut self, host: Host) {
        for (ids, included) in
            [(&mut self.asleep, !host.power.is_on()), (&mut self.impaired, is_impaired(&host))]
        {
            if included {
                ids.insert(host.id);
            } else {
                ids.remove(&host.id);
            }
        }
        self.inventory.put_host(host);
    }

    fn remove_host(&mut self, id: HostId) {
        self.inventory.remove_host(id);
        self.asleep.remove(&id);
        self.impaired.remove(&id);
        self.hosts.remove(&id);
    }

    fn put_floating_ip(&mut self, record: FloatingIpRecord) {
        self.inventory.put_floating_ip(record.floating_ip.clone());
        self.floating_ips.insert(record.floating_ip.id, Arc::new(record));
    }

    fn remove_floating_ip(&mut self, id: FloatingIpId) {
        self.inventory.remove_floating_ip(id);
        self.floating_ips.remove(&id);
    }

    /// Leases that a plan needs: running leases, leases that start by `until`, leases with traces on machines
    /// (in any status), and finished leases with a reason that might be outdated. The many leases that start
    /// later aren't included.
    pub fn due<'a>(
        &'a self,
        observed: &Observed,
        until: Timestamp,
    ) -> impl Iterator<Item = &'a Lease> + use<'a> {
        let mut due = self.leases.due(until);
        let traces = Traces::of(observed);
        due.extend(traces.leases);
        let reservations = traces.reservations.into_iter();
        due.extend(reservations.filter_map(|reservation| self.leases.of_reservation(reservation)));
        due.into_iter().filter_map(|id| self.leases.get(id).map(|record| &record.lease))
    }

    /// The observation, plus guests that are about to arrive.
    pub fn with_guests_to_come(&self, mut observed: Observed) -> Observed {
        guests_to_come(&mut observed, self.instances.iter().map(|record| &record.instance));
        observed
    }

    /// Leases that healing might change: degraded ones, and those on a failed host.
    pub fn ill(&self) -> BTreeSet<LeaseId> {
        let failed = self.impaired_hosts().filter(|host| host.health == Health::Failed);
        let bookings = failed.flat_map(|host| self.calendar.bookings(host.id));
        let mut ill: BTreeSet<LeaseId> = bookings.map(|(_, booking)| booking.lease).collect();
        ill.extend(self.leases.degraded());
        ill
    }

    fn impaired_hosts(&self) -> impl Iterator<Item = &Host> {
        self.impaired.iter().filter_map(|id| self.inventory.host(*id))
    }

    /// Pending leases on hosts that are closed for new leases.
    pub fn on_closed_hosts(&self) -> BTreeSet<LeaseId> {
        let closed = self.impaired_hosts().filter(|host| !host.reservable);
        let bookings = closed.flat_map(|host| self.calendar.bookings(host.id));
        let pending = |id: &LeaseId| {
            self.leases.get(*id).is_some_and(|record| record.lease.status == LeaseStatus::Pending)
        };
        bookings.map(|(_, booking)| booking.lease).filter(pending).collect()
    }
}

/// Inserts values, and removes keys without a value.
fn take_over<K: Ord, V>(into: &mut BTreeMap<K, V>, changes: impl IntoIterator<Item = (K, Option<V>)>) {
    for (key, value) in changes {
        match value {
            Some(value) => into.insert(key, value),
            None => into.remove(&key),
        };
    }
}

#[cfg(test)]
mod tests {
    use leases::ids::ReservationId;
    use leases::lease::{Allocation, NewLease};
    use leases::project::{Owner, ProjectId, UserId};
    use leases::terms::{HostsTerms, ReservationTerms, Terms};
    use leases::window::Window;

    use super::*;

    fn on(id: u128, host: u64) -> LeaseRecord {
        let identity = NewLease {
            id: LeaseId(id),
            name: format!("lease {id}"),
            owner: Owner { project: ProjectId("p".into()), user: UserId("u".into()) },
            end_action: leases::lease::EndAction::DeleteGuests,
            reservations: vec![ReservationId(id)],
        };
        let window = Window::starting(Timestamp::UNIX_EPOCH, SignedDuration::from_hours(1));
        let asked = ReservationTerms::Hosts(HostsTerms::new(1, 1).expect("a range"));
        let terms = Terms::new(window, None, vec![asked]).expect("terms");
        let given = vec![Allocation::Hosts([HostId(host)].into())];
        LeaseRecord::new(Lease::new(identity, terms, given, None), BTreeMap::new(), Timestamp::UNIX_EPOCH)
    }

    /// Leases that make room for each other take each other's hosts in one commit.
    #[test]
    fn hosts_change_hands_in_any_order_within_a_commit() {
        let now = Timestamp::UNIX_EPOCH;
        let snapshot = Snapshot { leases: vec![on(1, 1), on(2, 2)], ..Snapshot::default() };
        let mut state = State::new(snapshot, SignedDuration::ZERO, now).expect("no two have one host");
        let write = |record: LeaseRecord| Write::Lease {
            expected: Some(record.version),
            record: Box::new(LeaseRecord { version: record.version.next(), ..record }),
        };
        let swapped = vec![write(on(1, 2)), write(on(2, 1))];
        assert_eq!(state.apply(swapped, now), Ok(()));
        let has = |host| state.calendar.bookings(HostId(host)).map(|(_, b)| b.lease.0).collect::<Vec<_>>();
        assert_eq!((has(1), has(2)), (vec![2], vec![1]));
    }
}
