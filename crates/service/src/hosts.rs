//! Hosts that can be leased, and their properties.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use fleet::{FleetError, HookedCall, Machine, Outcome};
use jiff::{SignedDuration, Timestamp};
use leases::energy::{NEVER, SAVING};
use leases::free_pool::POOL_PROPERTY;
use leases::hints::HintRules;
use leases::host::Host;
use leases::ids::{FreePoolId, HostId};
use leases::instance::InstanceStatus;
use leases::lease::Reservation;
use leases::plan::Place;
use leases::resources::ResourceClass;
use leases::terms::ReservationTerms;
use leases::text::{Quoted, counted, quoted_list};
use store::{Commit, CommitError, HostRecord, InstanceRecord, PropertyRecord, Version, Write};

use crate::deciding::beside_requests;
use crate::other_hosts::{Moved, enter_moved, without_host};
use crate::service::Service;
use crate::state::State;
use crate::transact::{ATTEMPTS, Transaction};
use crate::types::{Caller, HostSelector, HostUpdate, NotFound, Property, ServiceError};
use crate::writing::{Writer, audit, conflict_error, retry_on_conflict};

/// Maximum length of a capability's name, as in Blazar.
const LONGEST_KEY: usize = 64;

/// Interval of polling the fleet for the end of an operation.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(1);

/// Maximum number of leases that are reallocated while the write lock is held.
const MOVED_AT_ONCE: usize = 500;

