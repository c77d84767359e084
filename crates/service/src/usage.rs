//! Usage (USE): what commits mean for it, and questions about it.
//!
//! Nothing that changes a lease or an instance has to think of it: [`Service::account`] adds to every commit what
//! follows from its writes, so that the records are complete whenever a service stops.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use leases::host::Host;
use leases::ids::{GuestId, HostId, LeaseId};
use leases::instance::Instance;
use leases::lease::Lease;
use leases::project::ProjectId;
use leases::status::LeaseStatus;
use leases::usage::{
    Account, By, Entries, Event, Group, Held, Occurrence, PREEMPTIBLE, Prices, Query, Span, Totals, by_group,
    foreseen,
};
use leases::window::Window;
use store::{Commit, InstanceRecord, LeaseRecord, StoreError, UsageFilter, Write, leases_after};

use crate::deciding::beside_requests;
use crate::places::Kind;
use crate::service::Service;
use crate::state::State;
use crate::types::{LeaseUsage, PreemptibleUsage, ServiceError};

/// So many events are read at once.
const EVENTS_AT_ONCE: u32 = 1000;

impl Service {
    /// Adds to a commit what its writes mean for usage. For who has the write lock, so that memory says what the commit
    /// is based on; if it does not, the commit is refused.
    pub(crate) fn account(&self, commit: &mut Commit) {
        let touches = |write: &Write| {
            write.lease().is_some() || matches!(write, Write::Instance { .. } | Write::ForgetInstance { .. })
        };
        if !commit.writes.iter().any(touches) {
            return;
        }
        let shares_store = self.progress().shares_clock;
        let state = self.state();
        let usage = entries(&state, commit);
        if shares_store {
            let seized = seized(&state, &usage, &leases_after(&commit.writes));
            commit.writes.extend(seized);
        }
        commit.usage = usage;
    }

    /// Counts from now on what leases and instances hold and is not counted: they had it before there was any
    /// accounting.
    pub(crate) async fn count_what_is_held(&self) -> Result<(), StoreError> {
        let writer = self.loop_writer().await?;
        let now = self.now();
        let mut held = held_now(&self.snapshot(), now);
        if held.is_empty() {
            return Ok(());
        }
        let counted: BTreeSet<String> = self.parts.store.open_usage().await?.iter().map(Span::key).collect();
        held.retain(|span| !counted.contains(&span.key()));
        if held.is_empty() {
            return Ok(());
        }
        tracing::info!(spans = held.len(), "usage accounting started");
        let usage = Entries { opened: held, ..Entries::default() };
        match writer.commit(Commit { usage, ..Commit::new(now) }).await {
            Err(store::CommitError::Store(error)) => Err(error),
            // There is nothing in it that could be refused.
            Err(_) | Ok(()) => Ok(()),
        }
    }

    /// Sums of usage, group by group.
    pub async fn usage(&self, query: &Query) -> Result<BTreeMap<Group, Totals>, ServiceError> {
        let _place = self.place(Kind::Read).await?;
        let sums = self.parts.store.usage(query).await?;
        Ok(beside_requests(|| by_group(&sums)))
    }

    /// What happened, oldest first, with numbers; after that number.
    pub async fn usage_events(
        &self,
        filter: &UsageFilter,
        after: u64,
        limit: u32,
    ) -> Result<Vec<(u64, Event)>, ServiceError> {
        let _place = self.place(Kind::Read).await?;
        Ok(self.parts.store.usage_events(filter, after, limit).await?)
    }

    /// What preemptible instances came to in that period, of one project if it is given (PRE).
    pub async fn preemptible_usage(
        &self,
        period: Window,
        project: Option<&ProjectId>,
    ) -> Result<PreemptibleUsage, ServiceError> {
        if period.is_empty() {
            return Ok(PreemptibleUsage::default());
        }
        let _place = self.place(Kind::Read).await?;
        let mut usage = self.preemptible_time(period, project).await?;
        let what = Some(Occurrence::InstancePreempted);
        let filter = UsageFilter { period: Some(period), project: project.cloned(), what, lease: None };
        let mut after = 0;
        loop {
            let events = self.parts.store.usage_events(&filter, after, EVENTS_AT_ONCE).await?;
            for (number, event) in &events {
                after = *number;
                usage.preempted += 1;
                let ran = event.window.map_or(0, |window| window.length().as_micros());
                usage.lost_us += u128::try_from(ran).unwrap_or(0);
            }
            if events.len() < EVENTS_AT_ONCE as usize {
                break;
            }
        }
        let length = u128::try_from(period.length().as_micros()).unwrap_or(0);
        let state = self.state();
        let cores: u64 = state.inventory.hosts().map(|host| u64::from(host.vcpus)).sum();
        usage.capacity_cores_us = u128::from(cores) * length;
        Ok(usage)
    }

    /// How long preemptible instances ran in a period that is past.
    async fn preemptible_time(
        &self,
        period: Window,
        project: Option<&ProjectId>,
    ) -> Result<PreemptibleUsage, ServiceError> {
        let by = By { lease_type: true, ..By::default() };
        let query = Query { periods: vec![period], by, project: project.cloned(), ..Query::default() };
        let mut usage = PreemptibleUsage::default();
        for sum in self.parts.store.usage(&query).await? {
            if sum.group.lease_type.as_deref() == Some(PREEMPTIBLE) {
                usage.begun += sum.begun;
                usage.ran_us += u128::from(sum.size.count) * sum.time_us;
                usage.cores_us += u128::from(sum.size.cores) * sum.time_us;
            }
        }
        Ok(usage)
    }

