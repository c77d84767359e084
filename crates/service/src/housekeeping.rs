//! Housekeeping on request (HK): booking maintenance, and replacing bad hosts for owners. Also limits on the
//! leases of one project.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use leases::admission::Refusal;
use leases::hints::Hints;
use leases::ids::{FreePoolId, HostId, LeaseId, ReservationId};
use leases::lease::{self, Allocation, Lease};
use leases::lease_pool::pools;
use leases::maintenance::{MaintenanceWish, earliest_gap};
use leases::plan::GuestOwner;
use leases::project::{Owner, ProjectId};
use leases::quota::{LeaseQuota, LeaseUse, OverLeaseQuota};
use leases::status::LeaseStatus;
use leases::terms::{HostsTerms, ReservationTerms, Terms};
use leases::text::quoted_list;
use leases::window::Window;
use leases::work::Budget;
use store::{Commit, FreePoolRecord, HostRecord, LeaseRecord, Write};

use crate::client::Client;
use crate::decider::Decider;
use crate::deciding::never;
use crate::free_pools::end_action;
use crate::lease_pools::LeasePools;
use crate::leasing::Leases;
use crate::leasing::update::{Basis, Decided};
use crate::notices::{self, notice};
use crate::service::Service;
use crate::state::State;
use crate::transact::Transaction;
use crate::types::{Caller, NewMaintenance, NotFound, PlannedMaintenance, ServiceError};
use crate::writing::audit;

/// Time of the plan, windows found for the hosts, and maintenance that is already booked.
type Planned = (Timestamp, Vec<PlannedMaintenance>, Booked);
/// Booked maintenance that has not started, by host.
type Booked = BTreeMap<HostId, (LeaseId, Window)>;

/// Prefix of the names of maintenance leases.
const NAMED: &str = "maintenance of ";
/// Maximum number of hosts for which one transaction books maintenance.
const HOSTS_AT_ONCE: usize = 1000;
/// Factor for the default lease limit of privileged users.
const PRIVILEGE: u64 = 10;

