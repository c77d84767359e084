//! Usage reports (USE).

use std::collections::BTreeMap;

use jiff::Timestamp;
use leases::ids::LeaseId;
use leases::project::ProjectId;
use leases::status::LeaseStatus;
use leases::usage::{
    By, Event, Group, Occurrence, PREEMPTIBLE, Prices, Query, Sum, Totals, by_group, foreseen,
};
use leases::window::Window;
use store::{LeaseRecord, UsageFilter};

use crate::deciding::beside_requests;
use crate::service::Service;
use crate::types::{LeaseUsage, Occupancy, PreemptibleUsage, ServiceError};

/// Maximum number of events, or intervals of occupancy, read at once.
const EVENTS_AT_ONCE: u32 = 1000;
/// Maximum number of periods in one query.
const PERIODS_AT_ONCE: usize = 64;
/// Maximum number of sums in a response, which bounds its memory.
const MOST_GROUPS: usize = 20_000;

/// Usage of projects and leases, and its price.
#[derive(Clone, Copy, Debug)]
pub struct Usage<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> Usage<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    /// Sums of usage by group. A long report is read in parts, and each part waits for a place of its own.
    /// Usage recorded in between can therefore be missing from earlier periods and included in later ones.
    pub async fn sums(self, query: &Query) -> Result<BTreeMap<Group, Totals>, ServiceError> {
        let mut groups = BTreeMap::new();
        for (number, periods) in query.periods.chunks(PERIODS_AT_ONCE).enumerate() {
            let part = Query { periods: periods.to_vec(), ..query.clone() };
            let sums = async {
                let sums = self.service.parts.store.usage(&part).await?;
                Ok(beside_requests(|| by_group(&sums)).into_iter().collect())
            };
            let first = number * PERIODS_AT_ONCE;
            let sums: Vec<(Group, Totals)> = self.service.store_read(sums).await?;
            let place = |group: Group| Group { period: first + group.period, ..group };
            groups.extend(sums.into_iter().map(|(group, totals)| (place(group), totals)));
            if groups.len() > MOST_GROUPS {
                return Err(ServiceError::Invalid(format!(
                    "The answer has more than {MOST_GROUPS} sums: ask for a shorter period, or group by less"
                )));
            }
        }
        Ok(groups)
    }

    /// At most `limit` events after the one with number `after`, oldest first, with their numbers.
    pub async fn events(
        self,
        filter: &UsageFilter,
        after: u64,
        limit: u32,
    ) -> Result<Vec<(u64, Event)>, ServiceError> {
        let store = &self.service.parts.store;
        self.service.store_read(store.usage_events(filter, after, limit.min(EVENTS_AT_ONCE))).await
    }

    /// Instances seen on the whole hosts of a lease: at most `limit` intervals after the one with number
    /// `after`. The lease need not exist anymore.
    pub async fn occupancy(self, lease: LeaseId, after: u64, limit: u32) -> Result<Occupancy, ServiceError> {
        let store = &self.service.parts.store;
        let mut seen_until = None;
        let read = async {
            // Read before the intervals, which must not be older.
            seen_until = store.occupancy_seen_until().await?;
            store.occupancy(lease, after, limit.min(EVENTS_AT_ONCE)).await
        };
        let intervals = self.service.store_read(read).await?;
        Ok(Occupancy { intervals, seen_until })
    }

    /// Usage of preemptible instances in a period (PRE). `project` limits it to a single project.
    pub async fn preemptible(
        self,
        period: Window,
        project: Option<&ProjectId>,
    ) -> Result<PreemptibleUsage, ServiceError> {
        if period.is_empty() {
            return Ok(PreemptibleUsage::default());
        }
        let mut usage = self.preemptible_time(period, project).await?;
        let what = Some(Occurrence::InstancePreempted);
        let filter = UsageFilter { period: Some(period), project: project.cloned(), what, lease: None };
        let mut after = 0;
        loop {
            let events = self.events(&filter, after, EVENTS_AT_ONCE).await?;
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
        let state = self.service.state();
        let cores: u64 = state.inventory.hosts().map(|host| u64::from(host.vcpus)).sum();
        usage.capacity_cores_us = u128::from(cores) * length;
        Ok(usage)
    }

    /// Running time of preemptible instances in a past period.
    async fn preemptible_time(
        self,
        period: Window,
        project: Option<&ProjectId>,
    ) -> Result<PreemptibleUsage, ServiceError> {
        let by = By { lease_type: true, ..By::default() };
        let query = Query { periods: vec![period], by, project: project.cloned(), ..Query::default() };
        let mut usage = PreemptibleUsage::default();
        for sum in self.service.store_read(self.service.parts.store.usage(&query)).await? {
            if sum.group.lease_type.as_deref() == Some(PREEMPTIBLE) {
                usage.begun += sum.begun;
                usage.ran_us += u128::from(sum.size.count) * sum.time_us;
                usage.cores_us += u128::from(sum.size.cores) * sum.time_us;
            }
        }
        Ok(usage)
    }

    /// Checks that the project's recent usage allows it to start another preemptible instance.
    pub(crate) async fn check_preemptible(
        self,
        project: &ProjectId,
        now: Timestamp,
    ) -> Result<(), ServiceError> {
        let Some(limit) = self.service.decider.settings.quotas.preemptible_usage else { return Ok(()) };
        let since = now.checked_sub(limit.window).unwrap_or(Timestamp::MIN);
        let Ok(period) = Window::new(since, now) else { return Ok(()) };
        let usage = self.preemptible_time(period, Some(project)).await?;
        Ok(limit.check(usage.cores_us)?)
    }

    pub fn prices(self) -> &'a Prices {
        &self.service.decider.settings.prices
    }

    /// Past and future usage of a lease (CLS-12).
    pub async fn of_lease(self, record: &LeaseRecord) -> Result<LeaseUsage, ServiceError> {
        let (lease, now) = (&record.lease, self.service.now());
        let by = By { project: true, ..self.prices().grouping() };
        let waits =
            matches!(lease.status, LeaseStatus::Creating | LeaseStatus::Pending | LeaseStatus::Starting);
        if waits {
            // No usage is recorded yet, so the store isn't asked.
            let state = self.service.state();
            return Ok(self.priced(&foreseen(lease, by, now, |host| state.inventory.host(host)), |_| false));
        }
        let periods = vec![
            Window::new(Timestamp::MIN, now).unwrap_or(Window::ALWAYS),
            Window::new(now, Timestamp::MAX).unwrap_or(Window::ALWAYS),
        ];
        let query = Query { periods, by, lease: Some(lease.id), ..Query::default() };
        let sums = self.service.store_read(self.service.parts.store.usage(&query)).await?;
        Ok(self.priced(&sums, |sum| sum.group.period == 0))
    }

    /// Totals and cost of a lease's sums, which are grouped by everything that prices depend on.
    fn priced(self, sums: &[Sum], is_past: impl Fn(&Sum) -> bool) -> LeaseUsage {
        let (mut so_far, mut whole) = (Totals::default(), Totals::default());
        for sum in sums {
            whole.add(sum);
            if is_past(sum) {
                so_far.add(sum);
            }
        }
        LeaseUsage { whole, so_far, cost: self.prices().cost(&by_group(sums)) }
    }
}
