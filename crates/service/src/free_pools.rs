//! Free pools: creation, changes, removal, and their end action for leases (FP).

use std::collections::BTreeSet;
use std::sync::Arc;

use leases::free_pool::{FreePool, POOL_PROPERTY, end_action_of};
use leases::hints::HintRules;
use leases::ids::{FreePoolId, HostId};
use leases::lease::{Allocation, EndAction};
use leases::text::Quoted;
use store::{Commit, FreePoolRecord, HostRecord, Version, Write};

use crate::hosts::{check_capabilities, relied_on};
use crate::service::Service;
use crate::state::State;
use crate::transact::Transaction;
use crate::types::{Caller, FreePoolChange, NewFreePool, NotFound, ServiceError};
use crate::writing::audit;

/// Access to free pools and their hosts.
#[derive(Clone, Copy, Debug)]
pub struct FreePools<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> FreePools<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    /// All free pools, sorted by identifier. The first is the default pool, which always exists.
    pub fn all(self) -> Vec<Arc<FreePoolRecord>> {
        self.service.state().free_pools.values().cloned().collect()
    }

    /// Finds a free pool by identifier or name.
    pub fn get(self, id_or_name: &str) -> Option<Arc<FreePoolRecord>> {
        let state = self.service.state();
        let by_id = state.free_pools.values().find(|record| record.pool.id.to_string() == id_or_name);
        by_id.or_else(|| state.free_pools.values().find(|record| record.pool.name == id_or_name)).cloned()
    }

    pub fn of_host(self, host: &HostRecord) -> Arc<FreePoolRecord> {
        let state = self.service.state();
        Arc::clone(state.free_pools.get(&host.host.pool).unwrap_or(&state.free_pools[&FreePool::DEFAULT]))
    }

    /// Number of hosts in a free pool.
    pub fn hosts_in(self, pool: FreePoolId) -> usize {
        hosts_in(&self.service.state(), pool)
    }

    /// Creates a free pool without hosts (FP-1).
    pub async fn create(
        self,
        caller: &Caller,
        new: NewFreePool,
    ) -> Result<Arc<FreePoolRecord>, ServiceError> {
        let NewFreePool { name, extra_specs, end_action } = new;
        check_capabilities(extra_specs.iter().map(|(key, value)| (key, Some(value))))?;
        let id = FreePoolId(self.service.parts.ids.uuid());
        let create = |state: &State, now| {
            check_name(state, &name, id)?;
            let pool = FreePool { id, name: name.clone(), extra_specs: extra_specs.clone(), end_action };
            let record = FreePoolRecord { pool, version: Version::FIRST, created_at: now, updated_at: None };
            Ok(Transaction::of(entering(caller, "freepool.create", &record, None), Arc::new(record)))
        };
        self.service.transact(create).await
    }

    /// Changes a free pool (FP-3). Fails if it would change properties of hosts that reservations depend on.
    pub async fn update(
        self,
        caller: &Caller,
        id: FreePoolId,
        change: FreePoolChange,
    ) -> Result<Arc<FreePoolRecord>, ServiceError> {
        if let Some(specs) = &change.extra_specs {
            check_capabilities(specs.iter().map(|(key, value)| (key, Some(value))))?;
        }
        let update = |state: &State, now| {
            let before = known(state, id)?;
            let FreePoolChange { name, extra_specs, end_action } = change.clone();
            let pool = FreePool {
                id,
                name: name.unwrap_or_else(|| before.pool.name.clone()),
                extra_specs: extra_specs.unwrap_or_else(|| before.pool.extra_specs.clone()),
                end_action: end_action.unwrap_or(before.pool.end_action),
            };
            if pool == before.pool {
                return Ok(Transaction::none(before));
            }
            check_name(state, &pool.name, id)?;
            check_relied_on(state, self.service.hint_rules(), &before.pool, &pool)?;
            let stored = (before.version != Version(0)).then_some(before.version);
            let created_at = stored.map_or(now, |_| before.created_at);
            let version = before.version.next();
            let record = FreePoolRecord { pool, version, created_at, updated_at: Some(now) };
            // A lease that waits or lacks hosts might get its hosts now.
            Ok(Transaction::of(entering(caller, "freepool.update", &record, stored), Arc::new(record))
                .wakes())
        };
        self.service.transact(update).await
    }

    /// Removes an empty free pool (FP-2).
    pub async fn delete(self, caller: &Caller, id: FreePoolId) -> Result<(), ServiceError> {
        let delete = |state: &State, now| {
            let before = known(state, id)?;
            let name = &before.pool.name;
            if id == FreePool::DEFAULT {
                let text = format!(
                    "Can't delete free pool {}. It is for hosts of which no other is named.",
                    Quoted(name)
                );
                return Err(ServiceError::Conflict(text));
            }
            let hosts = hosts_in(state, id);
            if hosts > 0 {
                let text = format!("Can't delete free pool {}. {hosts} host(s) are in it.", Quoted(name));
                return Err(ServiceError::Conflict(text));
            }
            let mut commit = Commit::new(now);
            commit.audit.push(audit(caller, now, "freepool.delete", &id));
            commit.writes.push(Write::RemoveFreePool { id, expected: before.version });
            Ok(Transaction::of(commit, ()))
        };
        self.service.transact(delete).await
    }

    /// Moves a host to another free pool. It keeps its identifier, its own capabilities, and its leases.
    /// Fails if a property that reservations depend on would change.
    pub async fn move_host(
        self,
        caller: &Caller,
        id: HostId,
        pool: FreePoolId,
    ) -> Result<Arc<HostRecord>, ServiceError> {
        let move_it = |state: &State, now| {
            let before = state.hosts.get(&id).cloned().ok_or(ServiceError::NotFound(NotFound::Host(id)))?;
            let to = known(state, pool)?;
            if before.host.pool == pool {
                return Ok(Transaction::none(before));
            }
            check_move(state, self.service.hint_rules(), &before, &to.pool)?;
            let mut after = HostRecord::clone(&before);
            after.host.pool = pool;
            after.version = before.version.next();
            after.updated_at = Some(now);
            let mut commit = Commit::new(now);
            commit.audit.push(audit(caller, now, "host.move", &id));
            let record = Box::new(after.clone());
            commit.writes.push(Write::Host { record, expected: Some(before.version) });
            // A lease that waits or lacks hosts might get the host now.
            Ok(Transaction::of(commit, Arc::new(after)).wakes())
        };
        self.service.transact(move_it).await
    }
}