/// Access to hosts and their properties.
#[derive(Clone, Copy, Debug)]
pub struct Hosts<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> Hosts<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    /// All hosts, sorted by identifier.
    pub fn all(self) -> Vec<Arc<HostRecord>> {
        self.service.state().hosts.values().cloned().collect()
    }

    /// Hosts sorted by identifier: at most `limit` after `after`.
    pub fn after(self, after: Option<HostId>, limit: usize) -> Vec<Arc<HostRecord>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let state = self.service.state();
        let rest = state.hosts.range((from, Bound::Unbounded));
        rest.take(limit).map(|(_, record)| Arc::clone(record)).collect()
    }

    pub fn get(self, id: HostId) -> Option<Arc<HostRecord>> {
        self.service.state().hosts.get(&id).cloned()
    }

    /// Takes on a machine of the fleet as a host in this pool (FP-4).
    pub async fn add(
        self,
        caller: &Caller,
        which: HostSelector,
        capabilities: Vec<(String, String)>,
        pool: FreePoolId,
    ) -> Result<Arc<HostRecord>, ServiceError> {
        check_capabilities(capabilities.iter().map(|(key, value)| (key, Some(value))))?;
        let known = || self.service.state().free_pools.contains_key(&pool);
        let unknown = || ServiceError::NotFound(NotFound::FreePool(pool.to_string()));
        if !known() {
            return Err(unknown());
        }
        let machine = self.machine(&which).await?;
        if self.get(machine.id).is_some() {
            return Err(self.known_already(&machine, pool));
        }
        if !machine.guests.is_empty() && !self.service.parts.fleet.adopts_with_guests() {
            return Err(ServiceError::Conflict(machine.occupied()));
        }
        let mut host = Host { pool, ..Host::new(machine.id, &machine.name, 0, 0, 0) };
        refresh(&mut host, &machine);
        host.capabilities = capabilities.into_iter().collect();
        // The fleet comes first: a machine in the free pool that isn't a host yet does no harm, and a second
        // call completes an interrupted one.
        drop(self.service.writer().await?);
        self.adopt(machine.id).await?;
        let writer = self.service.writer().await?;
        let now = self.service.now();
        let record = HostRecord { host, version: Version::FIRST, created_at: now, updated_at: None };
        let mut commit = Commit::new(now);
        commit.writes.push(Write::Host { record: Box::new(record.clone()), expected: None });
        commit.audit.push(audit(caller, now, "host.create", &machine.id));
        match writer.commit(commit).await {
            Ok(()) => {
                self.service.progress().take_on(machine.id);
                self.service.wake.notify_one();
                Ok(Arc::new(record))
            }
            // The pool was removed in the meantime.
            Err(CommitError::Stale { .. }) if !known() => Err(unknown()),
            Err(CommitError::Stale { .. } | CommitError::Exists { .. }) => {
                Err(self.known_already(&machine, pool))
            }
            Err(error) => Err(retry_on_conflict(error).err().unwrap_or_else(conflict_error)),
        }
    }

    /// Error for a machine that is a host already.
    fn known_already(self, machine: &Machine, pool: FreePoolId) -> ServiceError {
        let (state, name, id) = (self.service.state(), Quoted(&machine.name), machine.id);
        let Some(record) = state.hosts.get(&id) else {
            // Another service has just taken it on.
            return ServiceError::Conflict(format!("{name} is a host already."));
        };
        let (own, to) = (state.free_pool(record.host.pool), state.free_pool(pool));
        // Don't suggest a move to the pool that it is in.
        let to = if own.id == to.id { "POOL" } else { to.name.as_str() };
        ServiceError::Conflict(format!(
            "{name} is in the pool {}: move it with `allot freepool add-host --move {} {name}` (PUT \
             /v1/freepools/{}/hosts/{id}), or change what it has with `allot host update {name}` (PUT \
             /v1/os-hosts/{id})",
            Quoted(&own.name),
            Quoted(to),
            Quoted(to)
        ))
    }

    async fn machine(self, which: &HostSelector) -> Result<Machine, ServiceError> {
        let machines = self.service.in_time(self.service.parts.fleet.machines()).await?;
        let found = machines.into_iter().find(|machine| match which {
            HostSelector::Name(name) => machine.name == *name,
            HostSelector::Id(id) => machine.id == *id,
        });
        found.ok_or_else(|| {
            ServiceError::NotFound(NotFound::Machine(match which {
                HostSelector::Name(name) => name.clone(),
                HostSelector::Id(id) => id.to_string(),
            }))
        })
    }

    /// Waits until the machine is in the free pool.
    pub(crate) async fn adopt(self, id: HostId) -> Result<(), ServiceError> {
        let call = HookedCall::Adopt;
        let deadline = self.service.now() + self.service.time_for(call);
        while self.service.in_time_for(call, self.service.parts.fleet.adopt(id)).await? == Outcome::Pending {
            if self.service.now() >= deadline {
                return Err(ServiceError::Fleet(format!("host {id} is still on its way to the free pool")));
            }
            self.service.parts.clock.sleep_until(self.service.now() + LOOK_AGAIN).await;
        }
        Ok(())
    }

    /// Sets capabilities of a host, or removes them if the value is missing, and closes or opens it for new
    /// leases. Makes all changes or fails without any change. The next cycles of the loop reallocate pending
    /// leases of a closed host if there are other hosts; running leases keep it.
    pub async fn update(
        self,
        caller: &Caller,
        id: HostId,
        change: impl Into<HostUpdate>,
    ) -> Result<Arc<HostRecord>, ServiceError> {
        let HostUpdate { capabilities, reservable } = change.into();
        if capabilities.is_empty() && reservable.is_none() {
            return Err(ServiceError::Invalid("No data to update".to_owned()));
        }
        check_capabilities(capabilities.iter().map(|(key, value)| (key, value.as_ref())))?;
        let update = |state: &State, now| {
            let before = state.hosts.get(&id).cloned().ok_or(ServiceError::NotFound(NotFound::Host(id)))?;
            let mut after = HostRecord::clone(&before);
            set(&mut after.host.capabilities, &capabilities);
            after.host.reservable = reservable.unwrap_or(before.host.reservable);
            if after.host == before.host {
                return Ok(Transaction::none(before));
            }
            let relied_on = relied_on(state, self.service.hint_rules(), &before.host, &after.host);
            if !relied_on.is_empty() {
                let keys: Vec<String> = relied_on.iter().map(|key| format!("'{key}'")).collect();
                let text = format!("Can't add extracapabilities [{}] to Host {id}", quoted_list(&keys, ", "));
                return Err(ServiceError::Conflict(text));
            }
            after.version = before.version.next();
            after.updated_at = Some(now);
            let mut commit = Commit::new(now);
            if after.host.reservable != before.host.reservable {
                let action = if after.host.reservable { "host.open" } else { "host.close" };
                commit.audit.push(audit(caller, now, action, &id));
            }
            if after.host.capabilities != before.host.capabilities {
                commit.audit.push(audit(caller, now, "host.update", &id));
            }
            let record = Box::new(after.clone());
            commit.writes.push(Write::Host { record, expected: Some(before.version) });
            // A lease that waits or lacks hosts might get the host now. Leases leave a closed host.
            Ok(Transaction::of(commit, Arc::new(after)).wakes())
        };
        self.service.transact(update).await
    }

    /// Returns a host without reservations to the fleet.
    pub async fn remove(self, caller: &Caller, id: HostId) -> Result<(), ServiceError> {
        let nothing = Moved { leases: Vec::new(), all: true };
        self.take_out(
            caller,
            id,
            |state, _, _| if kept(state, id) { Err(reserved(id)) } else { Ok(nothing.clone()) },
        )
        .await
    }

    /// Returns a host to the fleet. Pending leases get other hosts (FP-5).
    pub async fn remove_from_pool(self, caller: &Caller, id: HostId) -> Result<(), ServiceError> {
        let settings = &self.service.decider.settings;
        self.take_out(caller, id, |state, most, now| {
            if starts_there(state, id) {
                return Err(reserved(id));
            }
            without_host(state, settings, &self.service.decider.host_facts(state, now), id, most, now)
        })
        .await
    }

    async fn take_out(
        self,
        caller: &Caller,
        id: HostId,
        moved: impl Fn(&State, usize, Timestamp) -> Result<Moved, ServiceError>,
    ) -> Result<(), ServiceError> {
        let removable = |most| -> Result<_, ServiceError> {
            let (state, now) = (self.service.snapshot(), self.service.now());
            let before = state.hosts.get(&id).cloned().ok_or(ServiceError::NotFound(NotFound::Host(id)))?;
            if !before.host.power.is_on() {
                return Err(ServiceError::Conflict(format!(
                    "Can't delete host {id}. It is switched off, or on its way; set its capability '{SAVING}' to \
                     '{NEVER}' and try again when it is on."
                )));
            }
            Ok((before, moved(&state, most, now)?, now))
        };
        let limit = self
            .service
            .now()
            .checked_add(self.service.decider.settings.delete_wait)
            .unwrap_or(Timestamp::MAX);
        for _ in 0..ATTEMPTS {
            self.service.update().await?;
            let (looked_at, ..) = beside_requests(|| removable(usize::MAX))?;
            // Without the write lock, so that a slow fleet doesn't block other clients.
            self.empty(id, limit).await?;
            let writer = self.service.writer().await?;
            let (before, moved, now) = beside_requests(|| removable(MOVED_AT_ONCE))?;
            if before.version != looked_at.version {
                // An instance might have been started there.
                continue;
            }
            match forget_host(&writer, caller, &before, &moved, now).await {
                Ok(false) => {}
                Ok(true) => {
                    drop(writer);
                    // If this fails, the loop tries again, because the host isn't on record anymore.
                    self.service.progress().leave(id);
                    let answer = self.abandon(id).await;
                    self.note_abandoned(id, answer);
                    return Ok(());
                }
                Err(CommitError::InUse { .. }) => return Err(reserved(id)),
                Err(error) => retry_on_conflict(error)?,
            }
        }
        Err(conflict_error())
    }

    /// Waits until the host is cleaned up after its last lease, up to `limit`: clients often delete a lease
    /// and then its hosts. Doesn't wait for instances outside leases.
    async fn empty(self, id: HostId, limit: Timestamp) -> Result<(), ServiceError> {
        loop {
            let observed =
                self.service.in_time(self.service.parts.fleet.observe(&BTreeSet::from([id]), &[])).await?;
            let Some(host) = observed.hosts.get(&id) else { return Ok(()) };
            let taken_back = host.place == Place::FreePool && host.slots.is_empty();
            if taken_back && host.guests.is_empty() {
                return Ok(());
            }
            let why = if taken_back {
                format!("It has {}.", counted(host.guests.len() as u64, "instance", "instances"))
            } else if self.service.now() < limit {
                self.service.parts.clock.sleep_until(self.service.now() + LOOK_AGAIN).await;
                continue;
            } else {
                "It is still being taken back from a lease that is over; try again later.".to_owned()
            };
            return Err(ServiceError::Conflict(format!("Can't delete host {id}. {why}")));
        }
    }

    /// Returns a host to the fleet, with the time limit of a step.
    pub(crate) async fn abandon(self, host: HostId) -> Result<Outcome, FleetError> {
        let limit = self.service.now() + self.service.time_for(HookedCall::Abandon);
        self.service.until(limit, self.service.parts.fleet.abandon(host)).await
    }

    /// Notes whether the fleet has taken back a removed host. If not, the loop tries again.
    pub(crate) fn note_abandoned(self, host: HostId, answer: Result<Outcome, FleetError>) {
        match answer {
            Ok(Outcome::Done) => {
                self.service.progress().left.remove(&host);
            }
            Ok(Outcome::Pending) => {}
            Err(error) => tracing::warn!(%host, %error, "removed host not given back, retrying"),
        }
    }

    /// Names and values of capabilities.
    pub fn properties(self) -> Vec<Property> {
        let state = self.service.snapshot();
        let mut values: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        // If there is only one pool, the pool property has no information.
        let pools = state.free_pools.len() > 1;
        for host in state.inventory.hosts() {
            for (name, value) in host.capabilities.iter().filter(|(name, _)| pools || *name != POOL_PROPERTY)
            {
                values.entry(name).or_default().insert(value);
            }
        }
        values.into_iter().map(|(name, values)| property(&state, name, values)).collect()
    }

    /// A capability with its values; `None` if no host has it.
    pub(crate) fn capability(self, name: &str) -> Option<Property> {
        let state = self.service.state();
        if name == POOL_PROPERTY && state.free_pools.len() <= 1 {
            return None;
        }
        let values = state.inventory.hosts().filter_map(|host| host.capabilities.get(name));
        let values: BTreeSet<&str> = values.map(String::as_str).collect();
        (!values.is_empty()).then(|| property(&state, name, values))
    }

    /// Hides a property from lists, or shows it.
    pub async fn set_property_private(
        self,
        caller: &Caller,
        name: &str,
        private: bool,
    ) -> Result<PropertyRecord, ServiceError> {
        let writer = self.service.writer().await?;
        let now = self.service.now();
        let known = self.service.state().properties.get(name).cloned();
        let there = self.service.state().inventory.hosts().any(|host| host.capabilities.contains_key(name));
        let record = match known {
            Some(known) => PropertyRecord { private, updated_at: Some(now), ..known },
            None if there => PropertyRecord {
                id: self.service.parts.ids.uuid(),
                name: name.to_owned(),
                private,
                created_at: now,
                updated_at: Some(now),
            },
            None => return Err(ServiceError::NotFound(NotFound::Property(name.to_owned()))),
        };
        let mut commit = Commit::new(now);
        commit.audit.push(audit(caller, now, "property.update", &name));
        commit.writes.push(Write::Property(record.clone()));
        match writer.commit(commit).await {
            Ok(()) => Ok(record),
            Err(error) => Err(retry_on_conflict(error).err().unwrap_or_else(conflict_error)),
        }
    }
}