/// Books maintenance of hosts, and replaces hosts of running leases.
#[derive(Clone, Copy, Debug)]
pub struct Maintenance<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> Maintenance<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    /// Finds a maintenance window for each host.
    pub async fn plan(self, new: &NewMaintenance) -> Result<Vec<PlannedMaintenance>, ServiceError> {
        self.project()?;
        self.service
            .consider(|budget| maintained(&self.service.snapshot(), new, self.service.now(), budget))
            .await
    }

    /// Books maintenance of all these hosts, each in its own window, as leases of the maintenance project.
    ///
    /// Books all hosts or fails without booking any, with one exception: many hosts are committed in parts,
    /// and a later part fails if other leases take the remaining time in between. A host keeps an existing
    /// maintenance lease of the same user and length in the same period. So an interrupted request can be
    /// repeated.
    pub async fn book(
        self,
        caller: &Caller,
        new: &NewMaintenance,
    ) -> Result<Vec<PlannedMaintenance>, ServiceError> {
        let project = self.project()?.clone();
        let owner = Owner { project, user: caller.user.clone() };
        let (mut booked, mut part) = (BTreeMap::new(), HOSTS_AT_ONCE);
        loop {
            let plan = |budget: &Budget| {
                let (state, now) = (self.service.snapshot(), self.service.now());
                let mut planned = maintained(&state, new, now, budget)?;
                let present =
                    if booked.is_empty() { present(&state, &owner, &new.wish) } else { BTreeMap::new() };
                planned.retain(|one| !booked.contains_key(&one.host.host.id));
                Ok((now, planned, present))
            };
            let book = |(now, planned, present): Planned| {
                let is_present = |one: &PlannedMaintenance| present.contains_key(&one.host.host.id);
                let (mut kept, mut left): (Vec<_>, Vec<_>) = planned.into_iter().partition(is_present);
                for one in &mut kept {
                    if let Some((id, window)) = present.get(&one.host.host.id) {
                        (one.lease, one.window) = (Some(*id), Some(*window));
                    }
                }
                check_times(&left)?;
                let more = left.len() > part;
                left.truncate(part);
                let mut commit = Commit::new(now);
                for one in &mut left {
                    let Some(window) = one.window else { continue };
                    let record = self.lease(&owner, &one.host, window, now)?;
                    commit.audit.push(audit(caller, now, "maintenance.book", &record.lease.id));
                    commit.notifications.push(notice(notices::CREATE, &record));
                    one.lease = Some(record.lease.id);
                    commit.writes.push(Write::Lease { record: Box::new(record), expected: None });
                }
                kept.append(&mut left);
                Ok(Transaction::of(commit, (kept, more)).wakes())
            };
            match self.service.transact_decided(plan, never, book).await {
                Ok((some, more)) => {
                    booked.extend(some.into_iter().map(|one| (one.host.host.id, one)));
                    if !more {
                        return Ok(booked.into_values().collect());
                    }
                }
                Err(ServiceError::TooLarge(_)) if part > 1 => part /= 2,
                Err(error) => return Err(error),
            }
        }
    }

    fn project(self) -> Result<&'a ProjectId, ServiceError> {
        let off = || {
            let text = "maintenance is not booked here: housekeeping.maintenance_project names no project";
            ServiceError::Conflict(text.to_owned())
        };
        self.service.decider.settings.housekeeping.maintenance_project.as_ref().ok_or_else(off)
    }

    /// A lease of this host in this window. Skips admission, because the operator may reserve hosts that
    /// other projects can't.
    fn lease(
        self,
        owner: &Owner,
        host: &HostRecord,
        window: Window,
        now: Timestamp,
    ) -> Result<LeaseRecord, ServiceError> {
        let asked = ReservationTerms::Hosts(HostsTerms::new(1, 1).map_err(Refusal::from)?);
        // Pin the host: if it fails before then, another host can't replace it.
        let hints = Hints { hosts: [host.host.name.clone()].into(), ..Hints::default() };
        let terms = Terms::new(window, None, vec![asked]).map_err(Refusal::from)?.hinting(hints);
        let given = vec![Allocation::Hosts([host.host.id].into())];
        let ids = &self.service.parts.ids;
        let identity = lease::NewLease {
            id: LeaseId(ids.uuid()),
            name: format!("{NAMED}{}", host.host.name).chars().take(80).collect(),
            owner: owner.clone(),
            end_action: end_action(
                &self.service.state(),
                None,
                self.service.decider.settings.end_action,
                &given,
            ),
            reservations: vec![ReservationId(ids.uuid())],
        };
        let lease = Lease::new(identity, terms, given, self.service.decider.settings.rules.before_end_lead);
        let wording = BTreeMap::new();
        Ok(LeaseRecord::new(lease, wording, now))
    }

    /// Replaces a host of a running lease that its owner reports as bad. Fails if an instance of the lease is
    /// on it. `limited` applies the operator's limit for owners.
    pub async fn swap_host(
        self,
        caller: &Caller,
        reservation: ReservationId,
        host: HostId,
        limited: bool,
    ) -> Result<Arc<LeaseRecord>, ServiceError> {
        let lease = LeasePools::of(self.service).lease_of(reservation);
        let lease = lease.ok_or(ServiceError::NotFound(NotFound::LeasePool(reservation)))?.lease.id;
        let now = self.service.now();
        let decide = |basis: &Basis<'_>, before: &LeaseRecord| {
            let state = basis.state;
            let lease = &before.lease;
            let has_it =
                pools(lease).any(|(r, _)| r.id == reservation && r.allocation.hosts().contains(&host));
            if !has_it {
                return Err(ServiceError::NotFound(NotFound::Host(host)));
            }
            self.service.decider.check_swap(state, lease, host, limited)?;
            let facts = self.service.decider.host_facts(state, now);
            let admission = self.service.decider.admission(state, &facts, now, basis.budget);
            let lease = admission.swap(lease, reservation, host)?;
            Ok(Decided::only(lease, before))
        };
        Leases::of(self.service).change(caller, lease, now, None, decide).await
    }
}