    /// Whether the project may start another preemptible instance after what those that it had have used of late.
    pub(crate) async fn check_preemptible_usage(
        &self,
        project: &ProjectId,
        now: Timestamp,
    ) -> Result<(), ServiceError> {
        let Some(limit) = self.decider.settings.quotas.preemptible_usage else { return Ok(()) };
        let since = now.checked_sub(limit.window).unwrap_or(Timestamp::MIN);
        let Ok(period) = Window::new(since, now) else { return Ok(()) };
        let usage = self.preemptible_time(period, Some(project)).await?;
        Ok(limit.check(usage.cores_us)?)
    }

    /// What is charged.
    pub fn prices(&self) -> &Prices {
        &self.decider.settings.prices
    }

    /// What a lease has come to, and will come to (CLS-12).
    pub async fn lease_usage(&self, record: &LeaseRecord) -> Result<LeaseUsage, ServiceError> {
        let (lease, now) = (&record.lease, self.now());
        let waits =
            matches!(lease.status, LeaseStatus::Creating | LeaseStatus::Pending | LeaseStatus::Starting);
        if waits {
            // Nothing is counted yet, so the store need not be asked.
            let state = self.state();
            let whole = foreseen(lease, now, |host| state.inventory.host(host));
            return Ok(LeaseUsage { whole, so_far: Totals::default() });
        }
        let periods = vec![
            Window::new(Timestamp::MIN, now).unwrap_or(Window::ALWAYS),
            Window::new(now, Timestamp::MAX).unwrap_or(Window::ALWAYS),
        ];
        let query = Query { periods, by: By::default(), lease: Some(lease.id), ..Query::default() };
        let sums = self.parts.store.usage(&query).await?;
        let (mut so_far, mut whole) = (Totals::default(), Totals::default());
        for sum in &sums {
            whole.add(sum);
            if sum.group.period == 0 {
                so_far.add(sum);
            }
        }
        Ok(LeaseUsage { whole, so_far })
    }
}

/// What is to be written down with a commit.
fn entries(state: &State, commit: &Commit) -> Entries {
    let leases = leases_after(&commit.writes);
    let mut instances: BTreeMap<GuestId, Option<&Instance>> = BTreeMap::new();
    let mut hosts: BTreeMap<HostId, Host> = BTreeMap::new();
    for write in &commit.writes {
        match write {
            Write::Instance { record, .. } => {
                instances.insert(record.instance.id, Some(&record.instance));
            }
            Write::ForgetInstance { id, .. } => {
                instances.insert(*id, None);
            }
            Write::Host { record, .. } => {
                let pool = state.free_pool(record.host.pool);
                hosts.insert(record.host.id, pool.describe(record.host.clone()));
            }
            _ => {}
        }
    }
    let host = |id: HostId| hosts.get(&id).or_else(|| state.inventory.host(id));
    let mut account = Account::new(commit.at, host);
    let before = |id: LeaseId| state.leases.get(id).map(|record| &record.lease);
    let after = |id: LeaseId| match leases.get(&id) {
        // What is only offered, or waits, is none yet.
        Some(record) => record.map(|record| &record.lease).filter(|lease| lease.standing.is_firm()),
        None => before(id),
    };
    for id in leases.keys() {
        account.lease(before(*id), after(*id));
        for guest in state.instances.of_lease(*id) {
            let same = || state.instances.get(guest).map(|record| &record.instance);
            instances.entry(guest).or_insert_with(same);
        }
    }
    for (id, is) in instances {
        let was = state.instances.get(id).map(|record: &std::sync::Arc<InstanceRecord>| &record.instance);
        account.instance(
            was.map(|was| (was, was.kind.lease().and_then(before))),
            is.map(|is| (is, is.kind.lease().and_then(after))),
        );
    }
    account.entries()
}

/// Leases in which a commit opens a span of an instance without writing them. Such a span ends with its lease, so
/// that whoever changes the lease at the same time has to decide again.
fn seized(state: &State, usage: &Entries, written: &BTreeMap<LeaseId, Option<&LeaseRecord>>) -> Vec<Write> {
    let in_leases = usage.opened.iter().filter(|span| matches!(span.held, Held::Instance(_)));
    let leases: BTreeSet<LeaseId> = in_leases.filter_map(|span| span.lease).collect();
    let records = leases.iter().filter(|id| !written.contains_key(id));
    let seize = |record: &std::sync::Arc<LeaseRecord>| Write::Lease {
        record: Box::new(LeaseRecord { version: record.version.next(), ..LeaseRecord::clone(record) }),
        expected: Some(record.version),
    };
    records.filter_map(|id| state.leases.get(*id)).map(seize).collect()
}

/// What leases and instances hold, counted from now on.
fn held_now(state: &State, now: Timestamp) -> Vec<Span> {
    let mut account = Account::new(now, |id| state.inventory.host(id));
    let lease_of = |id| state.leases.get(id).map(|record| &record.lease);
    for record in state.leases.iter() {
        account.lease(None, Some(&record.lease));
    }
    for record in state.instances.iter() {
        let lease: Option<&Lease> = record.instance.kind.lease().and_then(lease_of);
        account.instance(None, Some((&record.instance, lease)));
    }
    // That they began was counted then, or never will be.
    account.entries().opened.into_iter().map(|span| Span { begins: false, ..span }).collect()
}