/// Reallocates the leases of a host and removes it, in one commit. If the leases exceed the limits of a
/// transaction, reallocates a part and returns false. Returns true once the host is removed.
async fn forget_host(
    writer: &Writer<'_>,
    caller: &Caller,
    record: &HostRecord,
    moved: &Moved,
    now: Timestamp,
) -> Result<bool, CommitError> {
    let mut count = moved.leases.len();
    loop {
        let last = moved.all && count == moved.leases.len();
        let mut commit = Commit::new(now);
        if last {
            commit.audit.push(audit(caller, now, "host.delete", &record.host.id));
            commit.writes.push(Write::RemoveHost { id: record.host.id, expected: record.version });
        }
        enter_moved(&mut commit, &moved.leases[..count]);
        // A single lease is never split.
        let committed =
            if count > 1 { writer.commit_request(commit).await } else { writer.commit(commit).await };
        match committed {
            Err(CommitError::TooLarge(error)) => count = error.part_of(count),
            committed => return committed.map(|()| last),
        }
    }
}

fn property(state: &State, name: &str, values: BTreeSet<&str>) -> Property {
    Property {
        name: name.to_owned(),
        private: state.properties.get(name).is_some_and(|property| property.private),
        values: values.into_iter().map(str::to_owned).collect(),
    }
}