impl Decider {
    fn check_swap(
        &self,
        state: &State,
        lease: &Lease,
        host: HostId,
        limited: bool,
    ) -> Result<(), ServiceError> {
        let (done, most) = (lease.marks.swaps, self.settings.housekeeping.swaps);
        if limited && done >= most {
            let text = format!("{done} host(s) of the lease were exchanged; the operator allows {most}");
            return Err(ServiceError::Conflict(text));
        }
        let observed = self.expected(state);
        let own = |owner| owner == GuestOwner::Lease(lease.id);
        let guests = observed.hosts.get(&host).into_iter().flat_map(|seen| &seen.guests);
        let own = guests.filter(|guest| own(guest.owner)).count();
        if own > 0 {
            let text = format!("{own} instance(s) of the lease are on the host: delete them first");
            return Err(ServiceError::Conflict(text));
        }
        Ok(())
    }

    /// Checks the project's limits for a new or changed lease.
    pub(crate) fn check_stack_of(
        &self,
        state: &State,
        before: Option<&Lease>,
        lease: &Lease,
    ) -> Result<(), Refusal> {
        self.check_stack_among(state, before, lease, &[])
    }

    /// Like [`Self::check_stack_of`], with leases in `also` that are created together with it.
    pub(crate) fn check_stack_among(
        &self,
        state: &State,
        before: Option<&Lease>,
        lease: &Lease,
        also: &[Arc<LeaseRecord>],
    ) -> Result<(), Refusal> {
        self.check_quota(state, &lease.owner.project, (before, &LeaseUse::from(lease)), also)?;
        let given = lease.reservations.iter().map(|reservation| &reservation.allocation);
        self.check_stack(state, &lease.owner.project, before, &lease.window, given)
    }

    /// Checks the project's quota for a new or changed lease.
    fn check_quota(
        &self,
        state: &State,
        project: &ProjectId,
        (before, asked): (Option<&Lease>, &LeaseUse),
        also: &[Arc<LeaseRecord>],
    ) -> Result<(), OverLeaseQuota> {
        let own = state.leases.of_project(project).chain(also);
        let others = own.map(|record| &record.lease).filter(|other| {
            other.owner.project == *project
                && before.is_none_or(|before| before.id != other.id)
                && other.standing.is_firm()
                && !other.over()
        });
        self.settings.rules.enforcement.check_quota(&self.lease_quota(), project, before, asked, others)
    }

    /// Adds the quota to a refusal for lack of capacity, if the quota would refuse the request as well.
    pub(crate) fn with_quota(
        &self,
        state: &State,
        project: &ProjectId,
        asked: (Option<&Lease>, &LeaseUse),
        also: &[Arc<LeaseRecord>],
        refusal: Refusal,
    ) -> Refusal {
        match self.check_quota(state, project, asked, also) {
            Err(quota) if refusal.is_lack() => Refusal::QuotaAndLack { quota, lack: Box::new(refusal) },
            _ => refusal,
        }
    }

    /// Lease quota of a project. The default limit depends on whether the current client is privileged.
    fn lease_quota(&self) -> LeaseQuota {
        let quota = self.settings.rules.enforcement.quota;
        let privileged = Client::current().is_some_and(|client| client.is_privileged());
        let usual = self
            .settings
            .usual_leases
            .map(|usual| if privileged { usual.saturating_mul(PRIVILEGE) } else { usual });
        LeaseQuota { leases: quota.leases.or(usual), ..quota }
    }

