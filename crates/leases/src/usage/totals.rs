//! Sums over spans.

use std::collections::BTreeMap;

use super::{Kind, Size, Span};
use crate::ids::LeaseId;
use crate::project::{ProjectId, UserId};
use crate::window::Window;

/// Dimensions to group sums by, in addition to the period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct By {
    pub project: bool,
    pub user: bool,
    pub pool: bool,
    pub flavor: bool,
    pub lease: bool,
    pub lease_type: bool,
}

/// A query for sums.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Query {
    /// Periods to sum over, ascending and without overlaps.
    pub periods: Vec<Window>,
    pub by: By,
    /// Only this project.
    pub project: Option<ProjectId>,
    /// Only this user.
    pub user: Option<UserId>,
    /// Only this free pool.
    pub pool: Option<String>,
    /// Only this lease.
    pub lease: Option<LeaseId>,
}

impl Query {
    /// Whether the span matches the filters.
    pub fn wants(&self, span: &Span) -> bool {
        self.project.as_ref().is_none_or(|project| *project == span.owner.project)
            && self.user.as_ref().is_none_or(|user| *user == span.owner.user)
            && self.pool.as_ref().is_none_or(|pool| span.pool.as_ref() == Some(pool))
            && self.lease.is_none_or(|lease| span.lease == Some(lease))
    }
}

/// Group of a sum. Dimensions that aren't grouped by are `None`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Group {
    /// Index of the period in [`Query::periods`].
    pub period: usize,
    pub project: Option<ProjectId>,
    pub user: Option<UserId>,
    /// The free pool. `None` also for resources without one.
    pub pool: Option<String>,
    /// The flavor. `None` also for resources without one.
    pub flavor: Option<String>,
    /// The lease. `None` also for resources outside leases.
    pub lease: Option<LeaseId>,
    pub lease_type: Option<String>,
}

/// Total time for which resources of one size were held.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sum {
    pub group: Group,
    pub kind: Kind,
    /// Whether they are part of a lease. `false` only for instances outside leases.
    pub leased: bool,
    /// Size of each resource.
    pub size: Size,
    /// Total time, in microseconds.
    pub time_us: u128,
    /// Number of holdings that began.
    pub begun: u64,
}

/// Sums spans. Stores must give the same result.
pub fn sums<'a>(spans: impl IntoIterator<Item = &'a Span>, query: &Query) -> Vec<Sum> {
    let mut sums: BTreeMap<(Group, Kind, bool, Size), (u128, u64)> = BTreeMap::new();
    for span in spans.into_iter().filter(|span| query.wants(span)) {
        for (place, period) in query.periods.iter().enumerate() {
            let start = span.window.start();
            let both = span.window.since(period.start()).before(period.end());
            let begun = u64::from(span.begins && period.contains(start));
            if both.is_empty() && begun == 0 {
                continue;
            }
            let group = query.by.group(place, span);
            let sum = sums.entry((group, span.held.kind(), span.lease.is_some(), span.size)).or_default();
            sum.0 += u128::try_from(both.length().as_micros()).unwrap_or(0);
            sum.1 += begun;
        }
    }
    let sum =
        |((group, kind, leased, size), (time_us, begun))| Sum { group, kind, leased, size, time_us, begun };
    sums.into_iter().map(sum).collect()
}

impl By {
    fn group(self, period: usize, span: &Span) -> Group {
        Group {
            period,
            project: self.project.then(|| span.owner.project.clone()),
            user: self.user.then(|| span.owner.user.clone()),
            pool: span.pool.clone().filter(|_| self.pool),
            flavor: span.flavor.clone().filter(|_| self.flavor),
            lease: span.lease.filter(|_| self.lease),
            lease_type: span.lease_type.clone().filter(|_| self.lease_type),
        }
    }
}

/// CPUs, memory and disk, each multiplied by microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Amounts {
    /// CPU microseconds.
    pub cores_us: u128,
    /// MiB microseconds.
    pub memory_mib_us: u128,
    /// GiB microseconds.
    pub disk_gib_us: u128,
}

impl Amounts {
    fn add(&mut self, size: Size, time_us: u128) {
        self.cores_us += u128::from(size.cores) * time_us;
        self.memory_mib_us += u128::from(size.memory_mib) * time_us;
        self.disk_gib_us += u128::from(size.disk_gib) * time_us;
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            cores_us: self.cores_us + other.cores_us,
            memory_mib_us: self.memory_mib_us + other.memory_mib_us,
            disk_gib_us: self.disk_gib_us + other.disk_gib_us,
        }
    }
}

/// Usage by instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Instances {
    /// Number of instances started.
    pub started: u64,
    /// Instance microseconds.
    pub count_us: u128,
    /// Resources used on hosts.
    pub amounts: Amounts,
}

/// Total usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Totals {
    /// Number of leases started.
    pub leases_started: u64,
    /// Host microseconds, of whole hosts.
    pub hosts_us: u128,
    /// Resources of whole hosts.
    pub of_hosts: Amounts,
    /// Slot microseconds.
    pub slots_us: u128,
    /// Resources of slots.
    pub of_room: Amounts,
    /// Address microseconds.
    pub addresses_us: u128,
    pub in_leases: Instances,
    /// Instances outside leases.
    pub beside_leases: Instances,
}

impl Totals {
    /// Reserved CPUs, memory and disk, on whole hosts and in slots.
    pub fn reserved(&self) -> Amounts {
        self.of_hosts.plus(self.of_room)
    }

    pub fn add(&mut self, sum: &Sum) {
        let count_us = u128::from(sum.size.count) * sum.time_us;
        match sum.kind {
            Kind::Lease => self.leases_started += sum.begun,
            Kind::Host => {
                self.hosts_us += count_us;
                self.of_hosts.add(sum.size, sum.time_us);
            }
            Kind::Room => {
                self.slots_us += count_us;
                self.of_room.add(sum.size, sum.time_us);
            }
            Kind::Address => self.addresses_us += count_us,
            Kind::Instance => {
                let instances = if sum.leased { &mut self.in_leases } else { &mut self.beside_leases };
                instances.started += sum.begun;
                instances.count_us += count_us;
                instances.amounts.add(sum.size, sum.time_us);
            }
        }
    }
}

/// Totals by group. Groups without usage are omitted.
pub fn by_group(sums: &[Sum]) -> BTreeMap<Group, Totals> {
    let mut totals: BTreeMap<Group, Totals> = BTreeMap::new();
    for sum in sums {
        totals.entry(sum.group.clone()).or_default().add(sum);
    }
    totals.retain(|_, totals| *totals != Totals::default());
    totals
}