fn hosts_in(state: &State, pool: FreePoolId) -> usize {
    state.hosts.values().filter(|record| record.host.pool == pool).count()
}

fn known(state: &State, id: FreePoolId) -> Result<Arc<FreePoolRecord>, ServiceError> {
    let known = state.free_pools.get(&id).cloned();
    known.ok_or_else(|| ServiceError::NotFound(NotFound::FreePool(id.to_string())))
}

fn check_name(state: &State, name: &str, own: FreePoolId) -> Result<(), ServiceError> {
    let taken = state.free_pools.values().any(|record| record.pool.name == name && record.pool.id != own);
    if taken {
        Err(ServiceError::Conflict(format!("There is a free pool named {} already.", Quoted(name))))
    } else {
        Ok(())
    }
}

fn entering(caller: &Caller, action: &str, record: &FreePoolRecord, expected: Option<Version>) -> Commit {
    let at = record.updated_at.unwrap_or(record.created_at);
    let mut commit = Commit::new(at);
    commit.audit.push(audit(caller, at, action, &record.pool.id));
    commit.writes.push(Write::FreePool { record: Box::new(record.clone()), expected });
    commit
}

/// Fails if the change of a pool affects a property that current or future reservations of its hosts depend
/// on. The pool's name is exempt.
fn check_relied_on(
    state: &State,
    rules: &HintRules,
    before: &FreePool,
    after: &FreePool,
) -> Result<(), ServiceError> {
    for record in state.hosts.values().filter(|record| record.host.pool == before.id) {
        let [old, new] = [before, after].map(|pool| pool.describe(record.host.clone()));
        let mut relied_on = relied_on(state, rules, &old, &new);
        relied_on.remove(POOL_PROPERTY);
        if let Some(name) = relied_on.first() {
            let host = record.host.id;
            let text = format!(
                "Can't change '{}' of free pool {}: host {host} is reserved for it.",
                Quoted(name),
                Quoted(&before.name)
            );
            return Err(ServiceError::Conflict(text));
        }
    }
    Ok(())
}

/// Fails if the move of a host changes a property that current or future reservations of it depend on.
fn check_move(
    state: &State,
    rules: &HintRules,
    record: &HostRecord,
    to: &FreePool,
) -> Result<(), ServiceError> {
    let from = state.free_pool(record.host.pool);
    let [old, new] = [from, to].map(|pool| pool.describe(record.host.clone()));
    match relied_on(state, rules, &old, &new).first() {
        None => Ok(()),
        Some(name) => Err(ServiceError::Conflict(format!(
            "Can't move host {} to free pool {}: it is reserved for its '{}', which would change.",
            Quoted(&record.host.name),
            Quoted(&to.name),
            Quoted(name)
        ))),
    }
}

/// End action of a lease: as requested by its owner, or else by the pools of its hosts. On shared hosts, the
/// pools' action can't migrate guests or save their images, so they are kept instead.
pub(crate) fn end_action(
    state: &State,
    asked: Option<EndAction>,
    default: EndAction,
    allocations: &[Allocation],
) -> EndAction {
    let hosts: BTreeSet<HostId> = allocations.iter().flat_map(Allocation::hosts).collect();
    let hosts = hosts.iter().filter_map(|host| state.hosts.get(host));
    let pools = hosts.map(|record| state.free_pool(record.host.pool));
    let action = asked.unwrap_or_else(|| end_action_of(pools, default));
    let shared = allocations.iter().any(|allocation| matches!(allocation, Allocation::Slots(_)));
    if asked.is_none() && shared && action.needs_whole_hosts() { EndAction::KeepGuests } else { action }
}