    /// Checks whether the project can have this window in addition to its other leases on hosts of the same
    /// free pools. `before` is the current lease, if it exists.
    pub(crate) fn check_stack<'a>(
        &self,
        state: &State,
        project: &ProjectId,
        before: Option<&Lease>,
        window: &Window,
        given: impl Iterator<Item = &'a Allocation>,
    ) -> Result<(), Refusal> {
        let enforcement = &self.settings.rules.enforcement;
        if enforcement.max_stack.is_none() {
            return Ok(());
        }
        let own = pools_of(state, given);
        let others = state.leases.of_project(project).map(|record| &record.lease).filter(|lease| {
            before.is_none_or(|before| before.id != lease.id) && lease.keeps_resources() && !lease.over()
        });
        let others = others.filter(|lease| {
            let given = lease.reservations.iter().map(|reservation| &reservation.allocation);
            !pools_of(state, given).is_disjoint(&own)
        });
        let before = before.map(|lease| lease.window);
        if own.is_empty() {
            return Ok(());
        }
        enforcement.check_stack(project, before.as_ref(), window, others.map(|lease| lease.window))?;
        Ok(())
    }
}

fn pools_of<'a>(state: &State, given: impl Iterator<Item = &'a Allocation>) -> BTreeSet<FreePoolId> {
    let hosts = given.flat_map(Allocation::hosts);
    hosts.filter_map(|id| state.inventory.host(id)).map(|host| host.pool).collect()
}

/// Fails if there is a host without a maintenance window.
fn check_times(planned: &[PlannedMaintenance]) -> Result<(), ServiceError> {
    let without = planned.iter().filter(|one| one.window.is_none());
    let without: Vec<&str> = without.map(|one| one.host.host.name.as_str()).collect();
    if without.is_empty() {
        return Ok(());
    }
    let text = format!("There is no time for it on these hosts: {}", quoted_list(&without, ", "));
    Err(ServiceError::Conflict(text))
}

/// Pending maintenance that this user has already booked with the same length and in the same period, by
/// host.
fn present(state: &State, owner: &Owner, wish: &MaintenanceWish) -> Booked {
    let leases = state.leases.of_project(&owner.project).map(|record| &record.lease);
    let alike = leases.filter(|lease| {
        lease.owner == *owner
            && lease.status == LeaseStatus::Pending
            && lease.window.length() == wish.length
            && lease.window.start() >= wish.not_before
            && lease.window.end() <= wish.before
            && lease.name.starts_with(NAMED)
    });
    alike
        .filter_map(|lease| {
            let host = lease.reservations.first()?.allocation.hosts().first().copied()?;
            Some((host, (lease.id, lease.window)))
        })
        .collect()
}

/// Earliest maintenance window of each host.
fn maintained(
    state: &State,
    new: &NewMaintenance,
    now: Timestamp,
    budget: &Budget,
) -> Result<Vec<PlannedMaintenance>, ServiceError> {
    let mut hosts: BTreeSet<HostId> = BTreeSet::new();
    let by_name: HashMap<&str, HostId> =
        state.hosts.values().map(|record| (record.host.name.as_str(), record.host.id)).collect();
    let by_id = |text: &str| text.parse().ok().map(HostId).filter(|id| state.hosts.contains_key(id));
    for name in &new.hosts {
        let id = by_name.get(name.as_str()).copied().or_else(|| by_id(name));
        hosts.insert(id.ok_or_else(|| ServiceError::NotFound(NotFound::Machine(name.clone())))?);
    }
    if let Some(name) = &new.free_pool {
        let known = |one: &&Arc<FreePoolRecord>| one.pool.name == *name || one.pool.id.to_string() == *name;
        let missing = || ServiceError::NotFound(NotFound::FreePool(name.clone()));
        let pool = state.free_pools.values().find(known).ok_or_else(missing)?.pool.id;
        hosts.extend(state.hosts.values().filter(|one| one.host.pool == pool).map(|one| one.host.id));
    }
    let wish = MaintenanceWish { not_before: new.wish.not_before.max(now), ..new.wish };
    let planned = |id| {
        budget.charge(state.calendar.bookings(id).count() as u64);
        let host = state.hosts.get(&id)?.clone();
        Some(PlannedMaintenance { host, window: earliest_gap(&state.calendar, id, &wish), lease: None })
    };
    Ok(hosts.into_iter().filter_map(planned).collect())
}