/// Copies facts that the fleet determines (W30). The host's name and identifier stay.
pub(crate) fn refresh(host: &mut Host, machine: &Machine) {
    host.service_name.clone_from(&machine.service_name);
    host.vcpus = machine.vcpus;
    host.memory_mib = machine.memory_mib;
    host.disk_gib = machine.disk_gib;
    host.other_resources = machine
        .other_resources
        .iter()
        .map(|(class, amount)| (ResourceClass(class.clone()), *amount))
        .collect();
    host.traits.clone_from(&machine.traits);
    host.cpu_info.clone_from(&machine.cpu_info);
    host.hypervisor_type.clone_from(&machine.hypervisor_type);
    host.hypervisor_version = machine.hypervisor_version;
    host.availability_zone.clone_from(&machine.availability_zone);
    host.health = machine.health;
}

/// Checks names and values. A capability without a value is removed.
pub(crate) fn check_capabilities<'a>(
    capabilities: impl Iterator<Item = (&'a String, Option<&'a String>)>,
) -> Result<(), ServiceError> {
    for (key, value) in capabilities {
        if key.chars().count() > LONGEST_KEY {
            return Err(ServiceError::Invalid("Extra capability key too long".to_owned()));
        }
        if let Some(value) = value.filter(|_| key == SAVING)
            && !["", NEVER].contains(&value.trim())
        {
            let text = format!("{SAVING}: {} is not valid; the only value is {NEVER}", Quoted(value));
            return Err(ServiceError::Invalid(text));
        }
    }
    Ok(())
}

fn set(capabilities: &mut BTreeMap<String, String>, changes: &[(String, Option<String>)]) {
    for (key, value) in changes {
        match value {
            Some(value) => capabilities.insert(key.clone(), value.clone()),
            None => capabilities.remove(key),
        };
    }
}

/// Changed capabilities that current or future reservations of the host depend on.
pub(crate) fn relied_on(state: &State, rules: &HintRules, before: &Host, after: &Host) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (_, booking) in state.calendar.bookings(before.id) {
        let Some(record) = state.leases.get(booking.lease) else { continue };
        let reservation = record.lease.reservation(booking.reservation);
        if let Some(reservation) = reservation.filter(|_| record.lease.keeps_resources()) {
            names.extend(required(reservation));
            names.extend(record.lease.hints.names(rules));
        }
    }
    names.retain(|name| before.capabilities.get(*name) != after.capabilities.get(*name));
    names.into_iter().map(str::to_owned).collect()
}

/// Properties named in a reservation's requirements.
pub(crate) fn required(reservation: &Reservation) -> BTreeSet<&str> {
    match &reservation.terms {
        ReservationTerms::Hosts(terms) => {
            let expressions = &terms.hypervisor.names() | &terms.resource.names();
            &expressions | &terms.properties.names()
        }
        ReservationTerms::Instances(terms) => terms.requirement.names(),
        ReservationTerms::Flavor(_) | ReservationTerms::FloatingIps(_) => BTreeSet::new(),
    }
}

/// Whether a lease holds the whole host or slots on it, now or later, or an instance is about to start there.
fn kept(state: &State, id: HostId) -> bool {
    let keeps = |lease| state.leases.get(lease).is_some_and(|record| record.lease.keeps_resources());
    state.calendar.bookings(id).any(|(_, booking)| keeps(booking.lease)) || starts_there(state, id)
}

/// Whether an instance is about to start there. Unlike running instances, it isn't observed.
fn starts_there(state: &State, id: HostId) -> bool {
    let starts = |record: &Arc<InstanceRecord>| {
        record.instance.host == id && record.instance.status == InstanceStatus::Building
    };
    state.instances.iter().any(starts)
}

fn reserved(id: HostId) -> ServiceError {
    ServiceError::Conflict(format!("Can't delete host {id}. The host is reserved."))
}

/// Hosts that differ from their records, updated from their machines.
pub(crate) fn refreshed(state: &State, machines: &BTreeMap<HostId, Machine>) -> Vec<Host> {
    let mut changed = Vec::new();
    for record in state.hosts.values() {
        let host = &record.host;
        let mut now = host.clone();
        if let Some(machine) = machines.get(&host.id) {
            refresh(&mut now, machine);
        }
        if now != *host {
            changed.push(now);
        }
    }
    changed
}
